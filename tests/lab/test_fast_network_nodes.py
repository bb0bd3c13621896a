"""Pods that ask for EFA, on real Karpenter with fake nodes: they get a node with so many interfaces, and one that asks for huge pages none.

The KWOK provider offers the interfaces that Karpenter's own provider counts (lab/parts/karpenter.py). The device plugin, which says the
same of a node that is there, and NCCL are not part of this.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from eks_objects import KWOK_NODE_CLASS, NODE_POOL, node_pools

from capacity.catalog.node_labels import EFA_RESOURCE
from capacity.catalog.work_labels import QUEUE_LABEL
from capacity.plan.build import StackPlan, build_plan
from capacity.settings.stack_file import parse_settings
from capacity.workloads.kinds import objects_of
from lab.cluster import POD, Cluster
from lab.exercise.play import JOB, NODE, running_pods, wait_for_no_nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lab.cluster import KubeObject
    from lab.control_plane import ControlPlane

    Register = Callable[[Callable[[], object]], Any]

pytestmark = pytest.mark.lab

STACK = Path(__file__).parents[2] / "stacks" / "Pulumi.dev-eks.yaml"
POOLS = [
    {"name": "a100-efa", "machine": "p4d.24xlarge", "capacity_type": "spot", "max_nodes": 2, "zones": ["us-east-1a"], "efa": True},
    {"name": "a100-plain", "machine": "p4d.24xlarge", "capacity_type": "spot", "max_nodes": 2},
]


@pytest.fixture(scope="module")
def stack() -> StackPlan:
    written = yaml.safe_load(STACK.read_text(encoding="utf-8"))["config"]["flexspot:platform"]
    shares = {str(pool["name"]): 16 for pool in POOLS}
    written |= {"classes": {}, "pools": [{**pool, "serves": ["training"]} for pool in POOLS], "teams": [{"name": "red", "shares": shares}]}
    settings = parse_settings(written, "settings")
    return StackPlan(settings, build_plan(settings), None)  # pyrefly: ignore[bad-argument-type] -- nothing here asks for prices


@pytest.fixture
def ground(stack_lab: ControlPlane, stack: StackPlan, register: Register) -> Iterator[Cluster]:
    """A lab with the pools and the namespace, account and class of the team; no node before, and none afterwards."""
    cluster = Cluster(stack_lab.home.kubeconfig)
    node_class: KubeObject = {"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "lab"}}
    priority: KubeObject = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "gpu-training"}, "value": 1}
    account: KubeObject = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "workloads", "namespace": "red"}}
    pools = node_pools(stack, KWOK_NODE_CLASS, register)
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "red"}})
    cluster.apply(node_class, priority, account, *pools.values())
    yield cluster
    for job in cluster.list(JOB, "red"):
        cluster.delete(JOB, job["metadata"]["name"], "red")
    cluster.wait_for(POD, lambda pods: not pods, "the end of every pod", namespace="red")
    for name in pools:
        cluster.delete(NODE_POOL, name)
    wait_for_no_nodes(cluster)


def rendered(stack: StackPlan, name: str, **fields: Any) -> KubeObject:
    """A gang's Job as Kueue lets it start, without the bucket that a lab does not have."""
    written = {"name": name, "team": "red", "workload_class": "training", "image": "trainer:1", "pods": 2, "gpus": 8, **fields}
    [job] = objects_of(stack.plan, "checkpointed-job", written)
    spec = job["spec"]["template"]["spec"]
    spec["volumes"] = [each for each in spec["volumes"] if "persistentVolumeClaim" not in each]
    kept = {each["name"] for each in spec["volumes"]}
    [container] = spec["containers"]
    container["volumeMounts"] = [each for each in container["volumeMounts"] if each["name"] in kept]
    del job["metadata"]["labels"][QUEUE_LABEL]
    job["spec"]["suspend"] = False
    return job


def test_each_pod_of_a_gang_gets_a_node_with_all_the_interfaces_it_asks_for(ground: Cluster, stack: StackPlan) -> None:
    ground.create(rendered(stack, "gang", fast_network=True))

    pods = ground.wait_for(
        POD, lambda found: running if len(running := running_pods(found)) == 2 else None, "both pods to run", namespace="red"
    )
    nodes = {each["metadata"]["name"]: each for each in ground.list(NODE)}
    used = [nodes[each["spec"]["nodeName"]] for each in pods]
    assert len({each["metadata"]["name"] for each in used}) == 2
    assert {each["metadata"]["labels"]["karpenter.sh/nodepool"] for each in used} == {"a100-efa"}
    assert {each["status"]["capacity"][EFA_RESOURCE] for each in used} == {"4"}
    assert {pod["spec"]["containers"][0]["resources"]["limits"][EFA_RESOURCE] for pod in pods} == {"4"}


def test_for_a_pod_that_asks_for_huge_pages_karpenter_makes_no_node(ground: Cluster, stack: StackPlan) -> None:
    """Which is why rendered pods ask for none, and tell libfabric so."""
    job = rendered(stack, "pages", pods=1, fast_network=True)
    resources = job["spec"]["template"]["spec"]["containers"][0]["resources"]
    for amounts in resources.values():
        amounts["hugepages-2Mi"] = "5120Mi"
    ground.create(job)

    def told(events: list[KubeObject]) -> bool:
        return any("no instance type has enough resources" in str(each.get("message", "")) for each in events)

    ground.wait_for("v1/Event", told, "Karpenter's refusal", namespace="red")
    assert ground.list(NODE) == []
