"""Services and workers on a platform of queues: declared as `flexspot render` does, started, observed while serving. Not a test."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kubernetes import client as kubernetes_client
from kubernetes import config as kubernetes_config
from queue_fixtures import FOUR_L4, queues_of

from flexspot.capacity.catalog.node_labels import ZONE_LABEL
from flexspot.capacity.workloads.kinds import objects_of
from flexspot.capacity.workloads.requests import NAME_LABEL
from flexspot.lab.cluster import POD, condition
from flexspot.lab.exercise.play import NODE, UNTIL_RELEASED, run_time_of_pods, running_pods

if TYPE_CHECKING:
    from collections.abc import Generator

    from queue_fixtures import QueuePlatform
    from queue_objects import Register

    from flexspot.lab.cluster import Cluster, KubeObject

DEPLOYMENT = "apps/v1/Deployment"
WORK_QUEUE = "http://127.0.0.1:5000/1/work"
PEOPLE = "ml-alpha"
"""The group of team alpha's members."""

_DISK = "v1/PersistentVolume"
_EXIT_CODE = "pod-terminate.stage.kwok.x-k8s.io/exit-code"


@contextmanager
def service_platform(cluster: Cluster, register: Register, homes: int) -> Generator[QueuePlatform]:
    """Yield a team that owns a queued pool of Spot nodes and may use an on-demand pool without a queue, with four GPUs per node.

    The nodes, one of the queued pool and two of the other, are each in a separate zone. There are disks for the homes of `homes` notebooks.
    """
    queued = ["training", "interactive", "best-effort"]
    pools = [
        {"name": "l4-spot", "machine": FOUR_L4, "capacity_type": "spot", "max_nodes": 1, "serves": queued},
        {"name": "l4-desk", "machine": FOUR_L4, "capacity_type": "on-demand", "max_nodes": 2, "serves": ["inference"]},
    ]
    team = {"name": "alpha", "shares": {"l4-spot": 4}, "unqueued": {"l4-desk": 8}, "submitters": [PEOPLE]}
    with queues_of(cluster, register, {"l4-spot": 1, "l4-desk": 2}, pools=pools, teams=[team]) as platform:
        put_into_zones(cluster)
        disks = [f"home-{platform.suffix}-{number}" for number in range(homes)]
        cluster.apply(*(_disk(name) for name in disks))
        try:
            yield platform
        finally:
            for name in disks:
                cluster.delete(_DISK, name)


def put_into_zones(cluster: Cluster) -> None:
    """Put each node that was created by hand into a separate zone.

    The scheduler spreads pods by the labels of nodes, and ignores nodes without them.
    """
    for number, node in enumerate(cluster.list(NODE)):
        cluster.patch(NODE, node["metadata"]["name"], {"metadata": {"labels": {ZONE_LABEL: f"zone-{number}"}}})


def declared(platform: QueuePlatform, kind: str, name: str, **fields: Any) -> list[KubeObject]:
    """Apply the objects of a service and return them. Jobs run until they are released."""
    wanted = {"name": name, "team": platform.own("alpha"), "image": "registry.example.com/it:1", "cpu": "1", "memory": "1Gi", **fields}
    objects = objects_of(platform.plan, kind, wanted)
    for each in objects:
        held = each["spec"]["jobTemplate"] if each["kind"] == "CronJob" else each
        if held is not each or each["kind"] == "Job":
            annotations = held["spec"]["template"]["metadata"].setdefault("annotations", {})
            annotations |= run_time_of_pods(UNTIL_RELEASED)
    return platform.cluster.apply(*objects)


