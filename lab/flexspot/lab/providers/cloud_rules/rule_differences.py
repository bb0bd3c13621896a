"""Effects of changed inputs on a resource: none, an update, or a replacement."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

from flexspot.lab.providers.cloud_rules.resource_rules import rules_by_type
from flexspot.lab.providers.planning import ChangeKind, Difference, ProviderSettings, differences, replacing_fields
from flexspot.lab.providers.values import UNKNOWN, is_object, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flexspot.capacity.values.json_differences import Path
    from flexspot.lab.providers.cloud_rules.resource_rules import Attribute, ResourceRules


def changes(token: str, old: dict[str, Any], new: dict[str, Any]) -> list[Difference]:
    """Return the differences between old and new inputs of a resource, as its provider sees them."""
    rules = rules_by_type().get(token)
    before, after = _as_sets(rules, plain(old)), _as_sets(rules, plain(new))
    found: list[Difference] = []
    for each in differences(before, after):
        attribute = rules.attribute_at(each.path) if rules else None
        if rules is None or attribute is None:
            found.append(Difference(each.path, each.change, replaces=False))
        elif not _is_insignificant(attribute, each.change, before, after, each.path):
            unknown = each.change is not ChangeKind.DELETE and _value_at(after, each.path) is UNKNOWN
            touched = _touched(rules, attribute, each.change, unknown=unknown)
            replaces = bool(rules.facts.get("no_update")) or any(_replaces(rules, part, before, after) for part in touched)
            found.append(Difference(each.path, each.change, replaces))
    return found


def _is_insignificant(attribute: Attribute, change: ChangeKind, before: Any, after: Any, path: Path) -> bool:
    """Return whether a change has no effect: omitting what the cloud fills in, or writing or omitting a default.

    Removing one entry of an argument that is still set has an effect.
    """
    if change is ChangeKind.DELETE and attribute.facts.get("computed") and path[-1] == attribute.pulumi_name:
        return True
    default = attribute.facts.get("default")
    if default is None or attribute.is_block:
        return False
    return _value_at(after if change is ChangeKind.ADD else before, path) == default and change is not ChangeKind.UPDATE


def _touched(rules: ResourceRules, attribute: Attribute, change: ChangeKind, *, unknown: bool) -> Iterator[Attribute]:
    """Yield the attribute, and all inside a block that is added or removed as a whole.

    For an unknown block, the bridge knows that it exists, with its required arguments (pulumi/pulumi-terraform-bridge,
    pkg/tfbridge/schema.go, makeTerraformUnknown).
    """
    yield attribute
    if attribute.is_block and (change is not ChangeKind.UPDATE or unknown):
        inside = (each for path, each in rules.attributes.items() if path.startswith(f"{attribute.path}."))
        yield from (each for each in inside if not unknown or each.facts.get("required"))


def _replaces(rules: ResourceRules, attribute: Attribute, before: Any, after: Any) -> bool:
    special = WHEN.get((rules.token, attribute.path))
    return special(before, after) if special else bool(attribute.facts.get("force_new"))


def _as_sets(rules: ResourceRules | None, inputs: dict[str, Any]) -> dict[str, Any]:
    """Return the inputs with each set in one order: another order is no change."""

    def ordered(value: Any, path: Path) -> Any:
        if is_object(value):
            return {key: ordered(each, (*path, key)) for key, each in value.items()}
        if not isinstance(value, list):
            return value
        items: list[Any] = [ordered(each, (*path, number)) for number, each in enumerate(value)]
        attribute = rules.attribute_at(path) if rules else None
        is_set = attribute is not None and str(attribute.facts["type"]).startswith("set")
        return sorted(items, key=repr) if is_set else items

    return ordered(inputs, ())


def _value_at(inputs: Any, path: Path) -> Any:
    for key in path:
        inputs = inputs[key]
    return inputs


def _shrinks(before: Any, after: Any) -> bool:
    """Return whether the new range does not contain the old one: google_compute_subnetwork.ip_cidr_range."""
    old, new = before.get("ipCidrRange"), after.get("ipCidrRange")
    if UNKNOWN in (old, new) or not old or not new:
        return False
    return not ipaddress.IPv4Network(old).subnet_of(ipaddress.IPv4Network(new))


def _switched_off(name: str) -> Callable[[Any, Any], bool]:
    return lambda before, after: before.get(name) is True and after.get(name) is not True


def _removed(name: str) -> Callable[[Any, Any], bool]:
    return lambda before, after: bool(before.get(name)) and not after.get(name)


def _other_source(before: Any, after: Any) -> bool:
    sources = ("cidrIpv4", "cidrIpv6", "prefixListId", "referencedSecurityGroupId")
    return [key for key in sources if before.get(key)] != [key for key in sources if after.get(key)]


def _lowered(name: str) -> Callable[[Any, Any], bool]:
    """Return a test whether an input, a number or a version of two numbers, is lowered."""

    def order(inputs: Any) -> list[int]:
        return [int(part) for part in str(inputs.get(name, 0)).split(".")]

    # An unknown value is not known to be lower.
    return lambda before, after: UNKNOWN not in (before.get(name), after.get(name)) and order(after) < order(before)


WHEN: dict[tuple[str, str], Callable[[Any, Any], bool]] = {
    ("gcp:compute/subnetwork:Subnetwork", "ip_cidr_range"): _shrinks,
    ("gcp:container/cluster:Cluster", "enable_fqdn_network_policy"): _switched_off("enableFqdnNetworkPolicy"),
    ("gcp:container/cluster:Cluster", "enable_l4_ilb_subsetting"): _switched_off("enableL4IlbSubsetting"),
    ("aws:eks/cluster:Cluster", "encryption_config"): _removed("encryptionConfig"),
    ("aws:ec2/vpc:Vpc", "cidr_block"): lambda before, after: before.get("cidrBlock") != after.get("cidrBlock"),
    ("aws:ec2/vpc:Vpc", "instance_tenancy"): lambda before, _after: before.get("instanceTenancy") != "dedicated",
    ("aws:ec2/vpcEndpoint:VpcEndpoint", "private_dns_enabled"): lambda before, _after: before.get("vpcEndpointType") != "Interface",
    ("aws:fsx/lustreFileSystem:LustreFileSystem", "file_system_type_version"): _lowered("fileSystemTypeVersion"),
    ("aws:fsx/lustreFileSystem:LustreFileSystem", "storage_capacity"): _lowered("storageCapacity"),
    **{
        (f"aws:vpc/securityGroup{way}Rule:SecurityGroup{way}Rule", path): _other_source
        for way in ("Egress", "Ingress")
        for path in ("cidr_ipv4", "cidr_ipv6", "prefix_list_id", "referenced_security_group_id")
    },
}
"""`force_new_when` of the rule files, for the arguments that the stacks set."""


KUBERNETES_PROVIDER = "pulumi:providers:kubernetes"
AWS_PROVIDER = "pulumi:providers:aws"
RELEASE = "kubernetes:helm.sh/v3:Release"

_AUTONAMED = ("name", "bucket")
"""Inputs that the bridged providers generate if a program omits them.

