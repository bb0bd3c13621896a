"""How the providers of a stack answer a change of inputs: what differs, what is replaced for it, and whether the old one goes first.

The gcp and aws providers answer by the rule files, Kubernetes by the stand-in provider's tables, and the Kubernetes provider itself by
its own code.
"""

from __future__ import annotations

from typing import Any

from lab.providers.cloud_rules.rule_differences import changes
from lab.providers.planning import Change, Difference, differences, replacing_fields
from lab.providers.settings import Settings

KUBERNETES_PROVIDER = "pulumi:providers:kubernetes"
AWS_PROVIDER = "pulumi:providers:aws"
RELEASE = "kubernetes:helm.sh/v3:Release"

_AUTONAMED = ("name", "bucket")
"""Inputs that the bridged providers make up where a program leaves them out: one that is written down deletes before it replaces
(pulumi/pulumi-terraform-bridge, pkg/tfbridge/schema.go, nameRequiresDeleteBeforeReplace, read 2026-11-24)."""

_RELEASE_REPLACES = [("name",), ("namespace",)]

_SETTINGS = Settings(config_maps_mutable=True)
"""Of the provider of a stack, as in the snapshots of deployed resources (`enableConfigMapMutable`)."""


def answered(kind: str, before: dict[str, Any], after: dict[str, Any]) -> list[Difference]:
    """A provider's answer: what differs, and for what the resource is replaced."""
    if kind == KUBERNETES_PROVIDER:
        return _of_kubernetes_provider(before, after)
    if kind == AWS_PROVIDER:
        # With another region each resource is in another one, which its provider replaces it for (`region` in provider_rules/aws.json).
        return differences(before, after, [("region",)])
    if kind == RELEASE:
        return differences(before, after, _RELEASE_REPLACES)
    if kind.startswith("kubernetes:"):
        return differences(before, after, replacing_fields(after, _SETTINGS))
    return changes(kind, before, after)


def _of_kubernetes_provider(before: dict[str, Any], after: dict[str, Any]) -> list[Difference]:
    """As DiffConfig of pulumi/pulumi-kubernetes, provider/pkg/provider/provider.go (read 2026-11-24) decides.

    An identifier that is the same replaces nothing, another one or an unknown one does; one that is new does not. Without any, another
    kubeconfig is taken for another cluster.
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
    return [Difference(each.path, each.change, each.path[0] == replaced_for and each.change is Change.UPDATE) for each in found]


def deletes_first(kind: str, old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether a replacement deletes the old one before there is a new one."""
    if kind == RELEASE:
        return _place(old) == _place(new)
    if kind.startswith("kubernetes:"):
        return _place(old.get("metadata", {})) == _place(new.get("metadata", {}))
    return any(isinstance(new.get(name), str) for name in _AUTONAMED)


def _place(named: dict[str, Any]) -> tuple[object, object]:
    return named.get("name"), named.get("namespace")
