"""Objects of services as resources: what Pulumi should wait for, and what others change that it must leave alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.workloads.declared_objects import declare_objects

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pulumi

    from capacity.workloads.pods import KubeObject

_NO_WAITING = {"pulumi.com/skipAwait": "true"}

_WAITING_FOR_PODS = ("Service", "PersistentVolumeClaim")
"""Pulumi waits until a Service has endpoints and a claim has a volume. Both come with the pods, which are declared after them."""


def declare_service_objects(
    name: str, parent: pulumi.Resource, objects: Sequence[KubeObject], *, wakes: bool = False
) -> list[pulumi.Resource]:
    """Registers the objects as declare_objects does. With `wakes` people and the watch start and stop the Deployment.

    Pulumi waits for a Deployment as long as its own deadline says, in which a GPU node can boot.
    """
    ignoring = {"Deployment": ["spec.replicas"]} if wakes else None
    return declare_objects(name, parent, [_marked(each, wakes=wakes) for each in objects], ignoring)


def _marked(each: KubeObject, *, wakes: bool) -> KubeObject:
    if each["kind"] in _WAITING_FOR_PODS or (wakes and each["kind"] == "Deployment"):
        return _annotated(each, _NO_WAITING)
    seconds = each.get("spec", {}).get("progressDeadlineSeconds")
    return _annotated(each, {"pulumi.com/timeoutSeconds": str(seconds)}) if seconds else each


def _annotated(each: KubeObject, annotations: dict[str, str]) -> KubeObject:
    metadata = each["metadata"]
    return {**each, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **annotations}}}
