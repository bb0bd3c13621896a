"""The plan's pools as Karpenter's NodePools, the same on EKS and on the local control plane but for the node class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.catalog.workload_classes import Removal
from capacity.plan.cpu_work import OTHER_WORK
from infra.queue_objects import node_taint

if TYPE_CHECKING:
    from capacity.plan.model import Plan, PoolPlan
    from capacity.settings.cluster import OtherWork
    from capacity.settings.pools import Gp3Volume
    from components.karpenter.cpu_node_pool import CpuNodePoolArgs
    from components.karpenter.ec2_node_class import EksNodeDiskArgs
    from components.karpenter.gpu_node_pool import GpuNodePoolArgs, NodeClassRef

SERVICE_DRAIN_SECONDS = 3600
"""How long a drain of a service's node waits for its pods; jobs are waited for to their end."""


def node_pool_args(plan: Plan, pool: PoolPlan, node_class: NodeClassRef) -> GpuNodePoolArgs:
    """The NodePool of one pool of the plan, in the words of a Karpenter of our own."""
    consolidates = pool.removal is Removal.UNDERUTILIZED
    return {
        "pool": pool.name,
        "machines": list(pool.machines),
        "gpus_per_node": pool.gpus_per_node,
        "resource": pool.resource,
        "instance_families": sorted({machine.partition(".")[0] for machine in pool.machines}),
        "capacity_types": [pool.capacity_type.value],
        "zones": list(pool.zones),
        "node_labels": pool.labels,
        "owner_labels": pool.owner_labels,
        "labels": plan.labels,
        "taints": [node_taint(taint) for taint in pool.taints],
        "max_gpus": pool.max_gpus,
        "max_nodes": pool.max_nodes,
        "max_vcpu": pool.ceiling.vcpu,
        "max_memory_mib": pool.ceiling.memory_mib,
        "idle_seconds": pool.idle_seconds,
        "consolidates": consolidates,
        "termination_grace_seconds": SERVICE_DRAIN_SECONDS if consolidates else None,
        "weight": pool.weight,
        "node_class": node_class,
    }


def other_work_args(plan: Plan, room: OtherWork, node_class: NodeClassRef) -> CpuNodePoolArgs:
    """The NodePool of what asks for no GPU."""
    return {
        "pool": OTHER_WORK,
        "labels": plan.labels,
        "owner_labels": plan.labels,
        "max_vcpu": room.max_vcpu,
        "max_memory_gib": room.max_memory_gib,
        "node_class": node_class,
    }


def disk_args(volume: Gp3Volume) -> EksNodeDiskArgs:
    """A node's volume, as node classes of either kind take it."""
    return {"boot_disk_gib": volume.gib, "boot_disk_iops": volume.iops, "boot_disk_throughput_mib": volume.throughput_mib}
