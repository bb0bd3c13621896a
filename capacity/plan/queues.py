"""Cohorts, ClusterQueues and LocalQueues: who owns how much of each flavor, and who lends to whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.catalog.workload_classes import Fallback
from capacity.plan.model import Amount, CohortPlan, FlavorPlan, FlavorQuota, QueuePlan
from capacity.plan.resolved_settings import with_gpus
from capacity.settings.queueing import Stop

if TYPE_CHECKING:
    from capacity.plan.resolved_settings import ResolvedSettings
    from capacity.settings.teams import CohortSettings, GpusOfPools, TeamSettings

LOCAL_QUEUE = "default"
"""Kueue gives Jobs without a queue label to the LocalQueue of this name in their namespace."""


def queue_plans(resolved: ResolvedSettings, flavors: tuple[FlavorPlan, ...]) -> tuple[QueuePlan, ...]:
    """One ClusterQueue and LocalQueue for each team that has a part in the queued pools, by name."""
    return tuple(
        QueuePlan(
            cluster_queue=team.name,
            cohort=team.cohort or resolved.settings.cohort,
            weight=team.weight,
            namespace=team.name,
            local_queue=LOCAL_QUEUE,
            quotas=_quotas(resolved, team, flavors),
            moves_on=_moves_on(resolved, team),
            stop=max(resolved.settings.queueing.stop, team.stop, key=list(Stop).index),
        )
        for team in sorted(resolved.settings.teams, key=lambda each: each.name)
        if team.shares
    )


def cohort_plans(resolved: ResolvedSettings, flavors: tuple[FlavorPlan, ...]) -> tuple[CohortPlan, ...]:
    """The cohort tree, the root first. What of a flavor belongs to nobody is the root's: any team may borrow it."""
    settings = resolved.settings
    groups = sorted(settings.cohorts, key=lambda each: each.name)
    owned: dict[str, int] = {}
    for owner in (*groups, *settings.teams):
        for quota in _quotas(resolved, owner, flavors):
            owned[quota.flavor] = owned.get(quota.flavor, 0) + quota.nominal.gpus
    rest = tuple(
        FlavorQuota(flavor.name, _part(resolved, flavor, left))
        for flavor in flavors
        if (left := flavor.ceiling.gpus - owned.get(flavor.name, 0)) > 0
    )
    root = CohortPlan(settings.cohort, None, 1, rest)
    return (
        root,
        *(CohortPlan(each.name, each.parent or settings.cohort, each.weight, _quotas(resolved, each, flavors)) for each in groups),
    )


def _quotas(resolved: ResolvedSettings, owner: TeamSettings | CohortSettings, flavors: tuple[FlavorPlan, ...]) -> tuple[FlavorQuota, ...]:
    return tuple(
        FlavorQuota(
            flavor.name,
            _part(resolved, flavor, sum(owner.shares.get(pool, 0) for pool in flavor.pools)),
            _limit(resolved, flavor, owner.borrowing_limits, {pool: _rest(resolved, owner, pool) for pool in flavor.pools}),
            _limit(resolved, flavor, owner.lending_limits, owner.shares),
        )
        for flavor in flavors
        if any(pool in owner.shares for pool in flavor.pools)
    )


def _moves_on(resolved: ResolvedSettings, team: TeamSettings) -> bool:
    """Whether quota moves some of the team's work on. Where a stock-out does, the queue stays with a flavor that it can have."""
    classes = (each for pool in team.shares for each in resolved.pools[pool].classes)
    return any(each.queued and each.fallback is Fallback.QUOTA for each in classes)


def _rest(resolved: ResolvedSettings, owner: TeamSettings | CohortSettings, pool: str) -> int:
    """What of a pool an owner could borrow at most: all that is not its own."""
    return max(0, resolved.queue_gpus(resolved.pools[pool]) - owner.shares.get(pool, 0))


def _limit(resolved: ResolvedSettings, flavor: FlavorPlan, limits: GpusOfPools, unlimited: GpusOfPools) -> Amount | None:
    """The limit of a flavor out of those of its pools; a pool without a limit adds all that there is of it."""
    if not any(pool in limits for pool in flavor.pools):
        return None
    return _part(resolved, flavor, sum(limits.get(pool, unlimited.get(pool, 0)) for pool in flavor.pools))


def _part(resolved: ResolvedSettings, flavor: FlavorPlan, gpus: int) -> Amount:
    return with_gpus(resolved.nodes_of(flavor.pools), gpus)
