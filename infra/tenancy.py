"""What the teams share and what each has of its own on the cluster, as the plan says: priorities, namespaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from capacity.catalog.endpoints import endpoints_of
from capacity.catalog.node_labels import TEAM_LABEL
from components.tenancy.priorities import Priorities
from components.tenancy.team import Team
from components.tenancy.workload_priorities import WorkloadPriorities

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi_kubernetes import Provider

    from capacity.plan.model import Plan, TeamPlan
    from components.tenancy.priority_args import PriorityArgs
    from components.tenancy.team_args import EndpointArgs, TeamArgs


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
