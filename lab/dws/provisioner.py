"""The provisioner: watches ProvisioningRequests and makes each become what it is told to."""

from __future__ import annotations

import hashlib
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kubernetes.client.exceptions import ApiException

from lab.cluster import NOT_FOUND, Cluster, WaitTimeoutError, condition, status_of
from lab.dws.nodes import REQUEST_LABEL, nodes_of
from lab.dws.outcomes import Outcome, conditions_for, outcome_of

if TYPE_CHECKING:
    from collections.abc import Generator

    from lab.cluster import KubeObject

PROVISIONING_REQUEST = "autoscaling.x-k8s.io/v1/ProvisioningRequest"
PROVISIONING_CLASS = "queued-provisioning.gke.io"

_NODE = "v1/Node"
_LOOK_UP_SECONDS = 2.0
"""How long the provisioner may take to notice that it is to stop."""


@contextmanager
def provisioner(cluster: Cluster) -> Generator[None]:
    """Answers the cluster's requests of class queued-provisioning.gke.io while the context lasts, and removes its nodes at the end.

    What becomes of a request is said by whoever makes it; see lab.dws.outcomes. Raises at the end what went wrong in the meantime, such
    as ValueError for an outcome that there is not.
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
        # Here, so that a wait which came to nothing because of it is told as its consequence.
        if running.failure is not None:
            raise running.failure


class _Provisioner:
    def __init__(self, cluster: Cluster) -> None:
        self.stopping = threading.Event()
        self.failure: Exception | None = None
        self._cluster = cluster

    def run(self) -> None:
        """Follows the requests until it is to stop or something goes wrong."""
        while not self.stopping.is_set():
            try:
                self._cluster.wait_for(PROVISIONING_REQUEST, self._look, "a reason to stop", timeout_seconds=_LOOK_UP_SECONDS)
            except WaitTimeoutError:
                continue
            except Exception as error:  # noqa: BLE001 -- told by the context manager, on the thread of who started this one
                self.failure = error
                return

    def remove_nodes(self, keep: set[str]) -> None:
        """Removes the nodes of every request but those of the resize requests in `keep`."""
        for node in self._cluster.list(_NODE, labels=REQUEST_LABEL):
            if node["metadata"]["labels"][REQUEST_LABEL] not in keep:
                self._cluster.delete(_NODE, node["metadata"]["name"])

    def _look(self, requests: list[KubeObject]) -> bool:
        mine = [each for each in requests if each["spec"]["provisioningClassName"] == PROVISIONING_CLASS]
        outcomes = {_resize_request(each): outcome_of(each) for each in mine}
        for each in mine:
            # An answered request is seen again when its status changes: that is no reason to answer anew.
            if not _has_become(each, outcome_of(each)):
                self._answer(each, outcome_of(each))
        self.remove_nodes(keep={name for name, outcome in outcomes.items() if outcome is Outcome.PROVISIONED})
        return self.stopping.is_set()

    def _answer(self, request: KubeObject, outcome: Outcome) -> None:
        name, namespace = request["metadata"]["name"], request["metadata"]["namespace"]
        try:
            if outcome is Outcome.PROVISIONED:
                # The nodes come first: a provisioned request's are registered.
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
    """The name of the resize request that GKE makes for a request: short enough for a label, and the same each time.

    By the request's uid: Kueue gives the one that follows an eviction the same name again, and that has nodes of its own.
    """
    digest = hashlib.sha256(str(request["metadata"]["uid"]).encode()).hexdigest()[:12]
    return f"gke-{digest}"
