"""Jobs and batches: the object of a job, its run time limit, and the pod failures that count against its retries."""

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
    completions,
    keeps_checkpoints,
    labels_of,
    launched,
    launcher_problems,
    own_folder,
    own_index,
    pod_template,
    rendezvous,
    single_pod_rendezvous,
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
    """Return the run time after which the job is ended: the requested one, or the limit of its class and capacity.

    None if there is neither.
    """
    return request.run_seconds or place.route.max_run_seconds


def limit_problems(place: Place, request: JobRequest) -> list[SettingsProblem]:
    """Return the problems of the job's length and size. Kueue would let such a job wait forever."""
    return [*launcher_problems(request), *_length(place, request), *_size(place, request)]


def pods_at_once(request: JobRequest) -> int:
    """Return the number of the job's pods that run at the same time."""
    return min(request.at_once or request.pods, request.pods)


def _length(place: Place, request: JobRequest) -> Iterator[SettingsProblem]:
    most, name = place.route.max_run_seconds, place.route.workload_class
    if run_seconds_of(place, request) is None:
        problem = f"is missing, and class {name} has no run limit: the job might never end"
        yield SettingsProblem("run_seconds", "", problem, "set its longest run time in seconds")
    elif request.run_seconds is not None and most is not None and request.run_seconds > most:
        problem = f"is more than class {name} and its capacity allow"
        remedy = f"allowed: 60 to {most}; for longer work, write checkpoints and submit it again under the same name"
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
        problem = f"need {asked} GPUs at once ({request.gpus} per pod), but team {place.team.name} can use {most} of one kind"
        remedy = f"request {most // request.gpus} pods or fewer at once, or give the team a larger share"
        yield SettingsProblem("pods", str(pods_at_once(request)), problem, remedy)


