"""Jobs of several teams on a platform of queues that a real Prometheus monitors through a real kube-state-metrics. Not a test."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from queue_fixtures import FOUR_L4, GUARDS, queues_of

from flexspot.capacity.catalog.node_labels import CAPACITY_TYPE_LABEL, GPU_RESOURCE, INSTANCE_TYPE_LABEL, KARPENTER_POOL_LABEL, TEAM_LABEL
from flexspot.capacity.chargeback.queries import REGION_LABEL
from flexspot.capacity.workloads.kinds import objects_of
from flexspot.lab.cluster import POD
from flexspot.lab.exercise.play import NODE, UNTIL_RELEASED, run_time_of_pods

if TYPE_CHECKING:
    from collections.abc import Generator

    from queue_fixtures import QueuePlatform
    from queue_objects import Register

    from flexspot.lab.cluster import Cluster, KubeObject

SHARES = {"alpha": 4, "beta": 2, "gamma": 2}
"""GPUs of the teams, on two nodes with four each; delta owns none."""

_MACHINE = {INSTANCE_TYPE_LABEL: FOUR_L4, REGION_LABEL: "us-east-1"}
_UNMANAGED = "flexspot.test/unmanaged"


@contextmanager
def monitored_platform(cluster: Cluster, register: Register) -> Generator[QueuePlatform]:
    """Yield three teams with GPUs and one without, on two Spot nodes of four GPUs with the labels of a cloud's machines."""
    pool = {
        "name": "l4-spot",
        "machine": FOUR_L4,
        "node_sharing": True,
        "capacity_type": "spot",
        "max_nodes": 2,
        "serves": ["training", "best-effort"],
    }
    teams: list[dict[str, Any]] = [{"name": team, "shares": {"l4-spot": gpus}} for team, gpus in SHARES.items()]
    teams.append({"name": "delta", "shares": {}})
    # Among the pods that are measured are some that a team may not create.
    with queues_of(cluster, register, {"l4-spot": 2}, pools=[pool], teams=teams, without=GUARDS) as platform:
        for node in cluster.list(NODE, labels=f"{KARPENTER_POOL_LABEL}={platform.own('l4-spot')}"):
            cluster.patch(NODE, node["metadata"]["name"], {"metadata": {"labels": _MACHINE}})
        yield platform


def submit(platform: QueuePlatform, team: str, name: str, *, run_time: str = UNTIL_RELEASED, **fields: Any) -> None:
    """Create a batch of the class training, or with other `fields`. Its pods run for `run_time`, by default until they are released.

    It is one Job, whatever the number of `pods`.
    """
    written = {"name": name, "team": platform.own(team), "workload_class": "training", "image": "trainer:1", "cpu": "1", "memory": "1Gi"}
    written |= {"at_once": fields.get("pods", 1)}
    for each in objects_of(platform.plan, "queued-job", {**written, **fields}):
        if each["kind"] == "Job":
            annotations = each["spec"]["template"]["metadata"].setdefault("annotations", {})
            annotations |= run_time_of_pods(run_time)
        platform.cluster.create(each)


def add_unmanaged_node(platform: QueuePlatform) -> str:
    """Create a node of four GPUs without a real or fake kubelet: pods placed on it stay Pending. Return its name."""
    name = f"node-{platform.suffix}-unmanaged"
    amounts = {"cpu": "96", "memory": "384Gi", "pods": "110", GPU_RESOURCE: "4"}
    labels = {"kubernetes.io/hostname": name, CAPACITY_TYPE_LABEL: "spot", KARPENTER_POOL_LABEL: "unmanaged", **_MACHINE}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "", "lastHeartbeatTime": None}
    platform.cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": {"taints": [{"key": _UNMANAGED, "effect": "NoSchedule"}]},
            "status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]},
        }
    )
    return name


def create_pod(platform: QueuePlatform, team: str, name: str, node: str | None, gpus: int) -> None:
    """Create a team's pod that no queue manages, on `node` or any. It is gone as soon as it is deleted."""
    amounts = {"cpu": "1", "memory": "1Gi", **({GPU_RESOURCE: str(gpus)} if gpus else {})}
    container = {
        "name": "main",
        "image": "trainer:1",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "resources": {"requests": amounts, "limits": amounts},
    }
    spec: KubeObject = {
        "containers": [container],
        "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
        "terminationGracePeriodSeconds": 0,
        # Not of nodes that are not ready: the scheduler waits for those.
        "tolerations": [{"key": key, "operator": "Exists"} for key in (_UNMANAGED, GPU_RESOURCE, "flexspot.dev/capacity-type")],
        **({"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}),
    }
    metadata = {"name": name, "namespace": platform.own(team), "labels": {TEAM_LABEL: platform.own(team)}}
    platform.cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def wait_until_placed(platform: QueuePlatform, team: str, pod: str, phase: str) -> None:
    """Return once a pod has a node and is in `phase`."""

    def placed(pods: list[KubeObject]) -> bool:
        [found] = [each for each in pods if each["metadata"]["name"] == pod]
        return bool(found["spec"].get("nodeName")) and found["status"]["phase"] == phase

    platform.cluster.wait_for(POD, placed, f"{pod} to be {phase} on a node", namespace=platform.own(team))
