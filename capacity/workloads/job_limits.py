"""Whether a job can ever be admitted, and how long it may run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.settings.problems import SettingsProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.plan import FlavorQuota
    from capacity.workloads.job_request import JobRequest
    from capacity.workloads.place import Place


def run_seconds_of(place: Place, request: JobRequest) -> int | None:
    """After how long the job is ended: as asked, else the most that its class and its capacity allow. None: neither says."""
    return request.run_seconds or place.route.max_run_seconds


def limit_problems(place: Place, request: JobRequest) -> list[SettingsProblem]:
    """What is wrong with the job's length and size. Kueue would let such a job wait for ever."""
    return [*_length(place, request), *_size(place, request)]


def pods_at_once(request: JobRequest) -> int:
    """How many of the job's pods run at the same time."""
    return min(request.at_once or request.pods, request.pods)


def _length(place: Place, request: JobRequest) -> Iterator[SettingsProblem]:
    most, name = place.route.max_run_seconds, place.route.workload_class
    if run_seconds_of(place, request) is None:
        problem = f"is missing, and class {name} has no limit of its own: the job might never end"
        yield SettingsProblem("run_seconds", "", problem, "give the longest that it may run, in seconds")
    elif request.run_seconds is not None and most is not None and request.run_seconds > most:
        problem = f"is more than class {name} and the capacity that it uses allow"
        remedy = f"60 to {most} are allowed; work that takes longer writes checkpoints and is submitted again under the same name"
        yield SettingsProblem("run_seconds", str(request.run_seconds), problem, remedy)


def _size(place: Place, request: JobRequest) -> Iterator[SettingsProblem]:
    flavors = {rung.flavor for rung in place.route.rungs}
    quotas = [quota for quota in place.queue.quotas if quota.flavor in flavors] if place.queue else []
    most = max((_most(place, quota) for quota in quotas), default=0)
    asked = pods_at_once(request) * request.gpus
    if asked > most:
        problem = f"with {request.gpus} GPU(s) each is {asked} GPUs at once, and team {place.team.name} can have {most} of one kind"
        remedy = f"ask for {most // request.gpus} pods or fewer at once, or give the team a larger share"
        yield SettingsProblem("pods", str(pods_at_once(request)), problem, remedy)


def _most(place: Place, quota: FlavorQuota) -> int:
    """GPUs of a flavor that the team's queue can hold: all pods of a job get one flavor."""
    ceiling = next(flavor.ceiling.gpus for flavor in place.plan.flavors if flavor.name == quota.flavor)
    if quota.borrowing_limit is not None:
        ceiling = min(ceiling, quota.nominal.gpus + quota.borrowing_limit.gpus)
    return min(ceiling, place.team.max_gpus)
