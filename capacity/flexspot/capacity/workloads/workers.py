"""Workers that pull from a queue of work items, on capacity that may be reclaimed at any time. The queue remembers unfinished items."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flexspot.capacity.catalog.node_labels import QUEUE_LABEL, QUEUE_PRIORITY_LABEL
from flexspot.capacity.catalog.platform import Platform
from flexspot.capacity.settings.storage import LEASE_MARGIN_SECONDS
from flexspot.capacity.values.errors import SettingsProblem
from flexspot.capacity.workloads.jobs import queued_job
from flexspot.capacity.workloads.place import find_place
from flexspot.capacity.workloads.pods import (
    KubeObject,
    as_job_request,
    count_problems,
    most_gpus,
    own_labels,
    pod_template,
    relabelled,
    selector_of,
)
from flexspot.capacity.workloads.requests import WorkloadType, refuse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flexspot.capacity.plan.model import Plan
    from flexspot.capacity.workloads.place import Place
    from flexspot.capacity.workloads.requests import QueueWorkersRequest


_PUBSUB = re.compile(r"projects/[a-z0-9.:-]+/subscriptions/[A-Za-z][A-Za-z0-9_.~+%-]{2,254}")
_SQS = re.compile(r"https://sqs\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(\.cn)?/\d{12}/[A-Za-z0-9_-]{1,80}")
_ANY_SQS = re.compile(r"https?://[^\s/]+(/[^\s/]+)*")


@dataclass(frozen=True)
class _QueueForm:
    """The format of a platform's queue addresses, and the longest lease that the platform grants at once."""

    pattern: re.Pattern[str]
    words: str
    most_lease_seconds: int


_FORMS = {
    Platform.GKE: _QueueForm(
        _PUBSUB, "use a subscription such as projects/acme-ai-prod/subscriptions/prod.nlp.work, as in the stack's output subscriptions", 600
    ),
    Platform.EKS: _QueueForm(
        _SQS,
        "use a URL such as https://sqs.us-east-1.amazonaws.com/111122223333/prod_nlp_work, as in the stack's output work_queues",
        43_200,
    ),
    # A stand-in for SQS.
    Platform.LOCAL: _QueueForm(_ANY_SQS, "use the URL of a queue of an SQS that runs on this machine", 43_200),
}


def queue_problems(place: Place, request: QueueWorkersRequest) -> list[SettingsProblem]:
    """Return the problems of an address that is not of this platform, and of a lease that ends before an interrupted worker is done."""
    form, problems = _FORMS[place.plan.cloud], list[SettingsProblem]()
    if not form.pattern.fullmatch(request.queue):
        problems.append(SettingsProblem("queue", repr(request.queue), "is not a queue for workers of this platform", form.words))
    least = place.grace_seconds + LEASE_MARGIN_SECONDS
    if not least <= request.lease_seconds <= form.most_lease_seconds:
        problem = f"must be {LEASE_MARGIN_SECONDS} s above the grace period, {place.grace_seconds} s, and within the longest lease"
        remedy = f"allowed: {least} to {form.most_lease_seconds}; longer tasks extend their lease"
        problems.append(SettingsProblem("lease_seconds", str(request.lease_seconds), problem, remedy))
    return problems


def sqs_region(queue: str, otherwise: str) -> str:
    """Return the region in a queue's URL."""
    found = _SQS.fullmatch(queue)
    return found["region"] if found else otherwise


_API_VERSION = "keda.sh/v1alpha1"

_POLLING_SECONDS = 30

_COOLDOWN_SECONDS = 300
"""Time that the queue must be empty before the last worker is removed: a new one has to wait for a GPU node to boot."""

_KEPT_JOBS = 5


def trigger_authentication(place: Place, request: QueueWorkersRequest, labels: Mapping[str, str]) -> KubeObject:
    """Return the identity with which KEDA queries the queue: its own operator's, by the cloud's identities for pods."""
    provider = "gcp" if place.plan.cloud is Platform.GKE else "aws"
    return {
        "apiVersion": _API_VERSION,
        "kind": "TriggerAuthentication",
        "metadata": {"name": request.name, "namespace": place.namespace, "labels": dict(labels)},
        "spec": {"podIdentity": {"provider": provider}},
    }


