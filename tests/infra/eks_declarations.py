"""Declarations of the shipped EKS stacks, in the terms of AWS and Karpenter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from program_declarations import Declarations

    from flexspot.capacity.plan.model import Plan

CLUSTER = "aws:eks/cluster:Cluster"
SYSTEM_NODES = "aws:eks/nodeGroup:NodeGroup cluster-system-nodes"
RELEASE = "kubernetes:helm.sh/v3:Release"
NODE_POOL = "kubernetes:karpenter.sh/v1:NodePool"
NODE_CLASS = "kubernetes:karpenter.k8s.aws/v1:EC2NodeClass"
OTHER_WORK = "other-work"


def gpu_pools(declarations: Declarations) -> dict[str, dict[str, Any]]:
    """Return the specs of the GPU NodePools by name."""
    found = {each["metadata"]["name"]: each["spec"] for each in declarations.inputs_of(NODE_POOL)}
    return {name: spec for name, spec in found.items() if name != OTHER_WORK}


def node_classes(declarations: Declarations) -> dict[str, dict[str, Any]]:
    """Return the specs of the node classes by name."""
    return {each["metadata"]["name"]: each["spec"] for each in declarations.inputs_of(NODE_CLASS)}


def requirements(spec: dict[str, Any]) -> dict[str, list[str]]:
    """Return the values that a NodePool allows for each label."""
    return {each["key"]: each["values"] for each in spec["template"]["spec"]["requirements"]}


def node_labels(pool: str, spec: dict[str, Any]) -> dict[str, str]:
    """Return the labels of a pool's nodes before they boot: Karpenter sets the pool's own labels and those with one value."""
    return {"karpenter.sh/nodepool": pool} | {key: values[0] for key, values in requirements(spec).items() if len(values) == 1}


def ceilings(plan: Plan) -> dict[str, dict[str, str]]:
    """Return each pool's ceiling in the plan, in the form of a NodePool's limits."""
    return {
        pool.name: {
            "nvidia.com/gpu": str(pool.max_gpus),
            "nodes": str(pool.max_nodes),
            "cpu": str(pool.ceiling.vcpu),
            "memory": f"{pool.ceiling.memory_mib}Mi",
        }
        for pool in plan.pools
    }
