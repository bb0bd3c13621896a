"""The teams' namespaces, and the most that their pods may ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.catalog.node_labels import GPU_QUOTA
from capacity.plan.model import CohortPlan, FlavorPlan, QueuePlan, TeamPlan
from capacity.values.quantities import count_quantity, gib_quantity, mib_quantity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from capacity.plan.resolved_settings import ResolvedSettings
    from capacity.settings.teams import TeamSettings

LEAST_PODS = 200
"""A namespace's pods where nobody says how many: enough for what runs beside the GPUs, and few enough to end a loop that makes pods."""

_PODS_PER_GPU = 2
"""A pod that is being replaced counts until it is gone."""


def team_plans(
    resolved: ResolvedSettings, flavors: tuple[FlavorPlan, ...], cohorts: tuple[CohortPlan, ...], queues: tuple[QueuePlan, ...]
) -> tuple[TeamPlan, ...]:
    """Each team's namespace, by name. Its quota never refuses what its queue would admit."""
    reach = _Reach(flavors, cohorts, queues)
    by_team = {queue.namespace: queue for queue in queues}
    unqueued = tuple(sorted(each.priority_class for each in resolved.classes.values() if not each.queued))
    largest_node = _largest_node(resolved)
    plans: list[TeamPlan] = []
    for team in sorted(resolved.settings.teams, key=lambda each: each.name):
        queue = by_team.get(team.name)
        queued_gpus = sum(reach.of(queue, quota.flavor) for quota in queue.quotas) if queue else 0
        unqueued_gpus = sum(team.unqueued.values())
        max_gpus = queued_gpus + unqueued_gpus
        plans.append(
            TeamPlan(
                name=team.name,
                namespace=team.name,
                max_gpus=max_gpus,
                hard=_hard(team, max_gpus),
                unqueued_gpus=unqueued_gpus,
                unqueued_priority_classes=unqueued,
                container_limits=largest_node,
                submitters=tuple(sorted(set(team.submitters))),
                viewers=tuple(sorted(set(team.viewers))),
                monthly_budget_usd=team.monthly_budget_usd,
            )
        )
    return tuple(plans)


def _hard(team: TeamSettings, max_gpus: int) -> dict[str, str]:
    # Each GPU may be a pod of its own: with fewer pods than GPUs, Kueue would admit what the namespace then refuses.
    pods = max(LEAST_PODS, _PODS_PER_GPU * max_gpus) if team.max_pods is None else max(team.max_pods, max_gpus)
    return {
        GPU_QUOTA: count_quantity(max_gpus),
        "pods": count_quantity(pods),
        "count/jobs.batch": count_quantity(team.max_jobs),
        "persistentvolumeclaims": count_quantity(team.max_volumes),
        "requests.storage": gib_quantity(team.max_storage_gib),
    }


def _largest_node(resolved: ResolvedSettings) -> dict[str, str]:
    """A container with more than the largest node would be admitted, and wait for ever."""
    nodes = resolved.nodes_of(resolved.pools)
    return {"cpu": count_quantity(max(node.vcpu for node in nodes)), "memory": mib_quantity(max(node.memory_mib for node in nodes))}


class _Reach:
    """The most GPUs of a flavor that a queue can hold, borrowed ones included: no limit on the way to the root lets more through."""

    def __init__(self, flavors: tuple[FlavorPlan, ...], cohorts: tuple[CohortPlan, ...], queues: tuple[QueuePlan, ...]) -> None:
        self._ceiling = {flavor.name: flavor.ceiling.gpus for flavor in flavors}
        self._parent = {cohort.name: cohort.parent for cohort in cohorts}
        self._limit: dict[tuple[str, str], int] = {}
        self._inside: dict[tuple[str, str], int] = {}
        for cohort in cohorts:
            for quota in cohort.quotas:
                self._add(cohort.name, quota.flavor, quota.nominal.gpus)
                if quota.borrowing_limit is not None:
                    self._limit[cohort.name, quota.flavor] = quota.borrowing_limit.gpus
        for queue in queues:
            for quota in queue.quotas:
                self._add(queue.cohort, quota.flavor, quota.nominal.gpus)

    def of(self, queue: QueuePlan, flavor: str) -> int:
        quota = next(each for each in queue.quotas if each.flavor == flavor)
        most = self._ceiling[flavor]
        if quota.borrowing_limit is not None:
            most = min(most, quota.nominal.gpus + quota.borrowing_limit.gpus)
        for cohort in self._way_up(queue.cohort):
            if (limit := self._limit.get((cohort, flavor))) is not None:
                most = min(most, self._inside[cohort, flavor] + limit)
        return most

    def _add(self, cohort: str, flavor: str, gpus: int) -> None:
        for each in self._way_up(cohort):
            self._inside[each, flavor] = self._inside.get((each, flavor), 0) + gpus

    def _way_up(self, cohort: str) -> Iterable[str]:
        at: str | None = cohort
        while at is not None:
            yield at
            at = self._parent[at]
