"""Readers of pools in other spellings: Config Connector, Karpenter before 0.32, and providers generated from the clouds' own APIs.

The providers aws-native and google-native have the fields of the REST API of GKE and of CloudFormation, AWS::EKS::Nodegroup and
AWS::AutoScaling::AutoScalingGroup: docs.cloud.google.com/kubernetes-engine/docs/reference/rest/v1, docs.aws.amazon.com/AWSCloudFormation
(2026-11-26).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from flexspot.capacity.catalog.node_labels import CAPACITY_TYPE_LABEL
from flexspot.policies.inventory.reading import gke, karpenter
from flexspot.policies.inventory.views import GkeNodePool, Pool, View
from flexspot.policies.values.field import UNKNOWN, Field, list_of, mapping_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from flexspot.policies.inventory.reading.source import ObjectSource


def read(source: ObjectSource) -> Iterator[View]:
    """Yield the pool, with its fields named in the object's own spelling."""
    kind = (source.family, source.kind)
    if kind == ("container.cnrm.cloud.google.com", "ContainerNodePool"):
        yield from _container_node_pool(source)
    elif kind == ("karpenter.sh", "Provisioner"):
        yield from _provisioner(source)


_ONE: Final[Mapping[str, str]] = {"guestAccelerator": "guestAccelerators", "taint": "taints"}
"""Lists that Config Connector names by one of their elements.

docs.cloud.google.com/config-connector/docs/reference/resource-docs/container/containernodepool (2026-11-25).
"""


def _container_node_pool(source: ObjectSource) -> Iterator[View]:
    spec = mapping_of(source.fields.at("spec").value)
    node = {_ONE.get(key, key): value for key, value in mapping_of(spec.get("nodeConfig")).items()}
    name = source.fields.at("spec", "resourceID")
    own = {"name": (source.fields.at("metadata", "name") if name.absent else name).value}
    fields = Field({**own, **spec, "nodeConfig": node}, source.fields.partial)
    for view in gke.pool(source, fields, "spec."):
        if isinstance(view, GkeNodePool):
            yield replace(view, accelerators_field="guestAccelerator", partial=source.fields.partial)
        elif isinstance(view, Pool):
            yield replace(view, taints_field="spec.nodeConfig.taint", partial=source.fields.partial)


def _with_capacity_type(requirements: Any) -> Any:
    """Return the requirements with on-demand capacity if they do not mention the capacity type.

    The webhook of Karpenter's provider for AWS 0.31.0 adds it (pkg/apis/v1alpha5/provisioner_defaults.go). A NodePool without it may have
    both types.
    """
    listed = list_of(requirements)
    if requirements is not None and not isinstance(requirements, list):
        return requirements
    if any(not isinstance(each, dict) or mapping_of(each).get("key") in {CAPACITY_TYPE_LABEL, UNKNOWN} for each in listed):
        return listed
    return [*listed, {"key": CAPACITY_TYPE_LABEL, "operator": "In", "values": ["on-demand"]}]


_DEEPER: Final = ("spec.limits", "spec.limits.resources")


def _provisioner(source: ObjectSource) -> Iterator[View]:
    """Yield the pool of Karpenter's v1alpha5: limits one level deeper, the node's labels and taints next to them.

    karpenter.sh/v0.31/concepts/provisioners (2026-11-25).
    """
    spec = mapping_of(source.fields.at("spec").value)
    node = {key: spec[key] for key in ("requirements", "taints", "startupTaints") if key in spec}
    if not source.fields.partial:
        node["requirements"] = _with_capacity_type(node.get("requirements"))
    template: dict[str, Any] = {"metadata": {"labels": spec.get("labels")}, "spec": node}
    limits = mapping_of(spec.get("limits")).get("resources")
    whole = {**mapping_of(source.fields.value), "spec": {"limits": limits, "template": template}}
    read_as = replace(source, kind="NodePool", fields=Field(whole, source.fields.partial))
    for view in karpenter.read(read_as):
        bounds = tuple(tuple(replace(each, field=each.field.replace(*_DEEPER)) for each in group) for group in view.bounds)
        yield replace(view, bounds=bounds, taints_field="spec.taints")


