"""The object of a job, whatever its kind: the Job or JobSet itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.planning.routes import RUN_TIME_ANNOTATION
from capacity.workloads.failure_policy import pod_failure_policy
from capacity.workloads.gang import completions, own_index, rendezvous
from capacity.workloads.job_limits import limit_problems, pods_at_once, run_seconds_of
from capacity.workloads.jobset import jobset_of
from capacity.workloads.names import (
    CHECKPOINT_PATH,
    CHECKPOINT_VARIABLE,
    GANG_SELECTOR,
    GANG_SERVICE,
    QUEUE_LABEL,
    QUEUE_PRIORITY_LABEL,
)
from capacity.workloads.place import find_place
from capacity.workloads.pods import KubeObject, keeps_checkpoints, labels_of, pod_template
from capacity.workloads.refusal import refuse
from capacity.workloads.request import WorkloadType

if TYPE_CHECKING:
    from capacity.plan import Plan
    from capacity.workloads.job_request import JobRequest
    from capacity.workloads.place import Place

_START_SECONDS = 900
"""What is asked of DWS beyond the job's own time, in which a node boots and pulls its image: it would else end before the job may."""


def job_objects(plan: Plan, request: JobRequest, kind: str, *, together: bool) -> tuple[KubeObject, ...]:
    """The one object. With `together` the pods train together, otherwise each does its own part.

    Raises WorkloadError for a request that has no place, or that its class or the team's share is too small for.
    """
    place = find_place(plan, request, kind, queued=True)
    refuse(f"{kind} {request.name}", limit_problems(place, request))
    job = _job(place, request, together=together)
    return (jobset_of(job, request) if together and request.jobset else job,)


def _job(place: Place, request: JobRequest, *, together: bool) -> KubeObject:
    sort = WorkloadType.TRAINING if keeps_checkpoints(place, request) or place.route.checkpoint else WorkloadType.BATCH
    run_seconds = run_seconds_of(place, request)
    several = request.pods > 1
    env: list[KubeObject] = []
    if together:
        env += rendezvous(request)
    elif several:
        env += [completions(request), *_own_folder(place, request)]
    queue = place.queue
    assert queue is not None and run_seconds is not None, "find_place and limit_problems refused"  # noqa: S101, PT018
    annotations = dict(place.route.job_annotations)
    if RUN_TIME_ANNOTATION in annotations:
        # A short request finds capacity sooner than the longest that is allowed.
        annotations[RUN_TIME_ANNOTATION] = str(min(int(annotations[RUN_TIME_ANNOTATION]), run_seconds + _START_SECONDS))
    metadata: KubeObject = {
        "name": request.name,
        "namespace": place.namespace,
        "labels": {
            **labels_of(place, request, sort),
            QUEUE_LABEL: queue.local_queue,
            QUEUE_PRIORITY_LABEL: place.route.priority_class,
        },
    }
    template = pod_template(place, request, sort, env=env, spec={"restartPolicy": "Never"})
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


def _own_folder(place: Place, request: JobRequest) -> list[KubeObject]:
    """Independent pods with checkpoints have a folder each: a pod must not resume from what another has saved."""
    if not keeps_checkpoints(place, request):
        return []
    folder = request.checkpoint_folder or request.name
    path = f"{CHECKPOINT_PATH}/{folder}/$(JOB_INDEX)"
    return [own_index("JOB_INDEX"), {"name": CHECKPOINT_VARIABLE, "value": path}]