def _size_without_gpus(place: Place, request: JobRequest) -> Iterator[SettingsProblem]:
    work = place.plan.cpu_work
    assert work is not None, "find_place refused"  # noqa: S101 -- tells the type checker what was checked
    cpu, mib = amounts_without_gpus(request)
    pods, most = pods_at_once(request), work.reach
    fitting = min(1000 * most.vcpu // cpu, most.memory_mib // mib)
    if pods > fitting:
        problem = f"need {cpu}m vCPU and {mib}Mi each, but the queues for work without GPUs have only {most.vcpu} vCPU, {most.memory_mib}Mi"
        remedy = f"request {fitting} pods or fewer at once, or raise the stack's other_work"
        yield SettingsProblem("pods", str(pods), problem, remedy)


def pod_failure_policy(request: JobRequest, *, together: bool) -> dict[str, Any]:
    """Return the rules for failed pods. The first match decides; a failure without a match counts against the retries.

    1. Any disruption of the pod (eviction, taint, scheduler, lost node, shutdown of the kubelet) sets DisruptionTarget.

    2. Exit code 143 without it: the pod stopped because another pod of its job was interrupted, or because a person deleted it. Only the
    job's deadline stops a program that always exits this way.

    3. The exit codes that the author declares fatal end the job, or only the index if the pods are independent.
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
    # Only the workload's own container counts: a cloud's sidecar exits with 143 whenever the pod ends.
    return {"containerName": CONTAINER, "operator": "In", "values": sorted(set(codes))}


_JOBSET_FIELDS = ("suspend", "ttlSecondsAfterFinished")
"""Fields of a Job that the JobSet has instead."""

_NO_RETRIES = {"backoffLimitPerIndex": 0, "maxFailedIndexes": 0}
"""The first counted failure ends the Job of a set. It counts by index, so that interruptions of other pods do not delay a new one."""


def jobset_of(job: KubeObject, request: JobRequest) -> KubeObject:
    """Return the JobSet for the Job of several pods.

    The first counted failure ends the Job, and the set recreates it up to `retries` times.

    It does not recreate the Job after its deadline or a fatal exit code, because the Job would end the same way again.
    """
    spec = {name: value for name, value in job["spec"].items() if name not in _JOBSET_FIELDS}
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
            "replicatedJobs": [{"name": JOBSET_GROUP, "replicas": 1, "template": {"spec": {**spec, **_NO_RETRIES}}}],
        },
    }


_START_SECONDS = 900
"""Added to the job's own time in the request to DWS. The node needs it to boot and pull the image, and would otherwise end before the job.
"""


def job_objects(plan: Plan, request: JobRequest, kind: str, *, together: bool) -> tuple[KubeObject, ...]:
    """Return the job's only object. With `together` the pods train together, otherwise each does its own part.

    Raises WorkloadError if there is no place for the request, or if its class or the team's share is too small.
    """
    place = find_place(plan, request, kind, queued=True)
    refuse(f"{kind} {request.name}", limit_problems(place, request))
    env = single_pod_rendezvous(request)
    if together:
        env = rendezvous(request)
    elif request.pods > 1:
        env += [completions(request), *folder_of_part(place, request, "$(JOB_INDEX)")]
    job = job_object(place, request, env, together=together)
    return (jobset_of(job, request) if together and request.jobset else job,)


def job_object(place: Place, request: JobRequest, env: Sequence[KubeObject], *, together: bool) -> KubeObject:
    """Return the Job of a request without problems. `env` are its pods' variables in addition to those that all pods have."""
    sort = WorkloadType.TRAINING if keeps_checkpoints(place, request) or place.route.checkpoint else WorkloadType.BATCH
    run_seconds = run_seconds_of(place, request)
    several = request.pods > 1
    queue = place.queue
    assert queue is not None and run_seconds is not None, "find_place and limit_problems refused"  # noqa: S101, PT018
    annotations = dict(place.route.job_annotations)
    if RUN_TIME_ANNOTATION in annotations:
        # A short request finds capacity sooner than one for the longest allowed time.
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
            # Kueue unsuspends it. Otherwise the pods would be created without admission while Kueue's webhook is unavailable.
            "suspend": True,
            "completions": request.pods,
            "parallelism": pods_at_once(request),
            "completionMode": "Indexed" if several else "NonIndexed",
            **_retries(request, together=together),
            **(success_of(request) if together else {}),
            "podFailurePolicy": pod_failure_policy(request, together=together),
            # A new pod starts after the old one is gone: both would write into the same folder.
            "podReplacementPolicy": "Failed",
            # Counted from each admission: a preemption by Kueue suspends the job, which resets the clock.
            "activeDeadlineSeconds": run_seconds,
            "ttlSecondsAfterFinished": request.keep_seconds,
            "template": template,
        },
    }


def _retries(request: JobRequest, *, together: bool) -> dict[str, int]:
    """Return the retry limits. If there are several pods, they are counted for each pod.

    The Job controller waits 10 s between a failure and the next pod, doubled for each earlier failure, up to ten minutes. Ignored failures
    count here too: an interruption of eight pods at once would delay all of them by ten minutes. By index, only a pod's own failures count.
    Pods that train together still end together, because they need the one that has failed for good. Source: k8s.io/kubernetes 1.36.1,
    pkg/controller/job/backoff_utils.go.
    """
    if request.pods == 1:
        return {"backoffLimit": request.retries}
    return {"backoffLimitPerIndex": request.retries, **({"maxFailedIndexes": 0} if together else {})}


def folder_of_part(place: Place, request: JobRequest, index: str) -> list[KubeObject]:
    """Return the variables for a separate checkpoint folder for each independent pod, which must not resume from another pod's checkpoints.

    `index` is the pod's index, or a reference to a variable with it. That variable then comes first.
    """
    if not keeps_checkpoints(place, request):
        return []
    own = [own_index("JOB_INDEX")] if "$" in index else []
    return [*own, *own_folder(place, request, index)]


CHECKPOINTED_JOB, QUEUED_JOB, FLEX_START_JOB = "CheckpointedJob", "QueuedJob", "FlexStartJob"

