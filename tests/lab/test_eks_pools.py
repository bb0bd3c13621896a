"""The pools of the EKS stack on real Kubernetes and Karpenter, with fake nodes: the same objects, except the node class.

In place of AWS, KWOK simulates the nodes and their pods, and removes the startup taints of storage drivers as the drivers would.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from eks_objects import NODE_POOL, pools_on, stack_plan

from flexspot.lab.cluster import POD, Cluster
from flexspot.lab.exercise.play import NODE, gpu_job, release, running_pods, wait_for_completion, wait_for_no_nodes, wait_for_running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from queue_objects import Register

    from flexspot.capacity.plan.build import StackPlan
    from flexspot.capacity.plan.model import Plan
    from flexspot.lab.cluster import KubeObject
    from flexspot.lab.control_plane import LabControlPlane

pytestmark = [
    pytest.mark.lab,
    pytest.mark.nightly(
        tested_by="test_a_node_that_karpenter_gives_up_is_replaced_with_its_pod, "
        "test_a_ready_node_loses_the_taints_of_storage_drivers_and_keeps_the_others, "
        "test_a_pool_has_its_ceiling_its_taints_and_labels_that_are_known_before_boot"
    ),
]

NODE_CLAIM = "karpenter.sh/v1/NodeClaim"
POOL = "t4-spot"


@pytest.fixture(scope="module")
def stack() -> StackPlan:
    return stack_plan("dev-eks")


@pytest.fixture(scope="module")
def plan(stack: StackPlan) -> Plan:
    return stack.plan


@pytest.fixture
def pools(stack_lab: LabControlPlane, stack: StackPlan, register: Register) -> Iterator[Cluster]:
    with pools_on(stack_lab, stack, register, "work") as cluster:
        yield cluster


def job(plan: Plan, name: str) -> KubeObject:
    """Return a Job of one T4, as Kueue starts it: with the selector and the tolerations of the pool's flavor."""
    [flavor] = [each for each in plan.flavors if each.pools == (POOL,)]
    created = gpu_job(name, "work", "")
    del created["metadata"]["labels"]
    spec = created["spec"]["template"]["spec"]
    del spec["priorityClassName"]
    spec["nodeSelector"] = flavor.node_labels
    spec["tolerations"] = [
        {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect.value} for taint in flavor.tolerated
    ]
    # A counted failure would end the Job: a node that the cloud takes away must not count.
    created["spec"]["backoffLimit"] = 0
    return created


def keys(taints: list[dict[str, Any]]) -> set[str]:
    return {taint["key"] for taint in taints}


def test_a_waiting_job_gets_a_spot_node_of_its_pool_from_zero_and_the_empty_node_goes(pools: Cluster, plan: Plan) -> None:
    pools.create(job(plan, "trainer"))
    [pod] = wait_for_running(pools, "work", 1)

    [node], [claim] = pools.list(NODE), pools.list(NODE_CLAIM)
    labels = node["metadata"]["labels"]
    assert pod["spec"]["nodeName"] == node["metadata"]["name"]
    assert labels["karpenter.sh/nodepool"] == POOL
    assert labels["karpenter.sh/capacity-type"] == "spot"
    assert labels["node.kubernetes.io/instance-type"] == "g4dn.xlarge"
    assert labels["karpenter.k8s.aws/instance-gpu-name"] == "t4"
    assert labels["topology.kubernetes.io/zone"] in {"us-east-1a", "us-east-1b"}
    assert node["status"]["capacity"]["nvidia.com/gpu"] == "1"
    assert keys(claim["spec"]["startupTaints"]) == {"ebs.csi.aws.com/agent-not-ready", "s3.csi.aws.com/agent-not-ready"}
    assert keys(node["spec"]["taints"]) == {"nvidia.com/gpu", "flexspot.dev/capacity-type"}, "the drivers' startup taints are gone"

    release(pools, "work")
    wait_for_completion(pools, "work", 1)
    wait_for_no_nodes(pools)
    pools.wait_for(NODE_CLAIM, lambda claims: not claims, "the end of the node's claim")


def test_the_limit_of_gpus_stops_the_next_node(pools: Cluster, plan: Plan) -> None:
    [pool] = [each for each in plan.pools if each.name == POOL]
    pools.patch(NODE_POOL, POOL, {"spec": {"limits": dict.fromkeys(("nodes", "cpu", "memory"))}})
    for number in range(pool.max_gpus):
        pools.create(job(plan, f"trainer-{number}"))
    running = wait_for_running(pools, "work", pool.max_gpus)

    pools.create(job(plan, "one-too-many"))

    def refused(events: list[KubeObject]) -> bool:
        about = [event for event in events if event["involvedObject"]["name"].startswith("one-too-many-")]
        said = f"all available instance types exceed limits for nodepool (NodePool={POOL})"
        return any(said in event.get("message", "") for event in about)

    pools.wait_for("v1/Event", refused, "Karpenter's refusal of a fifth node", namespace="work")
    assert sum(int(node["status"]["capacity"]["nvidia.com/gpu"]) for node in pools.list(NODE)) == pool.max_gpus
    assert {pod["metadata"]["uid"] for pod in running_pods(pools.list(POD, "work"))} == {pod["metadata"]["uid"] for pod in running}
