"""Pods that request EFA, on real Karpenter with fake nodes. They get a node with enough interfaces, and none if they request huge pages.

The KWOK provider offers the interfaces that Karpenter's own provider counts (flexspot/lab/parts.py). The device plugin, which reports the
same of an existing node, and NCCL are not part of this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from eks_objects import pools_on
from program_declarations import shipped

from flexspot.capacity.catalog.node_labels import EFA_RESOURCE, QUEUE_LABEL
from flexspot.capacity.plan.build import StackPlan, build_plan
from flexspot.capacity.settings.stack_file import parse_settings
from flexspot.capacity.workloads.kinds import objects_of
from flexspot.lab.cluster import POD, Cluster
from flexspot.lab.exercise.play import NODE, running_pods

if TYPE_CHECKING:
    from collections.abc import Iterator

    from queue_objects import Register

    from flexspot.lab.cluster import KubeObject
    from flexspot.lab.control_plane import LabControlPlane

pytestmark = [
    pytest.mark.lab,
    pytest.mark.nightly(
        tested_by="test_a_gang_asks_for_the_interfaces_of_its_nodes_where_all_its_pools_have_them, "
        "test_a_pod_has_the_share_of_the_interfaces_that_its_gpus_are_of_the_node, "
        "test_resources_that_come_with_a_node_do_not_keep_a_job_queued"
    ),
]

POOLS = [
    {"name": "a100-efa", "machine": "p4d.24xlarge", "capacity_type": "spot", "max_nodes": 2, "zones": ["us-east-1a"], "efa": True},
    {"name": "a100-plain", "machine": "p4d.24xlarge", "capacity_type": "spot", "max_nodes": 2},
]


@pytest.fixture(scope="module")
def stack() -> StackPlan:
    shares = {str(pool["name"]): 16 for pool in POOLS}
    pools = [{**pool, "serves": ["training"]} for pool in POOLS]
    written = shipped("dev-eks", classes={}, pools=pools, teams=[{"name": "red", "shares": shares}])
    settings = parse_settings(written, "settings")
    return StackPlan(settings, build_plan(settings), None)  # pyrefly: ignore[bad-argument-type] -- nothing here asks for prices


@pytest.fixture
def team_cluster(stack_lab: LabControlPlane, stack: StackPlan, register: Register) -> Iterator[Cluster]:
    """Yield a lab with the pools and the namespace, account and class of the team."""
    priority: KubeObject = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "gpu-training"}, "value": 1}
    account: KubeObject = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "workloads", "namespace": "red"}}
    with pools_on(stack_lab, stack, register, "red") as cluster:
        cluster.apply(priority, account)
        yield cluster


def rendered(stack: StackPlan, name: str, **fields: Any) -> KubeObject:
    """Return a gang's Job as Kueue starts it, without the bucket that a lab does not have."""
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


def test_each_pod_of_a_gang_gets_a_node_with_all_the_interfaces_it_asks_for(team_cluster: Cluster, stack: StackPlan) -> None:
    team_cluster.create(rendered(stack, "gang", fast_network=True))

    pods = team_cluster.wait_for(
        POD, lambda found: running if len(running := running_pods(found)) == 2 else None, "both pods to run", namespace="red"
    )
    nodes = {each["metadata"]["name"]: each for each in team_cluster.list(NODE)}
    used = [nodes[each["spec"]["nodeName"]] for each in pods]
    assert len({each["metadata"]["name"] for each in used}) == 2
    assert {each["metadata"]["labels"]["karpenter.sh/nodepool"] for each in used} == {"a100-efa"}
    assert {each["status"]["capacity"][EFA_RESOURCE] for each in used} == {"4"}
    assert {pod["spec"]["containers"][0]["resources"]["limits"][EFA_RESOURCE] for pod in pods} == {"4"}


def test_karpenter_creates_no_node_for_a_pod_that_requests_huge_pages(team_cluster: Cluster, stack: StackPlan) -> None:
    """Therefore rendered pods request none, and disable them in libfabric."""
    job = rendered(stack, "pages", pods=1, fast_network=True)
    resources = job["spec"]["template"]["spec"]["containers"][0]["resources"]
    for amounts in resources.values():
        amounts["hugepages-2Mi"] = "5120Mi"
    team_cluster.create(job)

    def refused(events: list[KubeObject]) -> bool:
        return any("no instance type has enough resources" in str(each.get("message", "")) for each in events)

    team_cluster.wait_for("v1/Event", refused, "Karpenter's refusal", namespace="red")
    assert team_cluster.list(NODE) == []
