"""Releases of charts: what their values say of pods that ask for GPUs. The chart itself is not rendered here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from policies.inventory.pod_gpus import GPU_PREFIXES
from policies.inventory.views import PodSet
from policies.values.field import UNKNOWN, Field

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from policies.inventory.reading.source import Source

_VALUES: Final[Mapping[tuple[str, str], str]] = {
    ("helm.sh", "Release"): "values",
    ("helm.sh", "Chart"): "values",
    ("helm.toolkit.fluxcd.io", "HelmRelease"): "spec.values",
}
"""Where the values stand: Pulumi's helm.v3.Release and Charts, and Flux's release."""

_OF_PODS: Final = ("nodeSelector", "tolerations", "affinity", "priorityClassName", "runtimeClassName", "terminationGracePeriodSeconds")

_DEPTH: Final = 12
"""How deep values are looked into; charts of charts have four or five."""


def read(source: Source) -> Iterator[PodSet]:
    """One view for each part of the values that has `resources` with GPUs, with what stands beside them of pods.

    Charts take these names for what Kubernetes calls so. What a part does not say, the chart's defaults do: it is a part of a pod.
    """
    path = _VALUES.get((source.family, source.kind))
    if path is None:
        return
    for where, part in _with_gpus(source.fields.at(*path.split(".")).value, path, _DEPTH):
        pod = {name: part[name] for name in _OF_PODS if name in part}
        container: dict[str, Any] = {"name": where.rpartition(".")[2], "resources": part["resources"]}
        unsaid = Field(UNKNOWN, partial=True)
        yield PodSet(
            identity=source.identity,
            concerned=True,
            partial=True,
            where=where,
            kind=source.kind,
            namespace=unsaid,
            pod=Field({**pod, "containers": [container]}, partial=True),
            labels=unsaid,
            template_labels=unsaid,
            queue_labels=unsaid,
            job=None,
            object_spec=unsaid,
            annotations=(),
        )


def _with_gpus(value: Any, where: str, depth: int) -> Iterator[tuple[str, dict[str, Any]]]:
    if depth == 0:
        return
    if isinstance(value, list):
        for place, each in enumerate(cast("list[Any]", value)):
            yield from _with_gpus(each, f"{where}[{place}]", depth - 1)
    elif isinstance(value, dict):
        part = cast("dict[str, Any]", value)
        if _asks(part.get("resources")):
            yield where, part
        for key, each in part.items():
            yield from _with_gpus(each, f"{where}.{key}", depth - 1)


def _asks(resources: Any) -> bool:
    if not isinstance(resources, dict):
        return False
    amounts = (cast("dict[str, Any]", resources).get(name) for name in ("limits", "requests"))
    return any(str(key).startswith(GPU_PREFIXES) for each in amounts if isinstance(each, dict) for key in cast("dict[Any, Any]", each))
