"""What every platform has on its cluster, whatever its cloud, as the plan says: priorities, namespaces, admission rules, queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from capacity.catalog.endpoints import endpoints_of
from capacity.catalog.node_labels import TEAM_LABEL
from capacity.settings.queueing import AdmissionMode
from components.tenancy.admission import AdmissionPolicies, OwnerLabels
from components.tenancy.priorities import Priorities, WorkloadPriorities
from components.tenancy.team import Team
from infra.queue_objects import declare_queues
from policies.admission.policy import KEYS, PATCHES, admission_policies, labelled
from policies.admission.scheduling_options import facts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pulumi_kubernetes import Provider

    from capacity.plan.model import Plan, TeamPlan
    from components.tenancy.admission import AdmissionPolicyArgs, ExpressionArgs, MatchedResourcesArgs
    from components.tenancy.priorities import PriorityArgs
    from components.tenancy.team import EndpointArgs, TeamArgs
    from policies.admission.policy import AdmissionPolicy, Expression, ResourceRule


def declare_priorities(plan: Plan, provider: Provider, controllers: Sequence[pulumi.Resource]) -> None:
    """Registers the classes' priorities: those of pods at once, those of queued work after Kueue, which brings their kind."""
    classes: list[PriorityArgs] = [
        {"name": each.name, "value": each.value, "preempts": each.preempts, "description": each.description} for each in plan.priorities
    ]
    Priorities("priorities", {"classes": classes, "labels": plan.labels}, pulumi.ResourceOptions(provider=provider))
    WorkloadPriorities(
        "workload-priorities",
        {"classes": classes, "labels": plan.labels},
        pulumi.ResourceOptions(provider=provider, depends_on=list(controllers)),
    )


def declare_teams(plan: Plan, provider: Provider, annotations: Mapping[str, Mapping[str, pulumi.Input[str]]]) -> dict[str, Team]:
    """Registers each team's namespace and what holds in it, and returns the teams by name.

    `annotations` are those of a team's service account, by name of the team; none for a team that is not in it.
    """
    endpoints: list[EndpointArgs] = [
        {"cidr": each.cidr, "protocols": list(each.protocols), "ports": list(each.ports)} for each in endpoints_of(plan.cloud)
    ]
    on_cluster = pulumi.ResourceOptions(provider=provider)
    return {team.name: Team(team.name, _team(plan, team, endpoints, annotations.get(team.name, {})), on_cluster) for team in plan.teams}


def _team(plan: Plan, team: TeamPlan, endpoints: list[EndpointArgs], annotations: Mapping[str, pulumi.Input[str]]) -> TeamArgs:
    classes = list(team.unqueued_priority_classes)
    return {
        "namespace": team.namespace,
        "labels": {**plan.labels, TEAM_LABEL: team.name},
        "hard": team.hard,
        "unqueued": {"gpus": team.unqueued_gpus, "priority_classes": classes} if classes else None,
        "container_limits": {"cpu": team.container_limits["cpu"], "memory": team.container_limits["memory"]},
        "submitters": list(team.submitters),
        "viewers": list(team.viewers),
        "endpoints": endpoints,
        "service_account_annotations": dict(annotations),
    }


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


def declare_platform_objects(
    plan: Plan,
    provider: Provider,
    controllers: Sequence[pulumi.Resource] = (),
    service_accounts: Mapping[str, Mapping[str, pulumi.Input[str]]] | None = None,
) -> dict[str, Team]:
    """Registers the plan's Kubernetes objects that do not depend on who makes the nodes, and exports the queues' names.

    `controllers` bring the definitions of the queues' kinds, so they come before them. `service_accounts` are the annotations of the
    service account of a team's workloads, by name of the team; default: none. Returns the teams by name.
    """
    declare_priorities(plan, provider, controllers)
    declare_admission(plan, provider)
    teams = declare_teams(plan, provider, service_accounts or {})
    declare_queues(plan, pulumi.ResourceOptions(provider=provider, depends_on=[*teams.values(), *controllers]))
    return teams
