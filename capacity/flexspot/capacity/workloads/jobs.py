"""Work that runs to an end: the object of a job, how long it may run, which ends of pods it counts; and batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.node_labels import QUEUE_LABEL, QUEUE_PRIORITY_LABEL
from flexspot.capacity.plan.queues import RUN_TIME_ANNOTATION
from flexspot.capacity.values.errors import SettingsProblem
from flexspot.capacity.workloads.fast_network import ORDINARY_NETWORK_ANNOTATION, ordinary_network
from flexspot.capacity.workloads.place import find_place
from flexspot.capacity.workloads.pods import (
    JOBSET_GROUP,
    KubeObject,
    alone,
    completions,
    keeps_checkpoints,
    labels_of,
    launched,
    launcher_problems,
    own_folder,
    own_index,
    pod_template,
    rendezvous,
    success_of,
    variables_of_launcher,
)
from flexspot.capacity.workloads.requests import (
    CONTAINER,
    GANG_SELECTOR,
    GANG_SERVICE,
    INDEX_VARIABLE,
    INTERRUPTED_EXIT_CODE,
    JobRequest,
    WorkloadType,
    refuse,
)
from flexspot.capacity.workloads.suitable_pools import amounts_without_gpus

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flexspot.capacity.plan.model import Plan, RoutePlan
    from flexspot.capacity.workloads.place import Place


def run_seconds_of(place: Place, request: JobRequest) -> int | None:
    """After how long the job is ended: as asked, else the most that its class and its capacity allow. None: neither says."""
    return request.run_seconds or place.route.max_run_seconds


def limit_problems(place: Place, request: JobRequest) -> list[SettingsProblem]:
    """What is wrong with the job's length and size. Kueue would let such a job wait for ever."""
    return [*launcher_problems(request), *_length(place, request), *_size(place, request)]


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
    if request.gpus == 0:
        yield from _size_without_gpus(place, request)
        return
    flavors = {route_pool.flavor for route_pool in place.route.pools}
    quotas = [quota for quota in place.quotas if quota.flavor in flavors]
    # All pods of a job get one flavor.
    most = min(max(map(place.most_of, quotas), default=0), place.team.most(place.route.resource))
    asked = pods_at_once(request) * request.gpus
    if asked > most:
        problem = f"with {request.gpus} GPU(s) each is {asked} GPUs at once, and team {place.team.name} can have {most} of one kind"
        remedy = f"ask for {most // request.gpus} pods or fewer at once, or give the team a larger share"
        yield SettingsProblem("pods", str(pods_at_once(request)), problem, remedy)


def _size_without_gpus(place: Place, request: JobRequest) -> Iterator[SettingsProblem]:
    work = place.plan.cpu_work
    assert work is not None, "find_place refused"  # noqa: S101 -- tells the type checker what was checked
    cpu, mib = amounts_without_gpus(request)
    pods, most = pods_at_once(request), work.reach
    fitting = min(1000 * most.vcpu // cpu, most.memory_mib // mib)
    if pods > fitting:
        problem = (
            f"with {cpu}m vCPU and {mib}Mi each is more than the queues of work without GPUs have: {most.vcpu} vCPU, {most.memory_mib}Mi"
        )
        remedy = f"ask for {fitting} pods or fewer at once, or give the stack more other_work"
        yield SettingsProblem("pods", str(pods), problem, remedy)


def pod_failure_policy(request: JobRequest, *, together: bool) -> dict[str, Any]:
    """The rules in their order; the first that matches decides, and what none matches is counted against the retries.

    1. Whatever disrupted the pod (eviction, taint, the scheduler, a node that is gone, the kubelet's shutdown) has set DisruptionTarget.
    2. Exit code 143 without it: a pod that stops because another of its job was interrupted, or that a person deleted. A program that
       always ends so is stopped by the job's deadline alone.
    3. The codes that the author calls fatal end the job, or the one index where the pods are independent.
    """
    rules: list[dict[str, Any]] = [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"action": "Ignore", "onExitCodes": _exit_codes(INTERRUPTED_EXIT_CODE)},
    ]
    if request.fatal_exit_codes:
        ends = "FailIndex" if request.pods > 1 and not together else "FailJob"
        rules.append({"action": ends, "onExitCodes": _exit_codes(*request.fatal_exit_codes)})
    return {"rules": rules}