A resource that sets one explicitly is deleted before it is replaced (pulumi/pulumi-terraform-bridge, pkg/tfbridge/schema.go,
nameRequiresDeleteBeforeReplace, read 2026-11-24).
"""

_RELEASE_REPLACES = [("name",), ("namespace",)]

_SETTINGS = ProviderSettings(config_maps_mutable=True)
"""Settings of a stack's provider, as in the snapshots of deployed resources (`enableConfigMapMutable`)."""


def answered(kind: str, before: dict[str, Any], after: dict[str, Any]) -> list[Difference]:
    """Return the provider's answer: the differences, and whether each replaces the resource."""
    if kind == KUBERNETES_PROVIDER:
        return _of_kubernetes_provider(before, after)
    if kind == AWS_PROVIDER:
        # Another region replaces every resource (`region` in cloud_rules/aws.json).
        return differences(before, after, [("region",)])
    if kind == RELEASE:
        return differences(before, after, _RELEASE_REPLACES)
    if kind.startswith("kubernetes:"):
        return differences(before, after, replacing_fields(after, _SETTINGS))
    return changes(kind, before, after)


def _of_kubernetes_provider(before: dict[str, Any], after: dict[str, Any]) -> list[Difference]:
    """Return the differences of a Kubernetes provider, decided as by DiffConfig of pulumi/pulumi-kubernetes.

    Source: provider/pkg/provider/provider.go (read 2026-11-24). The same identifier replaces nothing, another or an unknown one does, and
    adding one does not. Without any, another kubeconfig counts as another cluster.
    """
    found = differences(before, after)
    key = "clusterIdentifier"
    old, new = before.get(key), after.get(key)
    if old is not None and old == new:
        replaced_for: str | None = None
    elif old is not None and new is not None:
        replaced_for = key
    else:
        replaced_for = "kubeconfig"
    return [Difference(each.path, each.change, each.path[0] == replaced_for and each.change is ChangeKind.UPDATE) for each in found]


def deletes_first(kind: str, old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Return whether a replacement deletes the old resource before creating the new one."""
    if kind == RELEASE:
        return _place(old) == _place(new)
    if kind.startswith("kubernetes:"):
        return _place(old.get("metadata", {})) == _place(new.get("metadata", {}))
    return any(isinstance(new.get(name), str) for name in _AUTONAMED)


def _place(named: dict[str, Any]) -> tuple[object, object]:
    return named.get("name"), named.get("namespace")
