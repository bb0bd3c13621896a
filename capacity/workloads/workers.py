"""Workers that pull from a queue of work items, on capacity that may go at any time: the queue remembers what is left to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from capacity.workloads.jobs import queued_job
from capacity.workloads.names import QUEUE_LABEL, QUEUE_PRIORITY_LABEL
from capacity.workloads.place import find_place
from capacity.workloads.pods import KubeObject, pod_template
from capacity.workloads.refusal import refuse
from capacity.workloads.request import WorkloadType
from capacity.workloads.service_limits import count_problems, most_gpus
from capacity.workloads.service_pods import as_job_request, own_labels, relabelled, selector_of
from capacity.workloads.workers_queue import queue_problems
from capacity.workloads.workers_scaling import scaled_job, scaled_object, trigger_authentication

if TYPE_CHECKING:
    from capacity.plan import Plan
    from capacity.workloads.place import Place
    from capacity.workloads.workers_request import QueueWorkersRequest

QUEUE_WORKERS = "QueueWorkers"

QUEUE_VARIABLE = "FLEXSPOT_WORK_QUEUE"
"""For SqsQueue or PubsubQueue of flexspot_runtime: the queue's address."""

LEASE_VARIABLE = "FLEXSPOT_LEASE_SECONDS"
"""Likewise: their `lease_seconds`."""


def queue_workers(plan: Plan, request: QueueWorkersRequest) -> tuple[KubeObject, ...]:
    """The workers, and with `keda` before them who KEDA asks the queue as.

    A class that waits in a queue of Kueue has its workers as jobs, as such queues take nothing that never ends: a Job whose pods each end
    when the queue is empty, or with `keda` a ScaledJob that makes one Job after the other. A class without has a Deployment, with `keda` a
    ScaledObject beside it. Raises WorkloadError for a request that has no place, more workers than the team has GPUs for, and a queue or a
    lease that does not fit.
    """
    place = find_place(plan, request, QUEUE_WORKERS)
    whose = f"{QUEUE_WORKERS} {request.name}"
    refuse(whose, queue_problems(place, request))
    if request.run_seconds is not None and place.queue is None:
        request = request.model_copy(update={"run_seconds": None})
    most = request.workers or (most_gpus(place) // request.gpus if request.keda else 1)
    refuse(whose, count_problems(place, "workers", max(most, 1), request.gpus))
    if place.queue is None:
        return _standing(place, request, most)
    if request.keda:
        job = _job(plan, request, 1)
        labels = job["metadata"]["labels"]
        metadata = {**job["metadata"], "labels": labels}
        return (trigger_authentication(place, request, _unqueued(labels)), scaled_job(place, request, metadata, job["spec"], most))
    return (_job(plan, request, most),)


def _job(plan: Plan, request: QueueWorkersRequest, workers: int) -> KubeObject:
    as_job = as_job_request(request, env={**_env(request), **request.env}, pods=workers, run_seconds=request.run_seconds)
    [job] = queued_job(plan, as_job)
    return relabelled(job, WorkloadType.WORKER)


def _standing(place: Place, request: QueueWorkersRequest, workers: int) -> tuple[KubeObject, ...]:
    told = request.model_copy(update={"env": {**_env(request), **request.env}})
    template = pod_template(place, told, WorkloadType.WORKER)
    labels = own_labels(template)
    metadata: dict[str, Any] = {"name": request.name, "namespace": place.namespace, "labels": labels}
    deployment: KubeObject = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            # Left out where KEDA sets it.
            **({} if request.keda else {"replicas": workers}),
            "selector": {"matchLabels": selector_of(request.name, WorkloadType.WORKER)},
            # No spare GPUs for a rollout: what a worker leaves another takes when its lease ends, and nobody waits for an answer.
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": "25%"}},
            "revisionHistoryLimit": 3,
            "template": template,
        },
    }
    if not request.keda:
        return (deployment,)
    return (deployment, trigger_authentication(place, request, labels), scaled_object(place, request, metadata, workers))


def _env(request: QueueWorkersRequest) -> dict[str, str]:
    return {QUEUE_VARIABLE: request.queue, LEASE_VARIABLE: str(request.lease_seconds)}


def _unqueued(labels: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in labels.items() if name not in {QUEUE_LABEL, QUEUE_PRIORITY_LABEL}}