def in_usual_spelling(source: ObjectSource) -> ObjectSource:
    """Return the resource in the spelling that readers know. Others are unchanged."""
    kind = (source.family, source.kind)
    if kind == ("google-native:container", "NodePool"):
        return replace(source, family="gcp:container", fields=Field(_known(source.fields.value, _node_pool)))
    if kind == ("google-native:container", "Cluster"):
        return replace(source, family="gcp:container", fields=Field(_cluster(mapping_of(source.fields.value))))
    if kind == ("aws-native:eks", "Nodegroup"):
        fields = mapping_of(source.fields.value)
        return replace(source, family="aws:eks", kind="NodeGroup", fields=Field({**fields, "nodeGroupName": fields.get("nodegroupName")}))
    if kind == ("aws-native:eks", "Cluster"):
        fields = mapping_of(source.fields.value)
        return replace(source, family="aws:eks", fields=Field({**fields, "vpcConfig": fields.get("resourcesVpcConfig")}))
    return source


def in_own_spelling(view: View, source: ObjectSource) -> View:
    """Return the view with its fields named in the resource's own spelling."""
    if source.family != "google-native:container" or not isinstance(view, Pool):
        return view
    own = {name: getattr(view, name).replace(*_NODE) for name in ("evidence", "taints_field", "spot_field", "owner_field")}
    return replace(view, **{**own, "evidence": own["evidence"].replace("guestAccelerators", "accelerators")})


_NODE: Final = ("nodeConfig", "config")


def _each(value: Any, convert: Callable[[dict[str, Any]], Any]) -> Any:
    """Return the list with its known elements converted. Other values are unchanged."""
    return [_known(each, convert) for each in list_of(value)] if isinstance(value, list) else value


def _known(value: Any, convert: Callable[[dict[str, Any]], Any]) -> Any:
    return value if value is UNKNOWN else convert(mapping_of(value))


def _accelerator(written: dict[str, Any]) -> Any:
    """https://docs.cloud.google.com/kubernetes-engine/docs/reference/rest/v1/AcceleratorConfig."""
    return {**written, "count": written.get("acceleratorCount"), "type": written.get("acceleratorType")}


def _node_config(written: dict[str, Any]) -> Any:
    return {**written, "guestAccelerators": _each(written.get("accelerators"), _accelerator)}


def _node_pool(written: dict[str, Any]) -> Any:
    scaling = written.get("autoscaling")
    return {
        **written,
        "nodeConfig": _known(written.get("config"), _node_config),
        # A disabled entry has no effect; the API returns it for every pool.
        "autoscaling": scaling if scaling is UNKNOWN or mapping_of(scaling).get("enabled") not in {False, None} else None,
        "nodeLocations": written.get("locations"),
    }


def _cluster(written: dict[str, Any]) -> Any:
    """Return a cluster of the API in the usual spelling. It has only the listed pools; `nodeConfig` means the single default pool."""
    networks = written.get("masterAuthorizedNetworksConfig")
    scaling, autopilot = written.get("autoscaling"), written.get("autopilot")
    on = scaling if scaling is UNKNOWN else mapping_of(scaling).get("enableNodeAutoprovisioning")
    limits = scaling if scaling is UNKNOWN else mapping_of(scaling).get("resourceLimits")
    return {
        **written,
        "nodePools": _each(written.get("nodePools"), _node_pool),
        "nodeConfig": _known(written.get("nodeConfig"), _node_config),
        "masterAuthorizedNetworksConfig": networks if networks is UNKNOWN or mapping_of(networks).get("enabled") is not False else None,
        "removeDefaultNodePool": bool(written.get("nodePools")) or None,
        "enableAutopilot": autopilot if autopilot is UNKNOWN else mapping_of(autopilot).get("enabled"),
        "clusterAutoscaling": {"enabled": on, "resourceLimits": limits},
    }
