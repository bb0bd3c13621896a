"""What the plan's pools are on GKE Standard: a node pool each, and compute classes for the classes that move on at a stock-out."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pulumi

from capacity.catalog.capacity_type import CapacityType, Origin, facts_of
from capacity.catalog.node_labels import GKE_ACCELERATOR_LABEL
from capacity.settings.cluster import GkeMode
from capacity.settings.pools import GkeNodeOptions
from components.gke.compute_class import ComputeClass
from components.gke.gpu_node_pool import GkeGpuNodePool
from infra.pool_marks import billing_label, node_taint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from capacity.plan.model import Plan, PoolPlan
    from capacity.settings.platform import GkeSettings
    from capacity.settings.pools import GkePool
    from components.gke.cluster import GkeCluster
    from components.gke.compute_class import ComputeClassArgs, ComputeClassPriorityArgs
    from components.gke.existing_cluster import ExistingGkeCluster
    from components.gke.gpu_pool_args import GkeGpuNodePoolArgs, GkeNodeOptionsArgs
    from components.gke.node_identity import GkeNodeIdentity


def declare_node_pools(  # noqa: PLR0913 -- what the pools are made of and what they wait for
    plan: Plan,
    settings: GkeSettings,
    labels: dict[str, str],
    *,
    cluster: GkeCluster | ExistingGkeCluster,
    nodes: GkeNodeIdentity,
    first: Sequence[pulumi.Resource],
) -> None:
    """Registers a node pool for each pool of the plan, after `first`."""
    options = {pool.name: pool for pool in settings.pools}
    for pool in plan.pools:
        args = _pool(plan, pool, options[pool.name], settings, cluster=cluster, nodes=nodes, labels=labels)
        # With a pool of GPUs alone GKE would leave out its own taint, and the controllers would have nowhere to run.
        GkeGpuNodePool(pool.name, args, pulumi.ResourceOptions(depends_on=list(first)))


def _pool(  # noqa: PLR0913 -- a pool is made of exactly these
    plan: Plan,
    pool: PoolPlan,
    options: GkePool,
    settings: GkeSettings,
    *,
    cluster: GkeCluster | ExistingGkeCluster,
    nodes: GkeNodeIdentity,
    labels: dict[str, str],
) -> GkeGpuNodePoolArgs:
    marks = facts_of("gke")[pool.capacity_type].marks[Origin.NODE_POOL]
    set_by_gke = {*marks.labels, GKE_ACCELERATOR_LABEL}
    tainted_by_gke = {taint.key for taint in marks.taints}
    node_options = cast("GkeNodeOptionsArgs", options.model_dump(mode="json", include=set(GkeNodeOptions.model_fields)))
    return {
        **node_options,
        "pool": pool.name,
        "project": settings.project,
        "region": plan.region,
        "cluster": cluster.cluster_name,
        "zones": list(pool.zones),
        "machine": pool.machines[0],
        "accelerator": pool.accelerator,
        "gpus_per_node": pool.gpus_per_node,
        "capacity_type": pool.capacity_type.value,
        "min_nodes": pool.min_nodes,
        "max_nodes": pool.max_nodes,
        "node_labels": {key: value for key, value in pool.labels.items() if key not in set_by_gke} | pool.owner_labels,
        "taints": [node_taint(taint) for taint in pool.taints if taint.key not in tainted_by_gke],
        "resource_labels": labels | billing_label(pool),
        "service_account": nodes.email,
        # A queued pool's run time is its jobs' own, and other types have none to set.
        "max_run_seconds": pool.max_run_seconds if pool.capacity_type is CapacityType.FLEX_START else None,
        "max_pods_per_node": settings.network.max_pods_per_node,
    }


def declare_compute_classes(plan: Plan, settings: GkeSettings, opts: pulumi.ResourceOptions, *, nodes: GkeNodeIdentity) -> None:
    """Registers each compute class of the plan: of the plan's node pools, or on Autopilot of what GKE is to make.

    `nodes` is what the nodes that GKE makes run as.
    """
    autopilot = settings.cluster.mode is GkeMode.AUTOPILOT
    options = {pool.name: pool for pool in settings.pools}
    pools = {pool.name: pool for pool in plan.pools}
    for each in plan.compute_classes:
        named: list[ComputeClassPriorityArgs] = [{"pools": [name]} for name in each.pools]
        args: ComputeClassArgs = {
            "name": each.name,
            "labels": plan.labels,
            "priorities": named,
            "consolidation_delay_minutes": each.consolidation_delay_minutes,
        }
        if autopilot:
            made = [_made(pools[name], options[name]) for name in each.pools]
            args = {**args, "priorities": made, "autopilot": True, "service_account": nodes.email, "owner_labels": plan.labels}
        ComputeClass(f"class-{each.name}", args, opts)


def _made(pool: PoolPlan, options: GkePool) -> ComputeClassPriorityArgs:
    """What GKE is to make for a pool of the plan."""
    reservation = options.reservation
    priority: ComputeClassPriorityArgs = {
        "machine": pool.machines[0],
        "accelerator": pool.accelerator,
        "gpus": pool.gpus_per_node,
        "capacity_type": pool.capacity_type.value,
        "zones": sorted(options.zones) or None,
        "driver": options.gpu_driver.value,
        "max_run_seconds": pool.max_run_seconds if pool.capacity_type is CapacityType.FLEX_START else None,
        "boot_disk_gib": options.boot_disk_gib,
    }
    if reservation is not None and reservation.name is not None:
        priority["reservation"] = {"name": reservation.name, "project": reservation.project}
    return priority
