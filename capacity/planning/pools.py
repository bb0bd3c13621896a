"""What a pool's nodes are: their labels, taints, order, and how they go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.capacity_type import CapacityType
from capacity.gke_rules import CRITICAL_PODS_SECONDS
from capacity.node_labels import (
    CAPACITY_TAINT,
    CLASS_LABEL,
    COMPUTE_CLASS_LABEL,
    ENVIRONMENT_LABEL,
    GKE_QUEUED_LABEL,
    GKE_SPOT_LABEL,
    GPU_RESOURCE,
    OWNER_LABEL,
    TEAM_LABEL,
)
from capacity.plan import PoolPlan, Taint
from capacity.planning.autopilot import asked_for, taints_by_gke
from capacity.planning.capacity_order import merged_order
from capacity.platform import Platform
from capacity.workload_class import Fallback, Removal

if TYPE_CHECKING:
    from capacity.planning.ground import Ground, ResolvedPool
    from capacity.settings.platform import PlatformSettings

# Capacity that ends although the work on it has not: other GPU pods, whose toleration of nvidia.com/gpu the cloud adds by itself, stay off.
_ENDING = frozenset({CapacityType.SPOT, CapacityType.FLEX_START})


def pool_plans(ground: Ground) -> tuple[PoolPlan, ...]:
    """Every pool, by name."""
    ranks = stock_out_ranks(ground)
    return tuple(_pool(ground, ground.pools[name], ranks) for name in sorted(ground.pools))


def stock_out_ranks(ground: Ground) -> dict[CapacityType, int]:
    """The place of each capacity type in the order of the classes that move on at a stock-out; 0 is tried first."""
    orders = [each.capacity for each in ground.classes.values() if each.fallback is Fallback.STOCK_OUT]
    return {each: rank for rank, each in enumerate(merged_order(orders))} if orders else {}


def compute_class_of(ground: Ground, pool: ResolvedPool) -> str | None:
    """The GKE compute class on whose ladder a pool stands: the class that moves on at a stock-out. None elsewhere."""
    if ground.words.compute_class_label is None:
        return None
    ladders = [name for name in sorted(set(pool.settings.serves)) if ground.known_classes[name].fallback is Fallback.STOCK_OUT]
    return ladders[0] if ladders else None


def _pool(ground: Ground, pool: ResolvedPool, ranks: dict[CapacityType, int]) -> PoolPlan:
    words, settings = ground.words, pool.settings
    labels = asked_for(ground, pool) if ground.autopilot else _known_labels(ground, pool)
    if compute_class := compute_class_of(ground, pool):
        labels[COMPUTE_CLASS_LABEL] = compute_class
    ordered = any(each.fallback is Fallback.STOCK_OUT for each in pool.classes)
    # Classes that share a pool share the strictest rule: a node stays for as long as any of them wants it to.
    strictest = Removal.EMPTY if any(each.disruption.remove is Removal.EMPTY for each in pool.classes) else Removal.UNDERUTILIZED
    return PoolPlan(
        name=pool.name,
        machines=tuple(machine.name for machine in pool.machines),
        capacity_type=settings.capacity_type,
        accelerator=pool.gpu.name,
        gpu_model=pool.gpu.model,
        gpus_per_node=pool.gpus_per_node,
        min_nodes=settings.min_nodes,
        max_nodes=pool.max_nodes,
        ceiling=pool.ceiling,
        zones=tuple(sorted(settings.zones or _zones_with_the_machine(ground, pool))),
        labels=dict(sorted(labels.items())),
        owner_labels={**owner_labels(ground.settings), **_its_team(ground, pool)},
        pool_label=None if ground.autopilot else (words.pool_label, pool.name),
        taints=_taints(ground, pool, compute_class),
        serves=tuple(sorted(set(settings.serves))),
        weight=100 - 10 * ranks[settings.capacity_type] if ordered else None,
        removal=strictest,
        idle_seconds=max(each.disruption.idle_seconds for each in pool.classes),
        notice_seconds=_notice(ground, pool),
        max_run_seconds=max_run_seconds(ground, pool),
    )


def owner_labels(settings: PlatformSettings) -> dict[str, str]:
    """What says whose something is, on every object and every node."""
    return {ENVIRONMENT_LABEL: settings.environment, OWNER_LABEL: settings.owner}


def _its_team(ground: Ground, pool: ResolvedPool) -> dict[str, str]:
    """The team of a pool that is closed to every other one. What belongs to a department, its teams may borrow."""
    settings = ground.settings
    teams = [team.name for team in settings.teams if pool.name in team.shares or pool.name in team.unqueued]
    shared = any(pool.name in cohort.shares for cohort in settings.cohorts)
    return {TEAM_LABEL: teams[0]} if len(teams) == 1 and not shared else {}


def _known_labels(ground: Ground, pool: ResolvedPool) -> dict[str, str]:
    """What an autoscaler knows of a node before it is there, besides its pool's name."""
    words = ground.words
    labels = {words.accelerator_label: pool.gpu.name, **ground.facts[pool.settings.capacity_type].autoscaler_labels}
    if words.memory_label is not None:
        labels[words.memory_label] = str(pool.gpu.memory_mib)
    return labels


def _zones_with_the_machine(ground: Ground, pool: ResolvedPool) -> tuple[str, ...]:
    """Those of the platform's zones that offer the pool's machine, as far as that is known: in another, no node could be made."""
    if any(not machine.zones for machine in pool.machines):
        return ground.zones
    offered = {zone for machine in pool.machines for zone in machine.zones.get(ground.region, ())}
    return tuple(zone for zone in ground.zones if zone in offered)


def _taints(ground: Ground, pool: ResolvedPool, compute_class: str | None) -> tuple[Taint, ...]:
    if ground.autopilot:
        return taints_by_gke(ground, pool, compute_class)
    taints = [Taint(GPU_RESOURCE, "present")]
    capacity_type = pool.settings.capacity_type
    on_gke = ground.settings.cloud is Platform.GKE
    if on_gke and capacity_type is CapacityType.QUEUED:
        taints.append(Taint(GKE_QUEUED_LABEL, "true"))
    elif on_gke and capacity_type is CapacityType.SPOT and compute_class is None:
        taints.append(Taint(GKE_SPOT_LABEL, "true"))
    elif capacity_type in _ENDING and compute_class is None:
        taints.append(Taint(CAPACITY_TAINT, capacity_type.value))
    if compute_class is not None:
        taints.append(Taint(COMPUTE_CLASS_LABEL, compute_class))
    elif len(set(pool.settings.serves)) == 1:
        # Only a pool that serves one class says so: classes that share a pool would keep each other out.
        taints.append(Taint(CLASS_LABEL, pool.settings.serves[0]))
    return tuple(taints)


def _notice(ground: Ground, pool: ResolvedPool) -> int | None:
    raised: int | None = getattr(pool.settings, "shutdown_grace_seconds", None)
    if raised is not None and pool.settings.capacity_type is CapacityType.SPOT:
        return raised - CRITICAL_PODS_SECONDS
    return ground.facts[pool.settings.capacity_type].notice_seconds


def max_run_seconds(ground: Ground, pool: ResolvedPool) -> int | None:
    """After how long every node of a pool ends, whatever runs on it; None: never."""
    hours: int | None = getattr(pool.settings, "max_run_hours", None)
    return hours * 3600 if hours is not None else ground.facts[pool.settings.capacity_type].max_run_seconds