def declare_every_kind(platform: QueuePlatform) -> None:
    """Declare three workers and a notebook's session in the queue, which fill a node, and standing services without it.

    These are a server of two replicas, a worker and a notebook.
    """
    declared(platform, "queue-workers", "score", workload_class="best-effort", queue=WORK_QUEUE, workers=len(WORKERS))
    start_session(platform, "ann")
    declared(platform, "model-server", "ranker", workload_class="inference")
    declared(platform, "queue-workers", "pull", workload_class="inference", queue=WORK_QUEUE, workers=1)
    declared(platform, "notebook", "desk", workload_class="inference", home_gib=1)
    # As `kubectl scale` does.
    platform.cluster.patch(DEPLOYMENT, "desk", {"spec": {"replicas": 1}}, platform.own("alpha"))


WORKERS = ("score-0", "score-1", "score-2")
"""The Jobs of the workers of the queue."""


def start_session(platform: QueuePlatform, name: str) -> None:
    """Declare a notebook of the queue and start a session as `kubectl create job --from` does. On SIGTERM, Jupyter exits with 0."""
    *_, pattern = declared(platform, "notebook", name, workload_class="interactive", home_gib=1)
    held = pattern["spec"]["jobTemplate"]
    held["spec"]["template"]["metadata"]["annotations"][_EXIT_CODE] = "0"
    metadata = {**held["metadata"], "name": name, "namespace": pattern["metadata"]["namespace"]}
    platform.cluster.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": held["spec"]})


def ready_pods(pods: list[KubeObject], name: str) -> list[KubeObject]:
    """Return the pods that belong to a service and are ready."""
    own = [each for each in pods if each["metadata"]["labels"].get(NAME_LABEL) == name]
    return [each for each in running_pods(own) if condition(each, "Ready")]


def wait_for_ready(platform: QueuePlatform, name: str, count: int, without: frozenset[str] = frozenset()) -> list[KubeObject]:
    """Return the running pods of a service, as soon as there are `count`, all ready, and none of them is in `without`."""

    def found(pods: list[KubeObject]) -> tuple[list[KubeObject]] | None:
        own = [each for each in pods if each["metadata"]["labels"].get(NAME_LABEL) == name]
        ready = ready_pods(pods, name)
        return (ready,) if len(ready) == len(own) == count and not without & names(ready) else None

    what = f"{count} ready pods of {name}, without {len(without)}"
    [pods] = platform.cluster.wait_for(POD, found, what, namespace=platform.own("alpha"), timeout_seconds=150)
    return pods


def names(pods: list[KubeObject]) -> frozenset[str]:
    return frozenset(each["metadata"]["name"] for each in pods)


def nodes_of(pods: list[KubeObject]) -> set[str]:
    return {each["spec"]["nodeName"] for each in pods}


def replicas(platform: QueuePlatform, name: str) -> int:
    found = platform.cluster.get(DEPLOYMENT, name, platform.own("alpha"))
    assert found is not None
    return found["spec"]["replicas"]


def pod_environment(cluster: Cluster, namespace: str, account: str, folder: Path) -> dict[str, str]:
    """Return the environment of a pod under a service account: the API server's address, and in `folder` its authority and a token."""
    settings = kubernetes_client.Configuration()
    kubernetes_config.load_kube_config(str(cluster.kubeconfig), client_configuration=settings)
    settings.proxy = None
    accounts = kubernetes_client.CoreV1Api(kubernetes_client.ApiClient(settings))
    wanted = kubernetes_client.AuthenticationV1TokenRequest(
        spec=kubernetes_client.V1TokenRequestSpec(audiences=[], expiration_seconds=3600)
    )
    token: Any = accounts.create_namespaced_service_account_token(account, namespace, wanted)
    (folder / "token").write_text(token.status.token, encoding="utf-8")
    (folder / "ca.crt").write_bytes(Path(str(settings.ssl_ca_cert)).read_bytes())
    address = urlsplit(settings.host)
    return {"KUBERNETES_SERVICE_HOST": str(address.hostname), "KUBERNETES_SERVICE_PORT": str(address.port)}


def _disk(name: str) -> KubeObject:
    disk = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/none"}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": disk}
