"""Workers that pull from a queue of work items, on capacity that may go at any time: the queue remembers what is not done."""

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
    """How a platform's queue is written, and the longest lease that it grants at once."""

    pattern: re.Pattern[str]
    words: str
    most_lease_seconds: int


_FORMS = {
    Platform.GKE: _QueueForm(
        _PUBSUB, "a subscription such as projects/acme-ai-prod/subscriptions/prod.nlp.work, as the stack's output subscriptions has it", 600
    ),
    Platform.EKS: _QueueForm(
        _SQS,
        "a URL such as https://sqs.us-east-1.amazonaws.com/111122223333/prod_nlp_work, as the output work_queues has it",
        43_200,
    ),
    # A stand-in for SQS.
    Platform.LOCAL: _QueueForm(_ANY_SQS, "the URL of a queue of an SQS that runs on this machine", 43_200),
}


def queue_problems(place: Place, request: QueueWorkersRequest) -> list[SettingsProblem]:
    """An address that is none of the platform's, and a lease that ends while an interrupted worker still writes its result."""
    form, problems = _FORMS[place.plan.cloud], list[SettingsProblem]()
    if not form.pattern.fullmatch(request.queue):
        problems.append(SettingsProblem("queue", repr(request.queue), "is no queue that workers of this platform pull from", form.words))
    least = place.grace_seconds + LEASE_MARGIN_SECONDS
    if not least <= request.lease_seconds <= form.most_lease_seconds:
        problem = f"must outlast the {place.grace_seconds} s that an interrupted worker has by {LEASE_MARGIN_SECONDS}, and be had at once"
        remedy = f"{least} to {form.most_lease_seconds} are allowed; longer tasks live by extensions"
        problems.append(SettingsProblem("lease_seconds", str(request.lease_seconds), problem, remedy))
    return problems


def sqs_region(queue: str, otherwise: str) -> str:
    """The region in a queue's URL."""
    found = _SQS.fullmatch(queue)
    return found["region"] if found else otherwise


_API_VERSION = "keda.sh/v1alpha1"

_POLLING_SECONDS = 30

_CALM_SECONDS = 300
"""How long the queue must be empty before the last worker goes: a new one costs the boot of a GPU node."""

_KEPT_JOBS = 5


def trigger_authentication(place: Place, request: QueueWorkersRequest, labels: Mapping[str, str]) -> KubeObject:
    """As whom KEDA asks: as its own operator, by the cloud's identities for pods."""
    provider = "gcp" if place.plan.cloud is Platform.GKE else "aws"
    return {
        "apiVersion": _API_VERSION,
        "kind": "TriggerAuthentication",
        "metadata": {"name": request.name, "namespace": place.namespace, "labels": dict(labels)},
        "spec": {"podIdentity": {"provider": provider}},
    }


def scaled_job(place: Place, request: QueueWorkersRequest, metadata: Mapping[str, Any], job: Mapping[str, Any], most: int) -> KubeObject:
    """Jobs of one worker each; KEDA gives them the labels that stand here, the queue's among them, so that Kueue admits each."""
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
            # A new image is for the next worker; the ones at work finish.
            "rollout": {"strategy": "gradual"},
            # Items that are being worked on are counted with the queue, and so are the Jobs that do.
            "scalingStrategy": {"strategy": "default"},
            "triggers": [_trigger(place, request)],
        },
    }


def scaled_object(place: Place, request: QueueWorkersRequest, metadata: Mapping[str, Any], most: int) -> KubeObject:
    """The replicas of the Deployment, from none."""
    return {
        "apiVersion": _API_VERSION,
        "kind": "ScaledObject",
        "metadata": dict(metadata),
        "spec": {
            "scaleTargetRef": {"name": request.name},
            "pollingInterval": _POLLING_SECONDS,
            "cooldownPeriod": _CALM_SECONDS,
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
        # With a worker at work the queue is not done.
        "scaleOnInFlight": "true",
    }
    return {"type": "aws-sqs-queue", "metadata": metadata, **authentication}


QUEUE_WORKERS = "QueueWorkers"

QUEUE_VARIABLE = "FLEXSPOT_WORK_QUEUE"
"""For SqsQueue or PubsubQueue of flexspot_runtime: the queue's address."""

LEASE_VARIABLE = "FLEXSPOT_LEASE_SECONDS"
"""Likewise: their `lease_seconds`."""


def queue_workers(plan: Plan, request: QueueWorkersRequest) -> tuple[KubeObject, ...]:
    """The workers, and with `keda` before them who KEDA asks the queue as.

    A class that waits in a queue of Kueue has its workers as jobs, as such queues take nothing that never ends: a Job for each, which ends
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
        [job] = _jobs(plan, request, 1)
        labels = job["metadata"]["labels"]
        metadata = {**job["metadata"], "labels": labels}
        return (trigger_authentication(place, request, _unqueued(labels)), scaled_job(place, request, metadata, job["spec"], most))
    return _jobs(plan, request, most)


def _jobs(plan: Plan, request: QueueWorkersRequest, workers: int) -> tuple[KubeObject, ...]:
    as_job = as_job_request(request, env={**_env(request), **request.env}, pods=workers, run_seconds=request.run_seconds)
    return tuple(relabelled(job, WorkloadType.WORKER) for job in queued_job(plan, as_job))


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
