"""Work that runs to an end: checkpointed training, batches, and jobs on DWS capacity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.catalog.capacity_type import CapacityType
from capacity.values.errors import SettingsProblem
from capacity.workloads.job_object import job_objects, pods_at_once
from capacity.workloads.requests import refuse

if TYPE_CHECKING:
    from capacity.plan.model import Plan, RoutePlan
    from capacity.workloads.pods import KubeObject
    from capacity.workloads.requests import JobRequest

CHECKPOINTED_JOB, QUEUED_JOB, FLEX_START_JOB = "CheckpointedJob", "QueuedJob", "FlexStartJob"

_DWS = (CapacityType.FLEX_START, CapacityType.QUEUED)


def checkpointed_job(plan: Plan, request: JobRequest) -> tuple[KubeObject, ...]:
    """A training job that resumes: one pod, or several that train together and are there all at once or not at all.

    Its class writes checkpoints, or `checkpoints` says so. Several pods never get plain flex-start nodes, which come one by one.
    """
    route = _route(plan, request)
    problems: list[SettingsProblem] = []
    if route is not None and not (route.checkpoint if request.checkpoints is None else request.checkpoints):
        classes = ", ".join(each.workload_class for each in plan.routes if each.checkpoint and each.queued) or "(none)"
        problem = "keeps no checkpoints, and each interruption would begin the job anew"
        remedy = f"take a class that does ({classes}), say checkpoints, or make it a {QUEUED_JOB}"
        problems.append(SettingsProblem("workload_class", repr(request.workload_class), problem, remedy))
    problems += _together(request)
    refuse(f"{CHECKPOINTED_JOB} {request.name}", problems)
    together = request.pods > 1
    leaving_out = (CapacityType.FLEX_START,) if together else ()
    return job_objects(plan, _without(plan, request, CHECKPOINTED_JOB, leaving_out), CHECKPOINTED_JOB, together=together)


def queued_job(plan: Plan, request: JobRequest) -> tuple[KubeObject, ...]:
    """A batch that waits in the team's queue: one pod, or several that share the work by their index and know nothing of each other.

    Where not all run at once, capacity that DWS gives all at once is left out: the later pods would come when their nodes are gone.
    """
    problems: list[SettingsProblem] = []
    if request.jobset:
        problem = "starts all pods anew when one fails, and the pods of a batch are independent"
        problems.append(SettingsProblem("jobset", "true", problem, f"leave it out, or make it a {CHECKPOINTED_JOB}"))
    refuse(f"{QUEUED_JOB} {request.name}", problems)
    leaving_out = (CapacityType.QUEUED,) if pods_at_once(request) < request.pods else ()
    return job_objects(plan, _without(plan, request, QUEUED_JOB, leaving_out), QUEUED_JOB, together=False)


def flex_start_job(plan: Plan, request: JobRequest) -> tuple[KubeObject, ...]:
    """A job on DWS capacity, which nobody takes back before its time is over: at most seven days, and often a wait before.

    One pod runs on flex-start nodes or, where the class has them, queued ones. Several train together and run on queued ones alone, of
    which DWS gives all that are asked for, or none.
    """
    whose = f"{FLEX_START_JOB} {request.name}"
    route = _route(plan, request)
    suits = _DWS if request.pods == 1 else (CapacityType.QUEUED,)
    wanted = tuple(each for each in request.capacity or suits if each in suits)
    problems = _together(request)
    if route is not None and not any(route_pool.capacity_type in wanted for route_pool in route.pools):
        has = ", ".join(dict.fromkeys(route_pool.capacity_type.value for route_pool in route.pools))
        told = " or ".join(each.value for each in suits)
        needs = f"has no {told} capacity in this stack, which a {FLEX_START_JOB} of {request.pods} pod(s) needs"
        remedy = f"it has {has}; make it a {CHECKPOINTED_JOB}, or give the stack such a pool (GKE alone has them)"
        problems.append(SettingsProblem("workload_class", repr(request.workload_class), needs, remedy))
    refuse(whose, problems)
    narrowed = request.model_copy(update={"capacity": wanted})
    return job_objects(plan, narrowed, FLEX_START_JOB, together=request.pods > 1)


def _route(plan: Plan, request: JobRequest) -> RoutePlan | None:
    """The route of the request's class; a class that there is none of is told by find_place."""
    return next((each for each in plan.routes if each.workload_class == request.workload_class), None)


def _together(request: JobRequest) -> list[SettingsProblem]:
    """What does not suit pods that train together."""
    problems: list[SettingsProblem] = []
    if pods_at_once(request) < request.pods:
        problem = f"is fewer than the {request.pods} pods, which train together: the first would wait for the others for ever"
        problems.append(SettingsProblem("at_once", str(request.at_once), problem, f"leave it out, or make it a {QUEUED_JOB}"))
    if request.jobset and request.pods == 1:
        problems.append(SettingsProblem("jobset", "true", "is for several pods, and this job has one", "leave it out, or give pods"))
    return problems


def _without(plan: Plan, request: JobRequest, kind: str, leaving_out: tuple[CapacityType, ...]) -> JobRequest:
    """The request without capacity that does not suit it, where its class has other."""
    route = _route(plan, request)
    if route is None or not leaving_out:
        return request
    had = request.capacity or tuple(dict.fromkeys(route_pool.capacity_type for route_pool in route.pools))
    kept = tuple(each for each in had if each not in leaving_out)
    if not kept:
        told = ", ".join(each.value for each in had)
        problem = f"does not suit {request.pods} pods of which {pods_at_once(request)} run at once"
        remedy = "take one pod, or a class with other capacity"
        refuse(f"{kind} {request.name}", [SettingsProblem("capacity", told, problem, remedy)])
    return request.model_copy(update={"capacity": kept})
