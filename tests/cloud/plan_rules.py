"""What the providers' own code refuses of a whole plan: `plan_rules` of the rule files, each as code or with its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from resource_rules import rules_by_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Inputs = Mapping[str, Any]


def broken(token: str, inputs: Inputs) -> Iterator[str]:
    """The plan rules of its type that a new resource's inputs break. Raises KeyError for a rule that nobody has looked at."""
    rules = rules_by_type().get(token)
    for text in (rules.facts.get("plan_rules") or []) if rules else []:
        check = RULES[text]
        if not isinstance(check, str) and check(inputs):
            yield f"{token}: {text}"


def _one(inputs: Inputs, *path: str) -> Any:
    value: Any = inputs
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _auto_mode_in_part(inputs: Inputs) -> bool:
    parts = (
        ("computeConfig", "enabled"),
        ("kubernetesNetworkConfig", "elasticLoadBalancing", "enabled"),
        ("storageConfig", "blockStorage", "enabled"),
    )
    return len({bool(_one(inputs, *part)) for part in parts}) > 1


def _expirations(inputs: Inputs) -> bool:
    kinds = ("date", "days", "expiredObjectDeleteMarker")
    return any(len([kind for kind in kinds if each["expiration"].get(kind)]) != 1 for each in inputs["rules"] if each.get("expiration"))


def _filters(inputs: Inputs) -> bool:
    return any(len(each["filter"]) > 1 for each in inputs["rules"] if each.get("filter"))


def _queue_name(inputs: Inputs) -> bool:
    name = str(inputs.get("name", ""))
    plain = name.removesuffix(".fifo") if inputs.get("fifoQueue") else name
    return not (plain.replace("-", "").replace("_", "").isalnum() and len(name) <= len("q" * 80))


def _surge_without_strategy(inputs: Inputs) -> bool:
    settings: Any = _one(inputs, "clusterAutoscaling", "autoProvisioningDefaults", "upgradeSettings") or {}
    return bool({"maxSurge", "maxUnavailable"} & set(settings)) and settings.get("strategy") != "SURGE"


RULES: dict[str, Callable[[Inputs], bool] | str] = {
    "spread_level only with strategy spread": lambda each: "spreadLevel" in each and each.get("strategy") != "spread",
    "partition_count only with strategy partition": lambda each: "partitionCount" in each and each.get("strategy") != "partition",
    "connectivity_type private refuses allocation_id and secondary_allocation_ids": lambda each: (
        each.get("connectivityType") == "private" and bool({"allocationId", "secondaryAllocationIds"} & set(each))
    ),
    "connectivity_type public refuses secondary_private_ip_address_count": lambda each: (
        each.get("connectivityType") != "private" and "secondaryPrivateIpAddressCount" in each
    ),
    "on create: kms_key_id only with encrypted": lambda each: bool(each.get("kmsKeyId")) and not each.get("encrypted"),
    (
        "compute_config.enabled, kubernetes_network_config.elastic_load_balancing.enabled and storage_config.block_storage.enabled must be "
        "all true or all false"
    ): _auto_mode_in_part,
    "storage_capacity: a smaller one replaces the file system, and any other one of SCRATCH_1": "rule_differences has it",
    "kms_key_id: PERSISTENT_1 and PERSISTENT_2 alone": lambda each: (
        bool(each.get("kmsKeyId")) and "PERSISTENT" not in each["deploymentType"]
    ),
    "rule.expiration: exactly one of date, days, expired_object_delete_marker (a warning only)": _expirations,
    "rule.filter: at most one of object_size_greater_than, object_size_less_than, prefix, and, tag (a warning only)": _filters,
    "versioning_configuration.status cannot go from Enabled or Suspended to Disabled": lambda each: (
        _one(each, "versioningConfiguration", "status") == "Disabled"
    ),
    "on create: the name must match ^[0-9A-Za-z_-]{1,80}$, or ^[0-9A-Za-z_-]{1,75}\\.fifo$ with fifo_queue": _queue_name,
    "content_based_deduplication only with fifo_queue": lambda each: (
        bool(each.get("contentBasedDeduplication")) and not each.get("fifoQueue")
    ),
    "on create: node_version is refused with remove_default_node_pool = true": lambda each: (
        "nodeVersion" in each and each.get("removeDefaultNodePool") is True
    ),
    "on create: node_version, if set, must equal min_master_version (suffix after the first - aside)": lambda each: (
        "nodeVersion" in each and each["nodeVersion"].partition("-")[0] != str(each.get("minMasterVersion")).partition("-")[0]
    ),
    (
        "cluster_autoscaling.auto_provisioning_defaults.upgrade_settings: max_surge and max_unavailable are refused unless "
        "strategy is SURGE"
    ): _surge_without_strategy,
    "skip_node_pool_refresh = true is refused with inline node_pool blocks": lambda each: (
        each.get("skipNodePoolRefresh") is True and bool(each.get("nodePools"))
    ),
    "enable_autopilot = true sets enable_intranode_visibility = true and networking_mode = VPC_NATIVE": lambda each: (
        each.get("enableAutopilot") is True
        and (each.get("enableIntranodeVisibility") is False or each.get("networkingMode", "VPC_NATIVE") != "VPC_NATIVE")
    ),
}
"""By the file's text whether new inputs break it, or why that is not asked here."""