def _exit_codes(*codes: int) -> dict[str, Any]:
    # Of the workload's own container: a cloud's sidecar ends with 143 whenever the pod does.
    return {"containerName": CONTAINER, "operator": "In", "values": sorted(set(codes))}


_BY_THE_SET = ("suspend", "ttlSecondsAfterFinished")
"""Fields of a Job that the JobSet has itself."""

_AT_ONCE = {"backoffLimitPerIndex": 0, "maxFailedIndexes": 0}
"""The first counted failure ends the Job of a set. By index, so that interruptions of other pods do not delay a new one."""


def jobset_of(job: KubeObject, request: JobRequest) -> KubeObject:
    """The JobSet of the Job of several pods: the first counted failure ends it, and the set makes it anew, `retries` times.

    Not after its deadline, nor after a fatal exit code: it would end the same way again.
    """
    spec = {name: value for name, value in job["spec"].items() if name not in _BY_THE_SET}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": job["metadata"],
        "spec": {
            "suspend": job["spec"]["suspend"],
            "ttlSecondsAfterFinished": request.keep_seconds,
            "network": {"enableDNSHostnames": True, "subdomain": request.name, "publishNotReadyAddresses": True},
            "failurePolicy": {
                "maxRestarts": request.retries,
                "rules": [
                    {
                        "name": "endsForGood",
                        "action": "FailJobSet",
                        "onJobFailureReasons": ["DeadlineExceeded", "PodFailurePolicy"],
                    }
                ],
            },
            "replicatedJobs": [{"name": JOBSET_GROUP, "replicas": 1, "template": {"spec": {**spec, **_AT_ONCE}}}],
        },
    }


_START_SECONDS = 900
"""What is asked of DWS beyond the job's own time, in which a node boots and pulls its image: it would else end before the job may."""


def job_objects(plan: Plan, request: JobRequest, kind: str, *, together: bool) -> tuple[KubeObject, ...]:
    """The one object. With `together` the pods train together, otherwise each does its own part.

    Raises WorkloadError for a request that has no place, or that its class or the team's share is too small for.
    """
    place = find_place(plan, request, kind, queued=True)
    refuse(f"{kind} {request.name}", limit_problems(place, request))
    env = alone(request)
    if together:
        env = rendezvous(request)
    elif request.pods > 1:
        env += [completions(request), *folder_of_part(place, request, "$(JOB_INDEX)")]
    job = job_object(place, request, env, together=together)
    return (jobset_of(job, request) if together and request.jobset else job,)