_DWS = (CapacityType.FLEX_START, CapacityType.QUEUED)


def checkpointed_job(plan: Plan, request: JobRequest) -> tuple[KubeObject, ...]:
    """Return the objects of a training job that resumes: one pod, or several that train together and start all at once or not at all.

    Its class writes checkpoints, or the request sets `checkpoints`. Several pods never use plain flex-start nodes, which arrive one by one.
    Nodes of a slice of TPU chips are the exception.
    """
    route = plan.route_of(request.workload_class)
    problems: list[SettingsProblem] = []
    if route is not None and not (route.checkpoint if request.checkpoints is None else request.checkpoints):
        classes = ", ".join(each.workload_class for each in plan.routes if each.checkpoint and each.queued) or "(none)"
        problem = "keeps no checkpoints, and each interruption would restart the job from the beginning"
        remedy = f"choose a class that does ({classes}), set checkpoints, or make it a {QUEUED_JOB}"
        problems.append(SettingsProblem("workload_class", repr(request.workload_class), problem, remedy))
    problems += [*_gang_problems(request), *_gpu_problems(request)]
    refuse(f"{CHECKPOINTED_JOB} {request.name}", problems)
    together = request.pods > 1
    leaving_out = (CapacityType.FLEX_START,) if together and not _arrive_at_once(plan, route) else ()
    return job_objects(plan, without_capacity(plan, request, CHECKPOINTED_JOB, leaving_out), CHECKPOINTED_JOB, together=together)


def flex_start_job(plan: Plan, request: JobRequest) -> tuple[KubeObject, ...]:
    """Return the objects of a job on DWS capacity. DWS does not reclaim it before its time is over: at most seven days, often after a wait.

    A single pod runs on flex-start nodes or, where the class has them, queued ones. Several pods train together. They run on queued nodes,
    which DWS provides all at once or not at all, or on a slice of TPU chips.
    """
    workload = f"{FLEX_START_JOB} {request.name}"
    route = plan.route_of(request.workload_class)
    suitable_types = _DWS if request.pods == 1 or _arrive_at_once(plan, route) else (CapacityType.QUEUED,)
    wanted = tuple(each for each in request.capacity or suitable_types if each in suitable_types)
    problems = [*_gang_problems(request), *_gpu_problems(request)]
    if route is not None and not any(route_pool.capacity_type in wanted for route_pool in route.pools):
        has = ", ".join(dict.fromkeys(route_pool.capacity_type.value for route_pool in route.pools))
        type_names = " or ".join(each.value for each in suitable_types)
        needs = f"has no {type_names} capacity in this stack, which a {FLEX_START_JOB} of {request.pods} pod(s) needs"
        remedy = f"make it a {CHECKPOINTED_JOB} (the class has {has}), or add such a pool to the stack (only on GKE)"
        problems.append(SettingsProblem("workload_class", repr(request.workload_class), needs, remedy))
    refuse(workload, problems)
    narrowed = request.model_copy(update={"capacity": wanted})
    return job_objects(plan, narrowed, FLEX_START_JOB, together=request.pods > 1)


def _arrive_at_once(plan: Plan, route: RoutePlan | None) -> bool:
    """Return whether the flex-start nodes of a class arrive all at once, as those of a slice of TPU chips do."""
    slices = {pool.name for pool in plan.pools if pool.slice_nodes}
    own: list[str] = [] if route is None else [each.pool for each in route.pools if each.capacity_type is CapacityType.FLEX_START]
    return bool(own) and slices.issuperset(own)


def _gang_problems(request: JobRequest) -> list[SettingsProblem]:
    """Return the problems of a request for pods that train together."""
    problems: list[SettingsProblem] = []
    if pods_at_once(request) < request.pods:
        problem = f"is below the {request.pods} pods, which train together: the first would wait for the others forever"
        problems.append(SettingsProblem("at_once", str(request.at_once), problem, f"leave it out, or make it a {QUEUED_JOB}"))
    if request.jobset and request.pods == 1:
        problems.append(SettingsProblem("jobset", "true", "is for several pods, and this job has one", "leave it out, or set pods"))
    return problems


