"""KEDA's objects: workers for as long as there is work.

Written from KEDA's documentation (keda.sh, 2.16 and later: ScaledJob, ScaledObject, TriggerAuthentication, the scalers aws-sqs-queue and
gcp-pubsub); an API server with the definitions of 2.18.1 takes them, and no operator has acted on them. The operator asks the queue as
itself: it needs sqs:GetQueueAttributes on it, or roles/monitoring.viewer on the project. Reading the queue as the team is not possible for
it: the team's service account names its role by Pod Identity, of which KEDA reads nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from capacity.platform import Platform
from capacity.workloads.workers_queue import sqs_region

if TYPE_CHECKING:
    from collections.abc import Mapping

    from capacity.workloads.place import Place
    from capacity.workloads.pods import KubeObject
    from capacity.workloads.workers_request import QueueWorkersRequest

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
