"""Resources of the providers that are made from the clouds' own APIs (aws-native, google-native), in the spelling of the usual ones.

Their fields are those of the REST API of GKE and of CloudFormation: docs.cloud.google.com/kubernetes-engine/docs/reference/rest/v1,
docs.aws.amazon.com/AWSCloudFormation, AWS::EKS::Nodegroup and AWS::AutoScaling::AutoScalingGroup (2026-11-26).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from policies.inventory.views import Pool
from policies.values.field import UNKNOWN, Field

if TYPE_CHECKING:
    from policies.inventory.reading.source import Source
    from policies.inventory.views import View


def in_usual_spelling(source: Source) -> Source:
    """The resource as readers know it; every other one as it is."""
    kind = (source.family, source.kind)
    if kind == ("google-native:container", "NodePool"):
        return replace(source, family="gcp:container", fields=Field(_node_pool(source.fields.value)))
    if kind == ("google-native:container", "Cluster"):
        return replace(source, family="gcp:container", fields=Field(_cluster(source.fields.value)))
    if kind == ("aws-native:eks", "Nodegroup"):
        fields = _mapping(source.fields.value)
        return replace(source, family="aws:eks", kind="NodeGroup", fields=Field({**fields, "nodeGroupName": fields.get("nodegroupName")}))
    if kind == ("aws-native:eks", "Cluster"):
        fields = _mapping(source.fields.value)
        return replace(source, family="aws:eks", fields=Field({**fields, "vpcConfig": fields.get("resourcesVpcConfig")}))
    return source


def in_own_spelling(view: View, source: Source) -> View:
    """The view with the fields that it names as the resource itself has them."""
    if source.family != "google-native:container" or not isinstance(view, Pool):
        return view
    own = {name: getattr(view, name).replace(*_NODE) for name in ("evidence", "taints_field", "spot_field", "owner_field")}
    return replace(view, **{**own, "evidence": own["evidence"].replace("guestAccelerators", "accelerators")})


_NODE: Final = ("nodeConfig", "config")


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _each(value: Any, convert: Any) -> Any:
    return [convert(each) for each in cast("list[Any]", value)] if isinstance(value, list) else value


def _accelerator(value: Any) -> Any:
    """https://docs.cloud.google.com/kubernetes-engine/docs/reference/rest/v1/AcceleratorConfig."""
    if value is UNKNOWN:
        return value
    written = _mapping(value)
    return {**written, "count": written.get("acceleratorCount"), "type": written.get("acceleratorType")}


def _node_config(value: Any) -> Any:
    if value is UNKNOWN:
        return value
    written = _mapping(value)
    return {**written, "guestAccelerators": _each(written.get("accelerators"), _accelerator)}


def _node_pool(value: Any) -> Any:
    if value is UNKNOWN:
        return value
    written = _mapping(value)
    scaling = written.get("autoscaling")
    return {
        **written,
        "nodeConfig": _node_config(written.get("config")),
        # An entry that is switched off says nothing; the API gives it back for every pool.
        "autoscaling": scaling if scaling is UNKNOWN or _mapping(scaling).get("enabled") not in {False, None} else None,
        "nodeLocations": written.get("locations"),
    }


def _cluster(value: Any) -> Any:
    """A cluster of the API has the pools that it lists, and no other: with `nodeConfig` it is one, the default pool."""
    written = _mapping(value)
    networks = written.get("masterAuthorizedNetworksConfig")
    scaling, autopilot = written.get("autoscaling"), written.get("autopilot")
    on = scaling if scaling is UNKNOWN else _mapping(scaling).get("enableNodeAutoprovisioning")
    limits = scaling if scaling is UNKNOWN else _mapping(scaling).get("resourceLimits")
    return {
        **written,
        "nodePools": _each(written.get("nodePools"), _node_pool),
        "nodeConfig": _node_config(written.get("nodeConfig")),
        "masterAuthorizedNetworksConfig": networks if networks is UNKNOWN or _mapping(networks).get("enabled") is not False else None,
        "removeDefaultNodePool": bool(written.get("nodePools")) or None,
        "enableAutopilot": autopilot if autopilot is UNKNOWN else _mapping(autopilot).get("enabled"),
        "clusterAutoscaling": {"enabled": on, "resourceLimits": limits},
    }