def _gpu_problems(request: JobRequest) -> list[SettingsProblem]:
    """Return the problem of a request without GPUs: such work is a batch.

    It does not train together, and DWS only provides nodes with GPUs.
    """
    remedy = f"request 1 or more, or make it a {QUEUED_JOB}"
    return [] if request.gpus else [SettingsProblem("gpus", "0", f"is only possible for a {QUEUED_JOB}", remedy)]


def without_capacity(plan: Plan, request: JobRequest, kind: str, leaving_out: tuple[CapacityType, ...]) -> JobRequest:
    """Return the request without unsuitable capacity types. Raises WorkloadError if its class has no others."""
    route = plan.route_of(request.workload_class)
    if route is None or not leaving_out or request.gpus == 0:
        return request
    had = request.capacity or tuple(dict.fromkeys(route_pool.capacity_type for route_pool in route.pools))
    kept = tuple(each for each in had if each not in leaving_out)
    if not kept:
        requested = ", ".join(each.value for each in had)
        problem = f"cannot serve {request.pods} pods of which {pods_at_once(request)} run at once"
        remedy = "use one pod, or choose a class with other capacity"
        refuse(f"{kind} {request.name}", [SettingsProblem("capacity", requested, problem, remedy)])
    return request.model_copy(update={"capacity": kept})


def queued_job(plan: Plan, request: JobRequest) -> tuple[KubeObject, ...]:
    """Return the objects of a batch that waits in the team's queue: one pod, or independent pods that share the work by index.

    Each of several pods is a separate Job, named after the batch and its index. Kueue admits and evicts whole Jobs. If one Job had 12 pods
    and nodes for only 8, all 8 would be stopped when Kueue's wait for the other 4 ends.

    With `at_once` the pods are one Job, because only a Job limits how many of its pods run. If not all run at once, queued capacity is left
    out: DWS provides it all at once, and the later pods would start when their nodes are gone.

    Raises WorkloadError if there is no place for the request, or if its class or the team's share is too small.
    """
    if request.jobset:
        problem = "restarts all pods when one fails, and the pods of a batch are independent"
        at = SettingsProblem("jobset", "true", problem, f"leave it out, or make it a {CHECKPOINTED_JOB}")
        refuse(f"{QUEUED_JOB} {request.name}", [at])
    if request.pods > 1 and request.at_once is None:
        return _separate_jobs(plan, request)
    leaving_out = (CapacityType.QUEUED,) if pods_at_once(request) < request.pods else ()
    return job_objects(plan, without_capacity(plan, request, QUEUED_JOB, leaving_out), QUEUED_JOB, together=False)


def _separate_jobs(plan: Plan, request: JobRequest) -> tuple[KubeObject, ...]:
    one = request.model_copy(update={"pods": 1})
    place = find_place(plan, one, QUEUED_JOB, queued=True)
    refuse(f"{QUEUED_JOB} {request.name}", limit_problems(place, one))
    return tuple(
        _part_job(place, one, index, [*single_pod_rendezvous(one), *_index_variable(index), completions(request)])
        for index in range(request.pods)
    )


def _part_job(place: Place, one: JobRequest, index: int, env: list[KubeObject]) -> KubeObject:
    """Return the Job of one pod. All Jobs of the batch have the same labels and are found by them."""
    job = job_object(place, one, [*env, *folder_of_part(place, one, str(index))], together=False)
    return {**job, "metadata": {**job["metadata"], "name": f"{one.name}-{index}"}}


def _index_variable(index: int) -> list[KubeObject]:
    # The Job controller sets it only on pods of Indexed Jobs.
    return [{"name": INDEX_VARIABLE, "value": str(index)}]
