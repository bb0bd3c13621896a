"""Pools in other spellings: Config Connector's ContainerNodePool, and Provisioners, which were Karpenter's NodePools before 0.32."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from capacity.catalog.node_labels import CAPACITY_TYPE_LABEL
from policies.inventory.reading import gke, karpenter
from policies.inventory.views import GkeNodePool, Pool
from policies.values.field import UNKNOWN, Field

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from policies.inventory.reading.source import Source
    from policies.inventory.views import View


def read(source: Source) -> Iterator[View]:
    """The pool, with the fields that it names in the object's own spelling."""
    kind = (source.family, source.kind)
    if kind == ("container.cnrm.cloud.google.com", "ContainerNodePool"):
        yield from _container_node_pool(source)
    elif kind == ("karpenter.sh", "Provisioner"):
        yield from _provisioner(source)


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


_ONE: Final[Mapping[str, str]] = {"guestAccelerator": "guestAccelerators", "taint": "taints"}
"""Lists that Config Connector names by one of their elements.

docs.cloud.google.com/config-connector/docs/reference/resource-docs/container/containernodepool (2026-11-25).
"""


def _container_node_pool(source: Source) -> Iterator[View]:
    spec = _mapping(source.fields.at("spec").value)
    node = {_ONE.get(key, key): value for key, value in _mapping(spec.get("nodeConfig")).items()}
    name = source.fields.at("spec", "resourceID")
    own = {"name": (source.fields.at("metadata", "name") if name.absent else name).value}
    fields = Field({**own, **spec, "nodeConfig": node}, source.fields.partial)
    for view in gke.pool(source, fields, "spec."):
        if isinstance(view, GkeNodePool):
            yield replace(view, accelerators_field="guestAccelerator", partial=source.fields.partial)
        elif isinstance(view, Pool):
            yield replace(view, taints_field="spec.nodeConfig.taint", partial=source.fields.partial)


def _with_capacity_type(requirements: Any) -> Any:
    """The requirements with on-demand capacity where they do not say of which it is to be.

    As the webhook of Karpenter's provider for AWS 0.31.0 adds it (pkg/apis/v1alpha5/provisioner_defaults.go); a NodePool without it may
    have both.
    """
    listed = cast("list[Any]", requirements) if isinstance(requirements, list) else []
    if requirements is not None and not isinstance(requirements, list):
        return requirements
    if any(not isinstance(each, dict) or cast("dict[str, Any]", each).get("key") in {CAPACITY_TYPE_LABEL, UNKNOWN} for each in listed):
        return listed
    return [*listed, {"key": CAPACITY_TYPE_LABEL, "operator": "In", "values": ["on-demand"]}]


_DEEPER: Final = ("spec.limits", "spec.limits.resources")


def _provisioner(source: Source) -> Iterator[View]:
    """Karpenter's v1alpha5: limits one step deeper, the node's labels and taints beside them.

    karpenter.sh/v0.31/concepts/provisioners (2026-11-25).
    """
    spec = _mapping(source.fields.at("spec").value)
    node = {key: spec[key] for key in ("requirements", "taints", "startupTaints") if key in spec}
    if not source.fields.partial:
        node["requirements"] = _with_capacity_type(node.get("requirements"))
    template: dict[str, Any] = {"metadata": {"labels": spec.get("labels")}, "spec": node}
    limits = _mapping(spec.get("limits")).get("resources")
    whole = {**_mapping(source.fields.value), "spec": {"limits": limits, "template": template}}
    read_as = replace(source, kind="NodePool", fields=Field(whole, source.fields.partial))
    for view in karpenter.read(read_as):
        bounds = tuple(tuple(replace(each, field=each.field.replace(*_DEEPER)) for each in group) for group in view.bounds)
        yield replace(view, bounds=bounds, taints_field="spec.taints")
