"""How many pods of a service a team can have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.settings.problems import SettingsProblem

if TYPE_CHECKING:
    from capacity.plan import FlavorQuota
    from capacity.workloads.place import Place


def most_gpus(place: Place) -> int:
    """GPUs that the team can hold at once for work of this class: what it may run without a queue, or what its queue can give it.

    Each pod of a service is a decision of its own, so the flavors of a queue add up.
    """
    if place.queue is None:
        return place.team.unqueued_gpus
    flavors = {rung.flavor for rung in place.route.rungs}
    return min(place.team.max_gpus, sum(_most(place, quota) for quota in place.queue.quotas if quota.flavor in flavors))


def count_problems(place: Place, path: str, pods: int, gpus: int) -> list[SettingsProblem]:
    """What is wrong with so many pods of so many GPUs: the namespace's quota, or the queue, would never let the last ones start."""
    most = most_gpus(place)
    if pods * gpus <= most:
        return []
    where = "unqueued" if place.queue is None else "shares"
    problem = f"with {gpus} GPU(s) each is {pods * gpus} GPUs, and team {place.team.name} can have {most} for class "
    remedy = f"{most // gpus} at most, or give the team more in teams.{where}"
    return [SettingsProblem(path, str(pods), problem + place.route.workload_class, remedy)]


def _most(place: Place, quota: FlavorQuota) -> int:
    ceiling = next(flavor.ceiling.gpus for flavor in place.plan.flavors if flavor.name == quota.flavor)
    return ceiling if quota.borrowing_limit is None else min(ceiling, quota.nominal.gpus + quota.borrowing_limit.gpus)
