"""The NodePools of an EKS stack's plan."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from server_questions import integers

from flexspot.capacity.plan.build import plan_of_stack_file
from flexspot.capacity.settings.platform import EksSettings
from flexspot.components.karpenter.node_pools import GpuNodePool
from flexspot.infra.declaring.eks_pools import driver_taints, gpu_node_pool_args
from flexspot.lab.cluster import POD, Cluster
from flexspot.lab.exercise.play import JOB, wait_for_no_nodes

if TYPE_CHECKING:
    from collections.abc import Generator

    from queue_objects import Register

    from flexspot.capacity.plan.build import StackPlan
    from flexspot.capacity.plan.model import PoolPlan
    from flexspot.components.karpenter.node_pools import GpuNodePoolArgs, NodeClassRef
    from flexspot.lab.cluster import KubeObject
    from flexspot.lab.control_plane import LabControlPlane

NODE_POOL = "karpenter.sh/v1/NodePool"

KWOK_NODE_CLASS: NodeClassRef = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "lab"}
EC2_NODE_CLASS: NodeClassRef = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "nodes"}


def stack_plan(stack: str) -> StackPlan:
    return plan_of_stack_file(Path(__file__).resolve().parents[2] / "stacks" / f"Pulumi.{stack}.yaml")


def pool_args(stack: StackPlan, pool: PoolPlan, node_class: NodeClassRef) -> GpuNodePoolArgs:
    """Return a pool as the EKS program has it, with another node class. One of the lab's stages removes its startup taints."""
    assert isinstance(stack.settings, EksSettings)
    [wanted] = [each for each in stack.settings.pools if each.name == pool.name]
    arguments = gpu_node_pool_args(stack.plan, pool, wanted, driver_taints(stack.settings))
    arguments["node_class"] = node_class
    return arguments


def node_pools(stack: StackPlan, node_class: NodeClassRef, register: Register) -> dict[str, KubeObject]:
    """Return the NodePools of the plan, by name."""

    def declare() -> None:
        for pool in stack.plan.pools:
            GpuNodePool(pool.name, pool_args(stack, pool, node_class))

    return {each["metadata"]["name"]: integers(each) for each in register(declare).of("kubernetes:karpenter.sh/v1:NodePool")}


@contextmanager
def pools_on(lab: LabControlPlane, stack: StackPlan, register: Register, namespace: str) -> Generator[Cluster]:
    """Yield a lab without nodes with a stack's pools and a namespace. Remove them, and all nodes, afterwards."""
    cluster = Cluster(lab.home.kubeconfig)
    node_class: KubeObject = {"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "lab"}}
    pools = node_pools(stack, KWOK_NODE_CLASS, register)
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}, node_class, *pools.values())
    # Pods are refused until the controller manager has created the namespace's default service account.
    cluster.wait_for("v1/ServiceAccount", bool, f"the service account of {namespace}", namespace=namespace)
    yield cluster
    for job in cluster.list(JOB, namespace):
        cluster.delete(JOB, job["metadata"]["name"], namespace)
    cluster.wait_for(POD, lambda pods: not pods, "the end of every pod", namespace=namespace)
    for name in pools:
        cluster.delete(NODE_POOL, name)
    wait_for_no_nodes(cluster)
