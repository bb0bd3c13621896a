"""What every platform has, whatever its cloud: priorities, team namespaces, flavors and queues, as the plan says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from infra.admission import declare_admission
from infra.queue_objects import declare_queues
from infra.tenancy import declare_priorities, declare_teams

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi_kubernetes import Provider

    from capacity.plan.model import Plan
    from components.tenancy.team import Team


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
