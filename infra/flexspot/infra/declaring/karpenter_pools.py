"""The plan's pools as Karpenter's NodePools, the same on EKS and on the local control plane but for the node class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexspot.capacity.catalog.workload_classes import Removal
from flexspot.capacity.plan.cpu_work import OTHER_WORK
from flexspot.components.karpenter.node_pools import CpuNodePoolArgs, GpuNodePoolArgs
from flexspot.components.shared_args import arguments

if TYPE_CHECKING:
    from flexspot.capacity.plan.model import Plan, PoolPlan
    from flexspot.capacity.settings.cluster import OtherWork
    from flexspot.components.karpenter.node_pools import NodeClassRef

SERVICE_DRAIN_SECONDS = 3600
"""How long a drain of a service's node waits for its pods; jobs are waited for to their end."""


def node_pool_args(plan: Plan, pool: PoolPlan, node_class: NodeClassRef) -> GpuNodePoolArgs:
    """The NodePool of one pool of the plan, in the words of a Karpenter of our own."""
    consolidates = pool.removal is Removal.UNDERUTILIZED
    return arguments(
        GpuNodePoolArgs,
        pool,
        plan,
        pool=pool.name,
        instance_families=sorted({machine.partition(".")[0] for machine in pool.machines}),
        capacity_types=[pool.capacity_type],
        node_labels=pool.labels,
        labels=plan.labels,
        max_vcpu=pool.ceiling.vcpu,
        max_memory_mib=pool.ceiling.memory_mib,
        consolidates=consolidates,
        termination_grace_seconds=SERVICE_DRAIN_SECONDS if consolidates else None,
        node_class=node_class,
    )


def other_work_args(plan: Plan, room: OtherWork, node_class: NodeClassRef) -> CpuNodePoolArgs:
    """The NodePool of what asks for no GPU."""
    return arguments(CpuNodePoolArgs, room, plan, pool=OTHER_WORK, owner_labels=plan.labels, node_class=node_class)
