"""What only GKE has: compute classes that climb a ladder of pools, and limits of the whole cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.plan import ClusterLimits, LadderPlan, PoolPlan, RoutePlan
from capacity.settings.platform import GkeSettings
from capacity.workload_class import Fallback

if TYPE_CHECKING:
    from capacity.planning.ground import Ground

_LONGEST_DELAY_MINUTES = 1440
"""The most that a compute class takes (ComputeClass cloud.google.com/v1, autoscalingPolicy.consolidationDelayMinutes)."""


def ladder_plans(ground: Ground, routes: tuple[RoutePlan, ...]) -> tuple[LadderPlan, ...]:
    """A compute class for each class that moves on at a stock-out, by name.

    Every rung is a pool of the plan: a rung that GKE made by itself would have no ceiling of its own. On Autopilot GKE makes them all.
    """
    if ground.words.compute_class_label is None:
        return ()
    return tuple(
        LadderPlan(route.workload_class, tuple(rung.pool for rung in route.rungs), _delay(ground, route.workload_class))
        for route in routes
        if ground.classes[route.workload_class].fallback is Fallback.STOCK_OUT
    )


def _delay(ground: Ground, workload_class: str) -> int:
    seconds = ground.classes[workload_class].disruption.idle_seconds
    return max(1, min(_LONGEST_DELAY_MINUTES, -(-seconds // 60)))


def cluster_limits(ground: Ground, pools: tuple[PoolPlan, ...]) -> ClusterLimits | None:
    """The sum of all ceilings. Node auto-provisioning's limits bind the scaling of declared pools too, so they are among it."""
    settings = ground.settings
    if not isinstance(settings, GkeSettings) or settings.cluster.existing is not None or ground.autopilot:
        # The limits of a cluster that is there already are its owner's; Autopilot takes none.
        return None
    system, other = settings.cluster.system_pool, settings.cluster.other_work
    machine = ground.machines[system.machine]
    vcpu = sum(pool.ceiling.vcpu for pool in pools) + system.max_nodes * machine.vcpu + other.max_vcpu
    memory_mib = sum(pool.ceiling.memory_mib for pool in pools) + system.max_nodes * machine.memory_mib
    return ClusterLimits(vcpu, -(-memory_mib // 1024) + other.max_memory_gib)
