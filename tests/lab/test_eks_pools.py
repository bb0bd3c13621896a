"""The pools of the EKS stack on real Kubernetes and Karpenter, with fake nodes: the same objects, but for the node class.

What stands in for AWS: KWOK plays the nodes and what runs on them, and takes off the startup taints of storage drivers as these would. An
interruption is the deletion of the node's NodeClaim, which is what Karpenter's interruption controller does on a Spot warning
(pkg/controllers/interruption/utils.go of the AWS provider v1.14.1); the warning's way through EventBridge and SQS is not part of this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from eks_objects import EC2_NODE_CLASS, KWOK_NODE_CLASS, NODE_POOL, node_pools, stack_plan

from lab.cluster import POD, Cluster, condition
from lab.exercise.play import JOB, NODE, gpu_job, release, running_pods, wait_for_completion, wait_for_no_nodes, wait_for_running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.plan.build import StackPlan
    from capacity.plan.model import Plan
    from lab.cluster import KubeObject
    from lab.control_plane import ControlPlane

NODE_CLAIM = "karpenter.sh/v1/NodeClaim"
POOL = "t4-spot"

Register = Callable[[Callable[[], object]], Any]


@pytest.fixture(scope="module")
def stack() -> StackPlan:
    return stack_plan("dev-eks")


@pytest.fixture(scope="module")
def plan(stack: StackPlan) -> Plan:
    return stack.plan


def test_the_lab_has_the_stacks_own_pools_but_for_the_node_class(stack: StackPlan, register: Register) -> None:
    on_aws, in_lab = (node_pools(stack, node_class, register) for node_class in (EC2_NODE_CLASS, KWOK_NODE_CLASS))

    assert set(on_aws) == set(in_lab) == {"l4-spot", "t4-spot"}
    for name, pool in in_lab.items():
        node = pool["spec"]["template"]["spec"]
        assert node["nodeClassRef"] == {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "lab"}
        node["nodeClassRef"] = on_aws[name]["spec"]["template"]["spec"]["nodeClassRef"]
    assert in_lab == on_aws


@pytest.fixture
def pools(stack_lab: ControlPlane, stack: StackPlan, register: Register) -> Iterator[Cluster]:
    """A lab with the stack's pools and a namespace `work`; no node before, and none afterwards."""
    cluster = Cluster(stack_lab.home.kubeconfig)
    assert cluster.list(NODE) == []
    node_class: KubeObject = {"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "lab"}}
    namespace: KubeObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "work"}}
    made = node_pools(stack, KWOK_NODE_CLASS, register)
    cluster.apply(node_class, namespace, *made.values())
    # Pods are refused until the controller manager has made the namespace's default service account.
    cluster.wait_for("v1/ServiceAccount", bool, "the service account of work", namespace="work")
    yield cluster
    for job in cluster.list(JOB, "work"):
        cluster.delete(JOB, job["metadata"]["name"], "work")
    cluster.wait_for(POD, lambda pods: not pods, "the end of every pod", namespace="work")
    for name in made:
        cluster.delete(NODE_POOL, name)
    wait_for_no_nodes(cluster)


def job(plan: Plan, name: str) -> KubeObject:
    """A Job of one T4, as Kueue lets it start: with the selector and the tolerations of the pool's flavor."""
    [flavor] = [each for each in plan.flavors if each.pools == (POOL,)]
    made = gpu_job(name, "work", "")
    del made["metadata"]["labels"]
    spec = made["spec"]["template"]["spec"]
    del spec["priorityClassName"]
    spec["nodeSelector"] = flavor.node_labels
    spec["tolerations"] = [
        {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect.value} for taint in flavor.tolerated
    ]
    # A failure that is counted would end the Job: what is taken away by the cloud is none.
    made["spec"]["backoffLimit"] = 0
    return made


def keys(taints: list[dict[str, Any]]) -> set[str]:
    return {taint["key"] for taint in taints}


@pytest.mark.lab
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


@pytest.mark.lab
@pytest.mark.parametrize(
    "lifted,said",
    [
        # Of limits that agree Karpenter looks at the nodes first.
        ((), f"node limits have been exhausted for nodepool (NodePool={POOL})"),
        (("nodes", "cpu", "memory"), f"all available instance types exceed limits for nodepool (NodePool={POOL})"),
    ],
    ids=["all", "gpus-alone"],
)
def test_the_limits_stop_the_next_node_and_the_gpu_limit_does_so_alone(
    lifted: tuple[str, ...], said: str, pools: Cluster, plan: Plan
) -> None:
    [pool] = [each for each in plan.pools if each.name == POOL]
    pools.patch(NODE_POOL, POOL, {"spec": {"limits": dict.fromkeys(lifted)}})
    for number in range(pool.max_gpus):
        pools.create(job(plan, f"trainer-{number}"))
    running = wait_for_running(pools, "work", pool.max_gpus)

    pools.create(job(plan, "one-too-many"))

    def refused(events: list[KubeObject]) -> bool:
        about = [event for event in events if event["involvedObject"]["name"].startswith("one-too-many-")]
        return any(said in event.get("message", "") for event in about)

    pools.wait_for("v1/Event", refused, "Karpenter's refusal of a fifth node", namespace="work")
    assert sum(int(node["status"]["capacity"]["nvidia.com/gpu"]) for node in pools.list(NODE)) == pool.max_gpus
    assert {pod["metadata"]["uid"] for pod in running_pods(pools.list(POD, "work"))} == {pod["metadata"]["uid"] for pod in running}


@pytest.mark.lab
def test_the_job_of_an_interrupted_node_runs_again_on_another_and_has_not_failed(pools: Cluster, plan: Plan) -> None:
    pools.create(job(plan, "trainer"))
    [first] = wait_for_running(pools, "work", 1)
    lost = first["spec"]["nodeName"]
    [claim] = pools.list(NODE_CLAIM)

    pools.delete(NODE_CLAIM, claim["metadata"]["name"])

    def replaced(pods: list[KubeObject]) -> KubeObject | None:
        return next((pod for pod in running_pods(pods) if pod["metadata"]["uid"] != first["metadata"]["uid"]), None)

    second = pools.wait_for(POD, replaced, "the Job's next pod", namespace="work", timeout_seconds=180)
    assert second["spec"]["nodeName"] != lost

    pools.wait_for(NODE, lambda nodes: lost not in {node["metadata"]["name"] for node in nodes}, f"the end of {lost}")
    found = pools.get(JOB, "trainer", "work")
    assert found is not None
    assert found["status"].get("failed", 0) == 0, "backoffLimit 0 would have ended the Job at the first counted failure"
    assert condition(found, "Failed") is None
    release(pools, "work")
    wait_for_completion(pools, "work", 1)
