"""A batch: pods that know nothing of each other, each with its own part of the work and, as long as it may, its own place in the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.catalog.capacity_type import CapacityType
from capacity.values.errors import SettingsProblem
from capacity.workloads.jobs import (
    CHECKPOINTED_JOB,
    QUEUED_JOB,
    alone,
    completions,
    folder_of_part,
    job_object,
    job_objects,
    limit_problems,
    pods_at_once,
    without,
)
from capacity.workloads.place import find_place
from capacity.workloads.requests import INDEX_VARIABLE, refuse

if TYPE_CHECKING:
    from capacity.plan.model import Plan
    from capacity.workloads.place import Place
    from capacity.workloads.pods import KubeObject
    from capacity.workloads.requests import JobRequest


def queued_job(plan: Plan, request: JobRequest) -> tuple[KubeObject, ...]:
    """A batch that waits in the team's queue: one pod, or several that share the work by their index and know nothing of each other.

    Each of several is a Job of its own, named after the batch and its index. Kueue admits, and gives up, a Job as a whole: of 12 pods in
    one Job, 8 that run would be stopped with the 4 for which there is no node, when its wait for them is over.

    With `at_once` they are one Job, because only a Job counts how many of its pods run. Capacity that DWS gives all at once is left out
    where not all do: the later pods would come when their nodes are gone.

    Raises WorkloadError for a request that has no place, or that its class or the team's share is too small for.
    """
    if request.jobset:
        problem = "starts all pods anew when one fails, and the pods of a batch are independent"
        at = SettingsProblem("jobset", "true", problem, f"leave it out, or make it a {CHECKPOINTED_JOB}")
        refuse(f"{QUEUED_JOB} {request.name}", [at])
    if request.pods > 1 and request.at_once is None:
        return _each_alone(plan, request)
    leaving_out = (CapacityType.QUEUED,) if pods_at_once(request) < request.pods else ()
    return job_objects(plan, without(plan, request, QUEUED_JOB, leaving_out), QUEUED_JOB, together=False)


def _each_alone(plan: Plan, request: JobRequest) -> tuple[KubeObject, ...]:
    one = request.model_copy(update={"pods": 1})
    place = find_place(plan, one, QUEUED_JOB, queued=True)
    refuse(f"{QUEUED_JOB} {request.name}", limit_problems(place, one))
    return tuple(_part(place, one, index, [*alone(one), *_index_of(index), completions(request)]) for index in range(request.pods))


def _part(place: Place, one: JobRequest, index: int, env: list[KubeObject]) -> KubeObject:
    """The Job of one pod. Its labels are the batch's, by which all of its Jobs are found."""
    job = job_object(place, one, [*env, *folder_of_part(place, one, str(index))], together=False)
    return {**job, "metadata": {**job["metadata"], "name": f"{one.name}-{index}"}}


def _index_of(index: int) -> list[KubeObject]:
    # The Job controller gives it to the pods of Indexed Jobs alone.
    return [{"name": INDEX_VARIABLE, "value": str(index)}]
