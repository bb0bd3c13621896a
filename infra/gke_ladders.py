"""Compute classes: the ladders of the classes that move on at a stock-out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.catalog.capacity_type import CapacityType
from capacity.settings.cluster import GkeMode
from components.gke.compute_class import ComputeClass

if TYPE_CHECKING:
    import pulumi

    from capacity.plan.model import Plan, PoolPlan
    from capacity.settings.platform import GkeSettings
    from capacity.settings.pools import GkePool
    from components.gke.compute_class import ComputeClassArgs
    from components.gke.compute_class_rungs import ComputeClassRungArgs
    from components.gke.node_identity import GkeNodeIdentity


def declare_compute_classes(plan: Plan, settings: GkeSettings, opts: pulumi.ResourceOptions, *, nodes: GkeNodeIdentity) -> None:
    """Registers a compute class for each ladder: of the plan's node pools, or on Autopilot of what GKE is to make.

    `nodes` is what the nodes that GKE makes run as.
    """
    autopilot = settings.cluster.mode is GkeMode.AUTOPILOT
    options = {pool.name: pool for pool in settings.pools}
    pools = {pool.name: pool for pool in plan.pools}
    for ladder in plan.ladders:
        named: list[ComputeClassRungArgs] = [{"pools": [name]} for name in ladder.pools]
        args: ComputeClassArgs = {
            "name": ladder.name,
            "labels": plan.labels,
            "rungs": named,
            "consolidation_delay_minutes": ladder.consolidation_delay_minutes,
        }
        if autopilot:
            made = [_made(pools[name], options[name]) for name in ladder.pools]
            args = {**args, "rungs": made, "autopilot": True, "service_account": nodes.email, "owner_labels": plan.labels}
        ComputeClass(f"class-{ladder.name}", args, opts)


def _made(pool: PoolPlan, options: GkePool) -> ComputeClassRungArgs:
    """What GKE is to make for a pool of the plan."""
    reservation = options.reservation
    rung: ComputeClassRungArgs = {
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
        rung["reservation"] = {"name": reservation.name, "project": reservation.project}
    return rung
