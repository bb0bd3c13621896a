"""A stand-in for the provisioner of GKE's queued capacity (DWS). It gives each ProvisioningRequest the requested outcome."""

from __future__ import annotations

import hashlib
import threading
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from kubernetes.client.exceptions import ApiException

from flexspot.capacity.catalog.node_labels import GKE_QUEUED_LABEL, GPU_RESOURCE
from flexspot.lab.cluster import NOT_FOUND, Cluster, WaitTimeoutError, condition, status_of

if TYPE_CHECKING:
    from collections.abc import Generator

    from flexspot.lab.cluster import KubeObject


REQUEST_LABEL = "autoscaling.gke.io/provisioning-request"
"""Label that GKE sets on the nodes of a request; its value is the request's ResizeRequestName."""

_FAKE = {"kwok.x-k8s.io/node": "fake"}


def nodes_of(resize_request: str, pod_sets: list[tuple[KubeObject, int]]) -> list[KubeObject]:
    """Return a fake node for each pod of a request, as large as the pod. `pod_sets` are pod templates and their numbers of pods.

    A node has the labels that the pod selects, which are those of the pool of the queue's flavor, and the taints of queued GPU nodes. It
    does not have a taint for one class, which a pool may have in addition.
    """
    templates = [template for template, count in pod_sets for _ in range(count)]
    return [_node(f"{resize_request}-{number}", resize_request, template) for number, template in enumerate(templates)]


def _node(name: str, resize_request: str, template: KubeObject) -> KubeObject:
    pod = template["template"]["spec"]
    # The amounts of one container are enough: a node's amounts need not be exact, and only the GPUs are counted.
    gpus = sum(int(each["resources"]["requests"].get(GPU_RESOURCE, 0)) for each in pod["containers"])
    amounts = {"cpu": "208", "memory": "1872Gi", "pods": "110", GPU_RESOURCE: str(gpus)}
    labels = {**_FAKE, **pod.get("nodeSelector", {}), "kubernetes.io/hostname": name, REQUEST_LABEL: resize_request}
    taints = [
        {"key": GPU_RESOURCE, "value": "present", "effect": "NoSchedule"},
        {"key": GKE_QUEUED_LABEL, "value": "true", "effect": "NoSchedule"},
    ]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": _FAKE},
        "spec": {"taints": taints},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


OUTCOMES_PARAMETER = "lab-outcomes"
"""Parameter of the request: an outcome for each attempt, separated by commas. The last one applies to all later attempts.

A Job sets it by the annotation JOB_ANNOTATION, from which Kueue creates the parameter.
"""

JOB_ANNOTATION = f"provreq.kueue.x-k8s.io/{OUTCOMES_PARAMETER}"

OUTCOME_ANNOTATION = "lab.flexspot.dev/outcome"
"""Annotation on the request itself, which may be set at any time: the outcome from then on, whatever the parameter is."""


class Outcome(StrEnum):
    """Outcome of a request on GKE, shown by the conditions of autoscaling.x-k8s.io/v1."""

    ACCEPTED = "accepted"
    """Waits for capacity."""

    PROVISIONED = "provisioned"
    """All of its nodes are there."""

    REFUSED = "refused"
    """There is no capacity."""

    BOOKING_EXPIRED = "booking-expired"
    """Was provisioned, and the nodes were taken back because no pod used them in time."""

    CAPACITY_REVOKED = "capacity-revoked"
    """Was provisioned and used, and the nodes were taken away."""


_WAITING = (False, "ResourcesNotYetAvailable", "Waiting for resources. Currently there are not enough resources available.")
_DONE = (True, "Provisioned", "Provisioning Request was successfully provisioned.")

_CONDITIONS: dict[Outcome, dict[str, tuple[bool, str, str]]] = {
    Outcome.ACCEPTED: {"Provisioned": _WAITING},
    Outcome.PROVISIONED: {"Provisioned": _DONE},
    Outcome.REFUSED: {"Failed": (True, "OutOfResources", "The zone does not have enough resources available to fulfill the request.")},
    Outcome.BOOKING_EXPIRED: {
        "Provisioned": _DONE,
        "BookingExpired": (True, "BookingExpired", "The capacity was booked for 10 minutes and no pod used it."),
    },
    Outcome.CAPACITY_REVOKED: {
        "Provisioned": _DONE,
        "CapacityRevoked": (True, "CapacityRevoked", "The run duration of the request has passed; its nodes were deleted."),
    },
}


def outcome_of(request: KubeObject) -> Outcome:
    """Return the outcome of a request: from its annotation, else its parameter, else PROVISIONED.

    Raises ValueError for an unknown outcome.
    """
    annotations: dict[str, str] = request["metadata"].get("annotations") or {}
    parameters: dict[str, str] = request["spec"].get("parameters") or {}
    if annotated := annotations.get(OUTCOME_ANNOTATION):
        return Outcome(annotated)
    words = parameters.get(OUTCOMES_PARAMETER, Outcome.PROVISIONED.value)
    each_attempt = [Outcome(word.strip()) for word in words.split(",")]
    # Kueue appends the number of the attempt to a request's name (v0.19.0, provisioning.ProvisioningRequestName).
    attempt = int(request["metadata"]["name"].rpartition("-")[2])
    return each_attempt[min(attempt, len(each_attempt)) - 1]