def job_object(place: Place, request: JobRequest, env: Sequence[KubeObject], *, together: bool) -> KubeObject:
    """The Job of a request that limit_problems has nothing against; `env` are its pods' variables beside those that all pods have."""
    sort = WorkloadType.TRAINING if keeps_checkpoints(place, request) or place.route.checkpoint else WorkloadType.BATCH
    run_seconds = run_seconds_of(place, request)
    several = request.pods > 1
    queue = place.queue
    assert queue is not None and run_seconds is not None, "find_place and limit_problems refused"  # noqa: S101, PT018
    annotations = dict(place.route.job_annotations)
    if RUN_TIME_ANNOTATION in annotations:
        # A short request finds capacity sooner than the longest that is allowed.
        annotations[RUN_TIME_ANNOTATION] = str(min(int(annotations[RUN_TIME_ANNOTATION]), run_seconds + _START_SECONDS))
    if network := ordinary_network(place.pools, request, together=together):
        annotations[ORDINARY_NETWORK_ANNOTATION] = network
    metadata: KubeObject = {
        "name": request.name,
        "namespace": place.namespace,
        "labels": {
            **labels_of(place, request, sort),
            QUEUE_LABEL: queue.local_queue,
            QUEUE_PRIORITY_LABEL: place.route.priority_class,
        },
    }
    env = [*env, *variables_of_launcher(request)]
    template = pod_template(place, launched(request), sort, env=env, spec={"restartPolicy": "Never"}, together=together)
    if together and not request.jobset:
        template["metadata"]["labels"] |= GANG_SELECTOR
        template["spec"]["subdomain"] = GANG_SERVICE
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {**metadata, **({"annotations": annotations} if annotations else {})},
        "spec": {
            # Kueue lifts it. Without it the pods would be made before its webhook is asked, should that be away.
            "suspend": True,
            "completions": request.pods,
            "parallelism": pods_at_once(request),
            "completionMode": "Indexed" if several else "NonIndexed",
            **_retries(request, together=together),
            **(success_of(request) if together else {}),
            "podFailurePolicy": pod_failure_policy(request, together=together),
            # Not before the old pod is gone: two of them would write into the same folder.
            "podReplacementPolicy": "Failed",
            # Counted from each admission on: Kueue's preemption, which suspends the job, sets the clock back.
            "activeDeadlineSeconds": run_seconds,
            "ttlSecondsAfterFinished": request.keep_seconds,
            "template": template,
        },
    }


def _retries(request: JobRequest, *, together: bool) -> dict[str, int]:
    """Counted for each pod where there are several.

    Between a failure and the next pod the Job controller waits 10 s, doubled for each one before up to ten minutes, and here ignored ones
    do count: an interruption of eight pods at once would cost all of them ten minutes. By index each pod's own are counted. Pods that train
    together still end together: none of them can do without the one that has failed for good.
    Source: k8s.io/kubernetes 1.36.1, pkg/controller/job/backoff_utils.go.
    """
    if request.pods == 1:
        return {"backoffLimit": request.retries}
    return {"backoffLimitPerIndex": request.retries, **({"maxFailedIndexes": 0} if together else {})}


def folder_of_part(place: Place, request: JobRequest, index: str) -> list[KubeObject]:
    """Independent pods with checkpoints have a folder each: a pod must not resume from what another has saved.

    `index` is the pod's own, or a reference to the variable that has it, which then comes first.
    """
    if not keeps_checkpoints(place, request):
        return []
    told = [own_index("JOB_INDEX")] if "$" in index else []
    return [*told, *own_folder(place, request, index)]


CHECKPOINTED_JOB, QUEUED_JOB, FLEX_START_JOB = "CheckpointedJob", "QueuedJob", "FlexStartJob"

_DWS = (CapacityType.FLEX_START, CapacityType.QUEUED)


def checkpointed_job(plan: Plan, request: JobRequest) -> tuple[KubeObject, ...]:
    """A training job that resumes: one pod, or several that train together and are there all at once or not at all.

    Its class writes checkpoints, or `checkpoints` says so. Several pods never get plain flex-start nodes, which come one by one, but for
    those of a slice of TPU chips.
    """
    route = plan.route_of(request.workload_class)
    problems: list[SettingsProblem] = []
    if route is not None and not (route.checkpoint if request.checkpoints is None else request.checkpoints):
        classes = ", ".join(each.workload_class for each in plan.routes if each.checkpoint and each.queued) or "(none)"
        problem = "keeps no checkpoints, and each interruption would begin the job anew"
        remedy = f"take a class that does ({classes}), say checkpoints, or make it a {QUEUED_JOB}"
        problems.append(SettingsProblem("workload_class", repr(request.workload_class), problem, remedy))
    problems += [*_together(request), *_with_gpus(request)]
    refuse(f"{CHECKPOINTED_JOB} {request.name}", problems)
    together = request.pods > 1
    leaving_out = (CapacityType.FLEX_START,) if together and not _come_together(plan, route) else ()
    return job_objects(plan, without(plan, request, CHECKPOINTED_JOB, leaving_out), CHECKPOINTED_JOB, together=together)


