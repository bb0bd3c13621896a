"""Controllers and their nodes: the real scheduler places them on nodes with exactly the room that the plan assumes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from flexspot.capacity.catalog.machines import machines_of
from flexspot.capacity.catalog.platform import VOCABULARIES
from flexspot.capacity.plan.system_room import SystemRoom, system_room
from flexspot.capacity.settings.platform import EksSettings, GkeSettings
from flexspot.capacity.settings.stack_file import read_stack_file
from flexspot.lab.cluster import POD
from flexspot.lab.exercise.play import running_pods

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flexspot.capacity.catalog.system_pods import SystemPod
    from flexspot.lab.cluster import Cluster, KubeObject

pytestmark = [
    pytest.mark.lab,
    pytest.mark.nightly(tested_by="test_the_default_nodes_have_room_even_if_one_is_lost, test_controllers_have_the_sizes_of_the_plan"),
]

STACKS = Path(__file__).resolve().parents[2] / "stacks"
NODE = "v1/Node"
KEY = "flexspot.dev/system-of"
"""Key of a label and a taint: no pod of another test is placed here, and none of these elsewhere."""


def room_of(stack: str) -> tuple[SystemRoom, int]:
    """Return the system pool of a shipped stack, and its initial number of nodes; two if GKE would create the second for waiting pods."""
    settings = read_stack_file(STACKS / f"Pulumi.{stack}.yaml")
    assert isinstance(settings, GkeSettings | EksSettings)
    cloud, pool = VOCABULARIES[settings.cloud].catalog, settings.cluster.system_pool
    return system_room(settings, cloud, machines_of(cloud)[pool.machine]), max(2, pool.min_nodes)


def node_object(namespace: str, number: int, room: SystemRoom) -> KubeObject:
    amounts = {"cpu": f"{room.of_each.cpu_milli}m", "memory": f"{room.of_each.memory_mib}Mi", "pods": str(room.of_each.pods)}
    name = f"system-{namespace}-{number}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kwok.x-k8s.io/node": "fake", "kubernetes.io/hostname": name, KEY: namespace},
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        },
        "spec": {"taints": [{"key": KEY, "value": namespace, "effect": "NoSchedule"}]},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def workload(pod: SystemPod, number: int, namespace: str) -> KubeObject:
    """Return a DaemonSet, or a Deployment of the pod's copies, which separates them if the pod does."""
    name = f"pod-{number}"
    spec: KubeObject = {
        "nodeSelector": {KEY: namespace},
        # DaemonSets tolerate cordoned nodes automatically. Deployments do not, or their pods would stay on the lost node.
        "tolerations": [{"key": KEY, "operator": "Exists"}],
        "terminationGracePeriodSeconds": 0,
        "containers": [
            {
                "name": "controller",
                "image": "controller:1",
                "resources": {"requests": {"cpu": f"{pod.cpu_milli}m", "memory": f"{pod.memory_mib}Mi"}},
            }
        ],
    }
    if pod.apart:
        term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": name}}}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    template = {"metadata": {"labels": {"app": name}, "annotations": {"flexspot.dev/system-pod": pod.name}}, "spec": spec}
    own: KubeObject = {"selector": {"matchLabels": {"app": name}}, "template": template}
    kind = "DaemonSet" if pod.replicas is None else "Deployment"
    if pod.replicas is not None:
        own["replicas"] = pod.replicas
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": own}


@pytest.fixture
def system_nodes(cluster: Cluster, namespace: str) -> Iterator[Callable[[SystemRoom, int], list[str]]]:
    """Yield a function that creates the test's own fake nodes, with the room of a system pool's nodes."""
    created: list[str] = []

    def make(room: SystemRoom, nodes: int) -> list[str]:
        created.extend(cluster.create(node_object(namespace, number, room))["metadata"]["name"] for number in range(nodes))
        return created

    yield make
    for name in created:
        cluster.delete(NODE, name)


@pytest.mark.parametrize("stack", ["dev-eks", "prod-eks", "dev-gke", "prod-gke"])
def test_the_requests_of_controllers_and_cloud_pods_fit_even_after_losing_a_node(
    stack: str, cluster: Cluster, namespace: str, system_nodes: Callable[[SystemRoom, int], list[str]]
) -> None:
    room, nodes = room_of(stack)
    names = system_nodes(room, nodes)
    daemons = sum(pod.replicas is None for pod in room.pods)
    copies = sum(pod.replicas or 0 for pod in room.pods)
    for number, pod in enumerate(room.pods):
        cluster.create(workload(pod, number, namespace))

    def all_placed(pods: list[KubeObject]) -> list[KubeObject] | None:
        placed = running_pods(pods)
        return placed if len(placed) == daemons * nodes + copies else None

    placed = cluster.wait_for(POD, all_placed, f"the system's pods on {nodes} nodes", namespace=namespace)

    # The busiest node is lost: nothing new is placed there, and its pods are gone.
    on = {name: [pod for pod in placed if pod["spec"]["nodeName"] == name] for name in names}
    lost = max(names, key=lambda name: len(on[name]))
    cluster.patch(NODE, lost, {"spec": {"unschedulable": True}})
    for pod in on[lost]:
        if pod["metadata"]["ownerReferences"][0]["kind"] != "DaemonSet":
            cluster.delete(POD, pod["metadata"]["name"], namespace)
    waits = sum(1 for pod in room.pods if pod.apart and (pod.replicas or 0) > nodes - 1)

    def all_placed_elsewhere(pods: list[KubeObject]) -> bool:
        here = [pod for pod in running_pods(pods) if pod["spec"]["nodeName"] != lost]
        return len(here) == daemons * (nodes - 1) + copies - waits

    cluster.wait_for(POD, all_placed_elsewhere, f"the system's pods on {nodes - 1} nodes", namespace=namespace)
