"""The rules that the API server holds, as the plan says: policies' CEL in components' resources."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from capacity.catalog.node_labels import TEAM_LABEL
from capacity.settings.queueing import AdmissionMode
from components.tenancy.admission import AdmissionPolicies
from components.tenancy.owner_labels import OwnerLabels
from policies.admission.policy import KEYS, PATCHES, admission_policies, labelled
from policies.admission.scheduling_options import facts_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pulumi_kubernetes import Provider

    from capacity.plan.model import Plan
    from components.tenancy.admission_args import AdmissionPolicyArgs, ExpressionArgs, MatchedResourcesArgs
    from policies.admission.policy import AdmissionPolicy, Expression, ResourceRule


def declare_admission(plan: Plan, provider: Provider) -> None:
    """Registers the policies that the plan asks for; they know its pools and queues."""
    on_cluster = pulumi.ResourceOptions(provider=provider)
    if plan.admission.mode is not AdmissionMode.NONE:
        AdmissionPolicies(
            "admission",
            {
                "policies": [_policy(each) for each in admission_policies(facts_of(plan))],
                "team_label": TEAM_LABEL,
                "enforce": plan.admission.mode is AdmissionMode.ENFORCE,
                "labels": plan.labels,
            },
            on_cluster,
        )
    if plan.admission.owner_labels:
        OwnerLabels(
            "owner-labels",
            {
                "keys": list(KEYS),
                "matches": _matches(labelled()),
                "expression": PATCHES,
                "team_label": TEAM_LABEL,
                "labels": plan.labels,
            },
            on_cluster,
        )


def _policy(policy: AdmissionPolicy) -> AdmissionPolicyArgs:
    return {
        "name": policy.name,
        "stops": policy.stops,
        "matches": _matches(policy.resource_rules),
        "conditions": _expressions(policy.conditions),
        "variables": _expressions(policy.variables),
        "validations": [
            {"expression": each.expression, "message": each.message, "message_expression": each.message_expression}
            for each in policy.validations
        ],
    }


def _matches(rules: Iterable[ResourceRule]) -> list[MatchedResourcesArgs]:
    return [{"group": each.group, "resources": list(each.resources), "operations": list(each.operations)} for each in rules]


def _expressions(expressions: Iterable[Expression]) -> list[ExpressionArgs]:
    return [{"name": each.name, "expression": each.expression} for each in expressions]