def conditions_for(outcome: Outcome) -> list[KubeObject]:
    """Return the conditions of a request's status."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    accepted = (True, "Accepted", "Provisioning Request was accepted.")
    return [
        {"type": name, "status": str(true), "reason": reason, "message": message, "lastTransitionTime": now}
        for name, (true, reason, message) in {"Accepted": accepted, **_CONDITIONS[outcome]}.items()
    ]


PROVISIONING_REQUEST = "autoscaling.x-k8s.io/v1/ProvisioningRequest"
PROVISIONING_CLASS = "queued-provisioning.gke.io"

_NODE = "v1/Node"
_LOOK_UP_SECONDS = 2.0
"""Longest time until the provisioner notices that it should stop."""


@contextmanager
def provisioner(cluster: Cluster) -> Generator[None]:
    """Answer the cluster's requests of class queued-provisioning.gke.io inside the `with` block, and remove the nodes at the end.

    The creator of a request chooses its outcome; see OUTCOMES_PARAMETER. Raises errors of the meantime at the end, such as ValueError for
    an unknown outcome.
    """
    running = _Provisioner(Cluster(cluster.kubeconfig))
    thread = threading.Thread(target=running.run, name="dws-provisioner", daemon=True)
    thread.start()
    try:
        yield
    finally:
        running.stopping.set()
        thread.join()
        running.remove_nodes(keep=set())
        # Raised here, so that a wait that failed because of it is shown as its consequence.
        if running.failure is not None:
            raise running.failure


class _Provisioner:
    def __init__(self, cluster: Cluster) -> None:
        self.stopping = threading.Event()
        self.failure: Exception | None = None
        self._cluster = cluster

    def run(self) -> None:
        """Follow the requests until it should stop or an error occurs."""
        while not self.stopping.is_set():
            try:
                self._cluster.wait_for(PROVISIONING_REQUEST, self._look, "a reason to stop", timeout_seconds=_LOOK_UP_SECONDS)
            except WaitTimeoutError:
                continue
            except Exception as error:  # noqa: BLE001 -- raised by the context manager, in the thread that started this one
                self.failure = error
                return

    def remove_nodes(self, keep: set[str]) -> None:
        """Remove the nodes of every request except the resize requests in `keep`."""
        for node in self._cluster.list(_NODE, labels=REQUEST_LABEL):
            if node["metadata"]["labels"][REQUEST_LABEL] not in keep:
                self._cluster.delete(_NODE, node["metadata"]["name"])

    def _look(self, requests: list[KubeObject]) -> bool:
        mine = [each for each in requests if each["spec"]["provisioningClassName"] == PROVISIONING_CLASS]
        outcomes = {_resize_request(each): outcome_of(each) for each in mine}
        for each in mine:
            # An answered request is seen again when its status changes; it must not be answered again.
            if not _has_become(each, outcome_of(each)):
                self._answer(each, outcome_of(each))
        self.remove_nodes(keep={name for name, outcome in outcomes.items() if outcome is Outcome.PROVISIONED})
        return self.stopping.is_set()

    def _answer(self, request: KubeObject, outcome: Outcome) -> None:
        name, namespace = request["metadata"]["name"], request["metadata"]["namespace"]
        try:
            if outcome is Outcome.PROVISIONED:
                # Create the nodes first: those of a provisioned request are registered.
                self._cluster.apply(*nodes_of(_resize_request(request), self._pod_sets(request)))
            details = {} if outcome in {Outcome.ACCEPTED, Outcome.REFUSED} else {"ResizeRequestName": _resize_request(request)}
            status = {"conditions": conditions_for(outcome), "provisioningClassDetails": details}
            self._cluster.patch(PROVISIONING_REQUEST, name, {"status": status}, namespace, subresource="status")
        except ApiException as error:
            # Withdrawn while it was being answered: Kueue deletes the request of an evicted or finished Workload.
            if status_of(error) != NOT_FOUND:
                raise

    def _pod_sets(self, request: KubeObject) -> list[tuple[KubeObject, int]]:
        namespace = request["metadata"]["namespace"]
        named = [(each["podTemplateRef"]["name"], each["count"]) for each in request["spec"]["podSets"]]
        found = [(self._cluster.get("v1/PodTemplate", name, namespace), count) for name, count in named]
        return [(template, count) for template, count in found if template is not None]


def _has_become(request: KubeObject, outcome: Outcome) -> bool:
    wanted = {each["type"] for each in conditions_for(outcome) if each["status"] == "True"}
    return all(condition(request, name) for name in wanted) and bool(request.get("status", {}).get("conditions"))


def _resize_request(request: KubeObject) -> str:
    """Return the name of the resize request that GKE creates for a request: short enough for a label, and always the same.

    It depends on the request's uid. Kueue gives the request after an eviction the same name again, and that one has separate nodes.
    """
    digest = hashlib.sha256(str(request["metadata"]["uid"]).encode()).hexdigest()[:12]
    return f"gke-{digest}"
