"""What providers refuse of several inputs of one resource together, by code of their own and not by a schema: `plan_rules` of the files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from lab.providers.values import UNKNOWN, is_list, is_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Problems = Iterator[tuple[str, str]]


def combination_problems(token: str, inputs: dict[str, Any]) -> list[tuple[str, str]]:
    """What is refused of the inputs of a new resource, each with the path of the rule files; what is not known yet is refused nowhere."""
    return [found for rule in RULES.get(token, {}).values() for found in rule(inputs)]


def _at(inputs: Any, *path: str) -> Any:
    """The value at a path, None where there is none."""
    for key in path:
        if is_list(inputs):
            inputs = inputs[0] if inputs else None
        if not is_object(inputs):
            return UNKNOWN if inputs is UNKNOWN else None
        inputs = inputs.get(key)
    return inputs


def _given(value: Any) -> bool:
    return value is not None and value is not UNKNOWN and value not in ([], "")


def _node_version_and_no_pool(inputs: dict[str, Any]) -> Problems:
    if _given(inputs.get("nodeVersion")) and inputs.get("removeDefaultNodePool") is True:
        yield "node_version", "is not taken with remove_default_node_pool: the pool that it is of is taken away"


def _node_version_is_the_masters(inputs: dict[str, Any]) -> Problems:
    node, least = inputs.get("nodeVersion"), inputs.get("minMasterVersion")
    if isinstance(node, str) and isinstance(least, str) and node.partition("-")[0] != least.partition("-")[0]:
        yield "node_version", f"is {node!r}, and a new cluster's is its min_master_version, {least!r}"


def _surge_of_other_strategies(inputs: dict[str, Any]) -> Problems:
    place = ("clusterAutoscaling", "autoProvisioningDefaults", "upgradeSettings")
    strategy = _at(inputs, *place, "strategy")
    if strategy not in (None, UNKNOWN, "SURGE") and any(_given(_at(inputs, *place, key)) for key in ("maxSurge", "maxUnavailable")):
        path = "cluster_autoscaling.auto_provisioning_defaults.upgrade_settings"
        yield path, f"has max_surge or max_unavailable, which belong to the strategy SURGE and not to {strategy}"


def _refresh_of_inline_pools(inputs: dict[str, Any]) -> Problems:
    if inputs.get("skipNodePoolRefresh") is True and _given(inputs.get("nodePools")):
        yield "skip_node_pool_refresh", "is not taken with node pools inside the cluster"


def _all_of_auto_mode(inputs: dict[str, Any]) -> Problems:
    parts = {
        "compute_config.enabled": _at(inputs, "computeConfig", "enabled"),
        "kubernetes_network_config.elastic_load_balancing.enabled": _at(
            inputs, "kubernetesNetworkConfig", "elasticLoadBalancing", "enabled"
        ),
        "storage_config.block_storage.enabled": _at(inputs, "storageConfig", "blockStorage", "enabled"),
    }
    if UNKNOWN not in parts.values() and len({bool(each) for each in parts.values()}) > 1:
        yield "compute_config", f"is of Auto Mode, of which {', '.join(parts)} are all true or all false"


def _private_gateway(inputs: dict[str, Any]) -> Problems:
    if inputs.get("connectivityType") == "private":
        for name, key in (("allocation_id", "allocationId"), ("secondary_allocation_ids", "secondaryAllocationIds")):
            if _given(inputs.get(key)):
                yield name, "is of a public gateway, and connectivity_type is private"


def _public_gateway(inputs: dict[str, Any]) -> Problems:
    if inputs.get("connectivityType") in (None, "public") and _given(inputs.get("secondaryPrivateIpAddressCount")):
        yield "secondary_private_ip_address_count", "is of a private gateway, and connectivity_type is public"


def _only_with(name: str, key: str, other: str, allowed: Any) -> Callable[[dict[str, Any]], Problems]:
    """`name` is taken only where the input `other` is `allowed`."""

    def rule(inputs: dict[str, Any]) -> Problems:
        # What Terraform does not set: the zero of its type.
        if _given(inputs.get(key)) and inputs.get(key) not in (0, False) and inputs.get(other) not in (allowed, UNKNOWN):
            yield name, f"is taken only where {other} is {str(allowed).lower()}"

    return rule


def _queue_name(inputs: dict[str, Any]) -> Problems:
    name, fifo = inputs.get("name"), inputs.get("fifoQueue")
    form = r"[0-9A-Za-z_-]{1,75}\.fifo" if fifo is True else "[0-9A-Za-z_-]{1,80}"
    if isinstance(name, str) and fifo is not UNKNOWN and re.fullmatch(form, name) is None:
        yield "name", f"is {name!r}, which is not of the form {form}"


def _key_without_encryption(inputs: dict[str, Any]) -> Problems:
    if _given(inputs.get("kmsKeyId")) and inputs.get("encrypted") not in (True, UNKNOWN):
        yield "kms_key_id", "is taken only with encrypted: true"


def _key_of_scratch(inputs: dict[str, Any]) -> Problems:
    kind = inputs.get("deploymentType") or "SCRATCH_1"
    if _given(inputs.get("kmsKeyId")) and kind is not UNKNOWN and not str(kind).startswith("PERSISTENT"):
        yield "kms_key_id", f"is of PERSISTENT_1 and PERSISTENT_2 alone, and deployment_type is {kind}"


RULES: dict[str, dict[str, Callable[[dict[str, Any]], Problems]]] = {
    "gcp:container/cluster:Cluster": {
        "on create: node_version is refused with remove_default_node_pool = true": _node_version_and_no_pool,
        "on create: node_version, if set, must equal min_master_version (suffix after the first - aside)": _node_version_is_the_masters,
        "cluster_autoscaling.auto_provisioning_defaults.upgrade_settings: max_surge and max_unavailable are refused unless strategy is "
        "SURGE": _surge_of_other_strategies,
        "skip_node_pool_refresh = true is refused with inline node_pool blocks": _refresh_of_inline_pools,
    },
    "aws:eks/cluster:Cluster": {
        "compute_config.enabled, kubernetes_network_config.elastic_load_balancing.enabled and storage_config.block_storage.enabled must be "
        "all true or all false": _all_of_auto_mode,
    },
    "aws:ec2/natGateway:NatGateway": {
        "connectivity_type private refuses allocation_id and secondary_allocation_ids": _private_gateway,
        "connectivity_type public refuses secondary_private_ip_address_count": _public_gateway,
    },
    "aws:ec2/placementGroup:PlacementGroup": {
        "partition_count only with strategy partition": _only_with("partition_count", "partitionCount", "strategy", "partition"),
        "spread_level only with strategy spread": _only_with("spread_level", "spreadLevel", "strategy", "spread"),
    },
    "aws:sqs/queue:Queue": {
        "on create: the name must match ^[0-9A-Za-z_-]{1,80}$, or ^[0-9A-Za-z_-]{1,75}\\.fifo$ with fifo_queue": _queue_name,
        "content_based_deduplication only with fifo_queue": _only_with(
            "content_based_deduplication", "contentBasedDeduplication", "fifoQueue", allowed=True
        ),
    },
    "aws:efs/fileSystem:FileSystem": {"on create: kms_key_id only with encrypted": _key_without_encryption},
    "aws:fsx/lustreFileSystem:LustreFileSystem": {"kms_key_id: PERSISTENT_1 and PERSISTENT_2 alone": _key_of_scratch},
}
"""By type and by the text of `plan_rules` that each applies; a test names the texts that need more than one resource's inputs."""
