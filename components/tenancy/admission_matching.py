"""Which objects and namespaces admission policies and their bindings are about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulumi_kubernetes.admissionregistration.v1 import MatchResourcesArgs, NamedRuleWithOperationsArgs
from pulumi_kubernetes.meta.v1 import LabelSelectorArgs, LabelSelectorRequirementArgs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from components.tenancy.admission_args import MatchedResourcesArgs

NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""The label with a namespace's own name, which Kubernetes writes on each."""

SYSTEM = "kube-system"


def constraints(matches: Sequence[MatchedResourcesArgs]) -> MatchResourcesArgs:
    """The objects themselves, and no subresource: neither what a controller writes into a status nor what an autoscaler scales."""
    return MatchResourcesArgs(
        match_policy="Equivalent",
        resource_rules=[
            NamedRuleWithOperationsArgs(
                api_groups=[each["group"]], api_versions=["*"], resources=each["resources"], operations=each["operations"]
            )
            for each in matches
        ],
    )


def team_namespaces(label: str) -> MatchResourcesArgs:
    """The teams' namespaces."""
    return _in_namespaces(LabelSelectorRequirementArgs(key=label, operator="Exists"))


def other_namespaces(label: str) -> MatchResourcesArgs:
    """All namespaces but the teams' and the cluster's own."""
    return _in_namespaces(LabelSelectorRequirementArgs(key=label, operator="DoesNotExist"), _not_system())


def all_namespaces() -> MatchResourcesArgs:
    """All namespaces but the cluster's own."""
    return _in_namespaces(_not_system())


def _not_system() -> LabelSelectorRequirementArgs:
    return LabelSelectorRequirementArgs(key=NAMESPACE_NAME, operator="NotIn", values=[SYSTEM])


def _in_namespaces(*requirements: LabelSelectorRequirementArgs) -> MatchResourcesArgs:
    return MatchResourcesArgs(namespace_selector=LabelSelectorArgs(match_expressions=list(requirements)))
