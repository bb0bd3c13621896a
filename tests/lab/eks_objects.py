"""The NodePools of an EKS stack's plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from server_questions import integers

from capacity.plan.build import plan_of_stack_file
from capacity.settings.platform import EksSettings
from components.karpenter.gpu_node_pool import GpuNodePool
from infra.eks import driver_taints, gpu_node_pool_args

if TYPE_CHECKING:
    from collections.abc import Callable

    from capacity.plan.build import StackPlan
    from capacity.plan.model import PoolPlan
    from components.karpenter.gpu_node_pool import GpuNodePoolArgs, NodeClassRef
    from lab.cluster import KubeObject

NODE_POOL = "karpenter.sh/v1/NodePool"

KWOK_NODE_CLASS: NodeClassRef = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "lab"}
EC2_NODE_CLASS: NodeClassRef = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "nodes"}


def stack_plan(stack: str) -> StackPlan:
    return plan_of_stack_file(Path(__file__).resolve().parents[2] / "stacks" / f"Pulumi.{stack}.yaml")


def pool_args(stack: StackPlan, pool: PoolPlan, node_class: NodeClassRef) -> GpuNodePoolArgs:
    """A pool as the EKS program has it, on another node class. Its startup taints are taken off by one of the lab's stages."""
    assert isinstance(stack.settings, EksSettings)
    [wanted] = [each for each in stack.settings.pools if each.name == pool.name]
    arguments = gpu_node_pool_args(stack.plan, pool, wanted, driver_taints(stack.settings))
    arguments["node_class"] = node_class
    return arguments


def node_pools(stack: StackPlan, node_class: NodeClassRef, register: Callable[[Callable[[], object]], Any]) -> dict[str, KubeObject]:
    """What the plan's pools render, by name."""

    def declare() -> None:
        for pool in stack.plan.pools:
            GpuNodePool(pool.name, pool_args(stack, pool, node_class))

    return {each["metadata"]["name"]: integers(each) for each in register(declare).of("kubernetes:karpenter.sh/v1:NodePool")}