def flex_start_job(plan: Plan, request: JobRequest) -> tuple[KubeObject, ...]:
    """A job on DWS capacity, which nobody takes back before its time is over: at most seven days, and often a wait before.

    One pod runs on flex-start nodes or, where the class has them, queued ones. Several train together and run on queued ones alone, of
    which DWS gives all that are asked for, or none, or on a slice of TPU chips.
    """
    whose = f"{FLEX_START_JOB} {request.name}"
    route = plan.route_of(request.workload_class)
    suits = _DWS if request.pods == 1 or _come_together(plan, route) else (CapacityType.QUEUED,)
    wanted = tuple(each for each in request.capacity or suits if each in suits)
    problems = [*_together(request), *_with_gpus(request)]
    if route is not None and not any(route_pool.capacity_type in wanted for route_pool in route.pools):
        has = ", ".join(dict.fromkeys(route_pool.capacity_type.value for route_pool in route.pools))
        told = " or ".join(each.value for each in suits)
        needs = f"has no {told} capacity in this stack, which a {FLEX_START_JOB} of {request.pods} pod(s) needs"
        remedy = f"it has {has}; make it a {CHECKPOINTED_JOB}, or give the stack such a pool (GKE alone has them)"
        problems.append(SettingsProblem("workload_class", repr(request.workload_class), needs, remedy))
    refuse(whose, problems)
    narrowed = request.model_copy(update={"capacity": wanted})
    return job_objects(plan, narrowed, FLEX_START_JOB, together=request.pods > 1)


def _come_together(plan: Plan, route: RoutePlan | None) -> bool:
    """Whether the flex-start nodes of a class come all at once: those of a slice of TPU chips do."""
    slices = {pool.name for pool in plan.pools if pool.slice_nodes}
    own: list[str] = [] if route is None else [each.pool for each in route.pools if each.capacity_type is CapacityType.FLEX_START]
    return bool(own) and slices.issuperset(own)


def _together(request: JobRequest) -> list[SettingsProblem]:
    """What does not suit pods that train together."""
    problems: list[SettingsProblem] = []
    if pods_at_once(request) < request.pods:
        problem = f"is fewer than the {request.pods} pods, which train together: the first would wait for the others for ever"
        problems.append(SettingsProblem("at_once", str(request.at_once), problem, f"leave it out, or make it a {QUEUED_JOB}"))
    if request.jobset and request.pods == 1:
        problems.append(SettingsProblem("jobset", "true", "is for several pods, and this job has one", "leave it out, or give pods"))
    return problems


def _with_gpus(request: JobRequest) -> list[SettingsProblem]:
    """Work without GPUs is a batch: nothing in it trains together, and DWS gives nodes with GPUs."""
    remedy = f"ask for 1 or more, or make it a {QUEUED_JOB}"
    return [] if request.gpus else [SettingsProblem("gpus", "0", "is work without GPUs", remedy)]


def without(plan: Plan, request: JobRequest, kind: str, leaving_out: tuple[CapacityType, ...]) -> JobRequest:
    """The request without capacity that does not suit it, where its class has other."""
    route = plan.route_of(request.workload_class)
    if route is None or not leaving_out or request.gpus == 0:
        return request
    had = request.capacity or tuple(dict.fromkeys(route_pool.capacity_type for route_pool in route.pools))
    kept = tuple(each for each in had if each not in leaving_out)
    if not kept:
        told = ", ".join(each.value for each in had)
        problem = f"does not suit {request.pods} pods of which {pods_at_once(request)} run at once"
        remedy = "take one pod, or a class with other capacity"
        refuse(f"{kind} {request.name}", [SettingsProblem("capacity", told, problem, remedy)])
    return request.model_copy(update={"capacity": kept})


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
