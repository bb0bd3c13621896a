"""Reject inputs as a provider's own validation does, before any request to the cloud.

An offline preview reports what the real provider would certainly reject. The formats of strings have the rule files' names. `RULES` are the
providers' rules on several inputs of one resource together, `plan_rules` of the files.
"""

from __future__ import annotations

import ipaddress
import json
import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from flexspot.lab.providers.cloud_rules.resource_rules import rules_by_type
from flexspot.lab.providers.values import UNKNOWN, is_list, is_object, plain, without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flexspot.lab.providers.cloud_rules.resource_rules import Attribute, ResourceRules
    from flexspot.lab.providers.values import Properties

    Problems = Iterator[tuple[str, str]]


def combination_problems(token: str, inputs: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the rejected combinations of inputs of a new resource, each with the path of the rule files.

    Unknown values are not rejected.
    """
    return [found for rule in RULES.get(token, {}).values() for found in rule(inputs)]


def _value_in(inputs: Any, *path: str) -> Any:
    """Return the value at a path, or None if there is none."""
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
        yield "node_version", "is not allowed with remove_default_node_pool, which removes the pool that it applies to"


def _node_version_is_the_masters(inputs: dict[str, Any]) -> Problems:
    node, least = inputs.get("nodeVersion"), inputs.get("minMasterVersion")
    if isinstance(node, str) and isinstance(least, str) and node.partition("-")[0] != least.partition("-")[0]:
        yield "node_version", f"is {node!r}, but a new cluster requires min_master_version, {least!r}"


def _surge_of_other_strategies(inputs: dict[str, Any]) -> Problems:
    place = ("clusterAutoscaling", "autoProvisioningDefaults", "upgradeSettings")
    strategy = _value_in(inputs, *place, "strategy")
    if strategy not in (None, UNKNOWN, "SURGE") and any(_given(_value_in(inputs, *place, key)) for key in ("maxSurge", "maxUnavailable")):
        path = "cluster_autoscaling.auto_provisioning_defaults.upgrade_settings"
        yield path, f"has max_surge or max_unavailable, which are allowed only with the strategy SURGE, not with {strategy}"


def _refresh_of_inline_pools(inputs: dict[str, Any]) -> Problems:
    if inputs.get("skipNodePoolRefresh") is True and _given(inputs.get("nodePools")):
        yield "skip_node_pool_refresh", "is not allowed with node pools inside the cluster"


def _all_of_auto_mode(inputs: dict[str, Any]) -> Problems:
    parts = {
        "compute_config.enabled": _value_in(inputs, "computeConfig", "enabled"),
        "kubernetes_network_config.elastic_load_balancing.enabled": _value_in(
            inputs, "kubernetesNetworkConfig", "elasticLoadBalancing", "enabled"
        ),
        "storage_config.block_storage.enabled": _value_in(inputs, "storageConfig", "blockStorage", "enabled"),
    }
    if UNKNOWN not in parts.values() and len({bool(each) for each in parts.values()}) > 1:
        yield "compute_config", f"belongs to Auto Mode: {', '.join(parts)} must be all true or all false"


def _private_gateway(inputs: dict[str, Any]) -> Problems:
    if inputs.get("connectivityType") == "private":
        for name, key in (("allocation_id", "allocationId"), ("secondary_allocation_ids", "secondaryAllocationIds")):
            if _given(inputs.get(key)):
                yield name, "is allowed only for a public gateway, but connectivity_type is private"


def _public_gateway(inputs: dict[str, Any]) -> Problems:
    if inputs.get("connectivityType") in (None, "public") and _given(inputs.get("secondaryPrivateIpAddressCount")):
        yield "secondary_private_ip_address_count", "is allowed only for a private gateway, but connectivity_type is public"


def _only_with(name: str, key: str, other: str, allowed: Any) -> Callable[[dict[str, Any]], Problems]:
    """Return a rule that accepts `name` only if the input `other` is `allowed`."""

    def rule(inputs: dict[str, Any]) -> Problems:
        # Zero of its type: Terraform treats it as not set.
        if _given(inputs.get(key)) and inputs.get(key) not in (0, False) and inputs.get(other) not in (allowed, UNKNOWN):
            yield name, f"is allowed only if {other} is {str(allowed).lower()}"

    return rule


def _queue_name(inputs: dict[str, Any]) -> Problems:
    name, fifo = inputs.get("name"), inputs.get("fifoQueue")
    form = r"[0-9A-Za-z_-]{1,75}\.fifo" if fifo is True else "[0-9A-Za-z_-]{1,80}"
    if isinstance(name, str) and fifo is not UNKNOWN and re.fullmatch(form, name) is None:
        yield "name", f"is {name!r}, which is not of the form {form}"


def _key_without_encryption(inputs: dict[str, Any]) -> Problems:
    if _given(inputs.get("kmsKeyId")) and inputs.get("encrypted") not in (True, UNKNOWN):
        yield "kms_key_id", "is allowed only with encrypted: true"


def _key_of_scratch(inputs: dict[str, Any]) -> Problems:
    kind = inputs.get("deploymentType") or "SCRATCH_1"
    if _given(inputs.get("kmsKeyId")) and kind is not UNKNOWN and not str(kind).startswith("PERSISTENT"):
        yield "kms_key_id", f"is allowed only for PERSISTENT_1 and PERSISTENT_2, but deployment_type is {kind}"


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
"""Rules by type and by the text of `plan_rules` that each applies. A test lists the texts that need more than one resource's inputs."""


_MEMBER = (
    r"allUsers|allAuthenticatedUsers|(projectOwner|projectEditor|projectViewer):.+"
    r"|(deleted:)?(user|serviceAccount|group|domain|principal|principalSet):.+"
)


def has_format(name: str, text: str) -> bool:
    """Return whether `text` has the format `name`. Every text has a format that is not defined here."""
    check = _FORMATS.get(name)
    return check is None or check(text)


def _matches(pattern: str) -> Callable[[str], bool]:
    return lambda text: re.fullmatch(pattern, text) is not None


def _parses(read: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            read(text)
        except ValueError:
            return False
        return True

    return check


def _object(text: str) -> object:
    if not text.lstrip().startswith("{"):
        raise ValueError(text)
    return json.loads(text)


def _cidr(text: str) -> object:
    if "/" not in text:
        raise ValueError(text)
    return ipaddress.ip_network(text, strict=False)


_FORMATS: dict[str, Callable[[str], bool]] = {
    "arn": _matches(r"|arn:[a-z-]+:[a-z0-9-]+:[a-z0-9-]*:(\d{12}|aws|aws-managed)?:.+"),
    "aws-account-id": _matches(r"|\d{12}"),
    "bool-string": _matches(r"|true|false"),
    "cidr": _parses(_cidr),
    "gcp-iam-member": _matches(_MEMBER),
    "go-duration": _matches(r"([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+"),
    "ipv4": _parses(ipaddress.IPv4Address),
    "ipv6": _parses(ipaddress.IPv6Address),
    "json": _parses(json.loads),
    "json-object": _parses(_object),
    "rfc3339": _parses(datetime.fromisoformat),
}


_KINDS: dict[str, tuple[type, ...]] = {"string": (str,), "int": (int,), "float": (int, float), "bool": (bool,)}


class RefusedInput(NamedTuple):
    """One input that the provider rejects: its place, and the reason."""

    place: str
    reason: str


def check_inputs(rules: ResourceRules, inputs: dict[str, Any]) -> list[RefusedInput]:
    """Return the rejected inputs, by the paths of the rule files. Unknown values are not rejected."""
    known: dict[str, Any] = plain(inputs)
    return sorted({RefusedInput(*found) for found in _block(rules, "", known, known)})


def _block(rules: ResourceRules, block: str, values: dict[str, Any], everything: dict[str, Any]) -> Iterator[tuple[str, str]]:
    attributes = rules.inside(block)
    for name in values:
        if name not in attributes:
            yield ".".join(filter(None, (block, name))), "is no argument"
    for name, attribute in attributes.items():
        value = values.get(name)
        yield from _relations(rules, attribute, everything, given=value is not None)
        if value is None:
            if attribute.facts.get("required"):
                yield attribute.path, "is required"
        elif not attribute.may_be_given:
            yield attribute.path, "is read only"
        elif value is not UNKNOWN:
            yield from _value(rules, attribute, value, everything)


def _value(rules: ResourceRules, attribute: Attribute, value: Any, everything: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if str(attribute.facts["type"]).startswith("map"):
        if not is_object(value):
            yield attribute.path, f"is {value!r}, not a map"
        return
    if attribute.is_one:
        yield from _item(rules, attribute, value, everything, "")
        return
    if not is_list(value):
        yield attribute.path, f"is {value!r}, not a list"
        return
    if len(value) < attribute.facts.get("min_items", 0):
        yield attribute.path, f"has {len(value)} items, fewer than {attribute.facts['min_items']}"
    if len(value) > attribute.facts.get("max_items", len(value)):
        yield attribute.path, f"has {len(value)} items, more than {attribute.facts['max_items']}"
    for item in value:
        if item is not UNKNOWN:
            yield from _item(rules, attribute, item, everything, "elem_")


def _item(rules: ResourceRules, attribute: Attribute, value: Any, everything: dict[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    if attribute.is_block:
        if is_object(value):
            yield from _block(rules, attribute.path, value, everything)
        else:
            yield attribute.path, f"is {value!r}, not a block"
        return
    kinds = _KINDS.get(attribute.element_type)
    if kinds and (not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)):
        yield attribute.path, f"is {value!r}, not of type {attribute.element_type}"
        return
    facts = {key.removeprefix(prefix): each for key, each in attribute.facts.items() if key.startswith(prefix)}
    yield from ((attribute.path, problem) for problem in _bounds(facts, value))


def _bounds(facts: dict[str, Any], value: Any) -> Iterator[str]:
    if "allowed" in facts and value not in facts["allowed"]:
        yield f"is {value!r}; allowed: {', '.join(map(str, facts['allowed']))}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        if value < facts.get("min", value):
            yield f"is {value}, less than {facts['min']}"
        if value > facts.get("max", value):
            yield f"is {value}, more than {facts['max']}"
    if isinstance(value, str):
        yield from _text(facts, value)


def _text(facts: dict[str, Any], value: str) -> Iterator[str]:
    if not value and facts.get("rejects_empty"):
        yield "may not be empty"
        return
    if len(value) < facts.get("min_length", 0):
        yield f"is {value!r}, shorter than {facts['min_length']} characters"
    if len(value) > facts.get("max_length", len(value)):
        yield f"is {value!r}, longer than {facts['max_length']} characters"
    for pattern in facts.get("regex", []):
        if re.search(pattern, value) is None:
            yield f"is {value!r}, which does not match {pattern}"
    if "format" in facts and not has_format(facts["format"], value):
        yield f"is {value!r}, which is not of the form {facts['format']}"


def _relations(rules: ResourceRules, attribute: Attribute, everything: dict[str, Any], *, given: bool) -> Iterator[tuple[str, str]]:
    """Yield violations of rules between arguments. An unknown value may turn out to be empty, so it conflicts with none."""
    exactly, any_of = attribute.facts.get("exactly_one_of"), attribute.facts.get("at_least_one_of")
    if exactly is not None:
        yield from ((attribute.path, problem) for problem in _exactly_one(rules, exactly, everything))
    if any_of is not None and not any(_at(rules, path, everything) is not None for path in any_of):
        yield attribute.path, f"at least one of {', '.join(any_of)} must be given"
    if given:
        for path in attribute.facts.get("conflicts_with", []):
            if _at(rules, path, everything) not in (None, UNKNOWN):
                yield attribute.path, f"conflicts with {path}"
        for path in attribute.facts.get("required_with", []):
            if _at(rules, path, everything) is None:
                yield attribute.path, f"needs {path}"


def _exactly_one(rules: ResourceRules, paths: list[str], everything: dict[str, Any]) -> Iterator[str]:
    values = [value for path in paths if (value := _at(rules, path, everything)) is not None]
    known = [value for value in values if value is not UNKNOWN]
    if len(known) > 1 or not values:
        yield f"exactly one of {', '.join(paths)} must be given"


def _at(rules: ResourceRules, path: str, values: Any) -> Any:
    """Return the value at a Terraform path, or None if there is none. In a list, the first object counts."""
    found, walked = values, ""
    for part in (each for each in path.split(".") if not each.isdecimal()):
        walked = f"{walked}.{part}".lstrip(".")
        attribute = rules.attributes.get(walked)
        if is_list(found):
            found = next((each for each in found if is_object(each)), None)
        if found is UNKNOWN:
            return UNKNOWN
        if attribute is None or not is_object(found):
            return None
        found = found.get(attribute.pulumi_name)
    return found


_GENERATED = "name"
"""Input that Pulumi's providers generate if a program omits it, although Terraform's require it."""


def refused_inputs(token: str, inputs: Properties) -> list[RefusedInput]:
    """Return the inputs of a resource that its provider rejects, in Pulumi's names, each with the source of the rule and a remedy.

    There are none for a type that is in no rule file. The rules are older than the providers that the SDKs bridge, so arguments unknown to
    them are ignored. Secrets are ignored, too: a rejection shows the value, on the terminal and in whatever stores the output.
    """
    rules = rules_by_type().get(token)
    if rules is None:
        return []
    known = _bridged(rules, "", without_secrets(inputs))
    found = [each for each in check_inputs(rules, known) if _GENERATED in known or each.place != _GENERATED]
    remedy = "use an allowed value, or preview without --offline if your newer provider accepts it"
    return [
        RefusedInput(rules.place_of(path), f"{problem}, by the rules of {rules.source}; {remedy}")
        for path, problem in (*found, *combination_problems(token, known))
    ]


def _bridged(rules: ResourceRules, block: str, values: dict[str, Any]) -> dict[str, Any]:
    attributes = rules.inside(block)
    return {name: _converted(rules, attributes[name], value) for name, value in values.items() if name in attributes}


def _converted(rules: ResourceRules, attribute: Attribute, value: Any) -> Any:
    """Return a value as the provider gets it: Terraform converts numbers and booleans to strings, and the other way round.

    Pulumi's bridge passes them on unchanged (pulumi/pulumi-terraform-bridge, pkg/tfbridge/schema.go, MakeTerraformInput; read 2026-11-26).
    """
    if is_list(value):
        return [_converted(rules, attribute, each) for each in value]
    if is_object(value):
        return _bridged(rules, attribute.path, value) if attribute.is_block else value
    if value is UNKNOWN or attribute.is_block:
        return value
    if attribute.element_type == "string" and isinstance(value, bool | int | float):
        return str(value).lower() if isinstance(value, bool) else f"{value:g}"
    return _read(attribute.element_type, value) if isinstance(value, str) else value


_READERS: dict[str, Callable[[str], Any]] = {
    "bool": lambda text: {"true": True, "false": False}.get(text, text),
    "int": int,
    "float": float,
}


def _read(kind: str, text: str) -> Any:
    try:
        return _READERS[kind](text) if kind in _READERS else text
    except ValueError:
        return text