def scaled_job(place: Place, request: QueueWorkersRequest, metadata: Mapping[str, Any], job: Mapping[str, Any], most: int) -> KubeObject:
    """Return a ScaledJob of one-worker Jobs. KEDA copies the labels here to each Job, also the queue's, so that Kueue admits each."""
    return {
        "apiVersion": _API_VERSION,
        "kind": "ScaledJob",
        "metadata": dict(metadata),
        "spec": {
            "jobTargetRef": dict(job),
            "pollingInterval": _POLLING_SECONDS,
            "minReplicaCount": 0,
            "maxReplicaCount": most,
            "successfulJobsHistoryLimit": _KEPT_JOBS,
            "failedJobsHistoryLimit": _KEPT_JOBS,
            # A new image is for the next worker; running ones finish.
            "rollout": {"strategy": "gradual"},
            # Items in progress count as part of the queue, and so do the Jobs that work on them.
            "scalingStrategy": {"strategy": "default"},
            "triggers": [_trigger(place, request)],
        },
    }


def scaled_object(place: Place, request: QueueWorkersRequest, metadata: Mapping[str, Any], most: int) -> KubeObject:
    """Return the object that scales the Deployment's replicas, from zero."""
    return {
        "apiVersion": _API_VERSION,
        "kind": "ScaledObject",
        "metadata": dict(metadata),
        "spec": {
            "scaleTargetRef": {"name": request.name},
            "pollingInterval": _POLLING_SECONDS,
            "cooldownPeriod": _COOLDOWN_SECONDS,
            "minReplicaCount": 0,
            "maxReplicaCount": most,
            "triggers": [_trigger(place, request)],
        },
    }


def _trigger(place: Place, request: QueueWorkersRequest) -> KubeObject:
    authentication = {"authenticationRef": {"name": request.name}}
    if place.plan.cloud is Platform.GKE:
        metadata = {"subscriptionName": request.queue, "mode": "SubscriptionSize", "value": str(request.items_per_worker)}
        return {"type": "gcp-pubsub", "metadata": metadata, **authentication}
    metadata = {
        "queueURL": request.queue,
        "queueLength": str(request.items_per_worker),
        "awsRegion": sqs_region(request.queue, place.plan.region),
        # The queue is not done while items are in progress.
        "scaleOnInFlight": "true",
    }
    return {"type": "aws-sqs-queue", "metadata": metadata, **authentication}


QUEUE_WORKERS = "QueueWorkers"

QUEUE_VARIABLE = "FLEXSPOT_WORK_QUEUE"
"""Address of the queue, for SqsQueue or PubsubQueue of flexspot_runtime."""

LEASE_VARIABLE = "FLEXSPOT_LEASE_SECONDS"
"""Their `lease_seconds`."""


def queue_workers(plan: Plan, request: QueueWorkersRequest) -> tuple[KubeObject, ...]:
    """Return the workers, preceded with `keda` by the identity for KEDA.

    In a class that waits in a queue of Kueue, workers are jobs, because such queues accept nothing that never ends. There is one Job per
    worker, which ends when the queue is empty, or with `keda` a ScaledJob that creates one Job after the other. In other classes there is a
    Deployment, with `keda` also a ScaledObject. Raises WorkloadError if there is no place for the request, if the team lacks GPUs for the
    workers, and for an unsuitable queue or lease.
    """
    place = find_place(plan, request, QUEUE_WORKERS)
    workload = f"{QUEUE_WORKERS} {request.name}"
    refuse(workload, queue_problems(place, request))
    if request.run_seconds is not None and place.queue is None:
        request = request.model_copy(update={"run_seconds": None})
    most = request.workers or (most_gpus(place) // request.gpus if request.keda else 1)
    refuse(workload, count_problems(place, "workers", max(most, 1), request.gpus))
    if place.queue is None:
        return _deployment(place, request, most)
    if request.keda:
        [job] = _jobs(plan, request, 1)
        labels = job["metadata"]["labels"]
        metadata = {**job["metadata"], "labels": labels}
        return (trigger_authentication(place, request, _unqueued(labels)), scaled_job(place, request, metadata, job["spec"], most))
    return _jobs(plan, request, most)


def _jobs(plan: Plan, request: QueueWorkersRequest, workers: int) -> tuple[KubeObject, ...]:
    as_job = as_job_request(request, env={**_env(request), **request.env}, pods=workers, run_seconds=request.run_seconds)
    return tuple(relabelled(job, WorkloadType.WORKER) for job in queued_job(plan, as_job))


def _deployment(place: Place, request: QueueWorkersRequest, workers: int) -> tuple[KubeObject, ...]:
    complete = request.model_copy(update={"env": {**_env(request), **request.env}})
    template = pod_template(place, complete, WorkloadType.WORKER)
    labels = own_labels(template)
    metadata: dict[str, Any] = {"name": request.name, "namespace": place.namespace, "labels": labels}
    deployment: KubeObject = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            # Absent where KEDA sets it.
            **({} if request.keda else {"replicas": workers}),
            "selector": {"matchLabels": selector_of(request.name, WorkloadType.WORKER)},
            # A rollout needs no spare GPUs: another worker takes a stopped one's item when its lease ends, and no caller waits for an
            # answer.
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
