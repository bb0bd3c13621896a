"""What a pool's nodes are: labels, taints, order, how they go; on GKE also compute classes, Autopilot and the cluster's limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexspot.capacity.catalog.accelerators import TPU
from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.gke_accelerators import gpudirect
from flexspot.capacity.catalog.machines import Architecture
from flexspot.capacity.catalog.node_labels import (
    ARCHITECTURE_LABEL,
    CAPACITY_TAINT,
    CLASS_LABEL,
    COMPUTE_CLASS_LABEL,
    GKE_ACCELERATOR_COUNT_LABEL,
    GKE_GPU_CLIENTS_LABEL,
    GKE_GPU_DRIVER_LABEL,
    GKE_GPU_PARTITION_LABEL,
    GKE_GPU_SHARING_LABEL,
    GKE_QUEUED_LABEL,
    GKE_RESERVATION_NAME_LABEL,
    GKE_RESERVATION_PROJECT_LABEL,
    GKE_SPOT_LABEL,
    GKE_TPU_TOPOLOGY_LABEL,
    OWN_LABELS,
    TEAM_LABEL,
    ZONE_LABEL,
)
from flexspot.capacity.catalog.platform import Platform
from flexspot.capacity.catalog.workload_classes import Fallback, Removal
from flexspot.capacity.plan.model import ClusterLimits, PoolPlan, Taint
from flexspot.capacity.settings.gke_rules import CRITICAL_PODS_SECONDS
from flexspot.capacity.settings.platform import GkeSettings
from flexspot.capacity.settings.pools import EksPool, GkePool, GpuDriver, NodeNetwork

if TYPE_CHECKING:
    from flexspot.capacity.plan.resolve import ResolvedPool, ResolvedSettings
    from flexspot.capacity.settings.platform import PlatformSettings


def asked_for(resolved: ResolvedSettings, pool: ResolvedPool) -> dict[str, str]:
    """The labels by which a pod asks Autopilot for a node of `pool`; no label names the pool itself.

    The GPU and how many of it a node has: without the count every node gets one pod, however few of its GPUs that uses. Then what the
    capacity type asks by (flexspot/capacity/catalog/capacity_types/gke.yaml), and the pool's own options. Which machine it is GKE decides
    by what the pods request. How GPUs are shared, and in which zone, are labels of GKE's too.
    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/autopilot-gpus (as of 2026-04-10): several pods on a node from
    1.29.2-gke.1355000 on, time-sharing and MIG from 1.29.3-gke.1093000 on, the driver from 1.29.2-gke.1108000 on. The labels of shared and
    partitioned GPUs are those that GoogleCloudPlatform/cluster-autoscaler reads, pkg/autoprovisioning/gpu_requests.go.
    """
    settings, facts = pool.settings, resolved.facts[pool.settings.capacity_type].autopilot
    labels = {**pool.device_labels, GKE_ACCELERATOR_COUNT_LABEL: str(pool.gpus_per_node)}
    labels |= facts.selector if facts else {}
    if isinstance(settings, GkePool):
        labels |= _reserved(settings) | _divided(settings)
        if settings.gpu_driver is GpuDriver.LATEST:
            labels[GKE_GPU_DRIVER_LABEL] = settings.gpu_driver.value
    if len(settings.zones) == 1:
        labels[ZONE_LABEL] = settings.zones[0]
    return labels


def _reserved(settings: GkePool) -> dict[str, str]:
    reservation = settings.reservation
    if reservation is None or reservation.name is None:
        return {}
    project = {} if reservation.project is None else {GKE_RESERVATION_PROJECT_LABEL: reservation.project}
    return {GKE_RESERVATION_NAME_LABEL: reservation.name, **project}


def _divided(settings: GkePool) -> dict[str, str]:
    labels = {} if settings.mig_partition is None else {GKE_GPU_PARTITION_LABEL: settings.mig_partition}
    if settings.gpu_sharing is not None:
        labels[GKE_GPU_SHARING_LABEL] = settings.gpu_sharing.strategy.value
        labels[GKE_GPU_CLIENTS_LABEL] = str(settings.gpu_sharing.clients_per_gpu)
    return labels


def taints_by_gke(resolved: ResolvedSettings, pool: ResolvedPool, compute_class: str | None) -> tuple[Taint, ...]:
    """The taints that GKE sets on the nodes that it makes for the pods of `pool`; there are no others.

    Nodes of a `compute_class` have the class's taint in the place of that for Spot.

    GKE adds the tolerations to a pod as it is created. Written out in flavors and routes all the same: a pod that waits in a queue gets its
    selectors from Kueue when it is admitted, and GKE has seen it by then.
    """
    if compute_class is not None:
        return (_device_taint(pool), Taint(COMPUTE_CLASS_LABEL, compute_class))
    facts = resolved.facts[pool.settings.capacity_type].autopilot
    own = facts.taints if facts else ()
    return (_device_taint(pool), *(Taint(each.key, str(each.value)) for each in own))


# Capacity that ends although the work on it has not: other pods with devices, whose toleration the cloud adds by itself, stay off.
_ENDING = frozenset({CapacityType.SPOT, CapacityType.FLEX_START})


def pool_plans(resolved: ResolvedSettings) -> tuple[PoolPlan, ...]:
    """Every pool, by name."""
    return tuple(_pool(resolved, resolved.pools[name]) for name in sorted(resolved.pools))


def compute_class_of(resolved: ResolvedSettings, pool: ResolvedPool) -> str | None:
    """The GKE compute class in which a pool stands: the class that moves on at a stock-out. None elsewhere."""
    if resolved.words.compute_class_label is None:
        return None
    # A class that is not known is refused by a check of its own.
    known = {name: resolved.known_classes[name] for name in sorted(set(pool.settings.serves)) if name in resolved.known_classes}
    return next((name for name, each in known.items() if each.fallback is Fallback.STOCK_OUT), None)


def _pool(resolved: ResolvedSettings, pool: ResolvedPool) -> PoolPlan:
    words, settings = resolved.words, pool.settings
    labels = asked_for(resolved, pool) if resolved.autopilot else _known_labels(resolved, pool)
    if compute_class := compute_class_of(resolved, pool):
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
        gpu_memory_gb=_gpu_memory_gb(pool),
        gpus_per_node=pool.gpus_per_node,
        efa_interfaces=pool.machines[0].efa_interfaces if isinstance(settings, EksPool) and settings.efa else 0,
        resource=pool.gpu.accelerator.resource,
        rdma_networks=_rdma_networks(pool),
        whole_hosts=pool.gpu.accelerator is TPU,
        slice_nodes=pool.max_nodes if getattr(settings, "tpu_topology", None) else 0,
        min_nodes=settings.min_nodes,
        max_nodes=pool.max_nodes,
        ceiling=pool.ceiling,
        zones=tuple(sorted(settings.zones or _zones_with_the_machine(resolved, pool))),
        labels=dict(sorted(labels.items())),
        owner_labels={**owner_labels(resolved.settings), **_its_team(resolved, pool)},
        pool_label=None if resolved.autopilot else (words.pool_label, pool.name),
        taints=_taints(resolved, pool, compute_class),
        serves=tuple(sorted(set(settings.serves))),
        weight=100 - 10 * resolved.stock_out_ranks[settings.capacity_type] if ordered else None,
        removal=strictest,
        idle_seconds=max(each.disruption.idle_seconds for each in pool.classes),
        notice_seconds=_notice(resolved, pool),
        max_run_seconds=max_run_seconds(resolved, pool),
    )


def _rdma_networks(pool: ResolvedPool) -> int:
    settings = pool.settings
    if not isinstance(settings, GkePool) or settings.network is not NodeNetwork.GPUDIRECT:
        return 0
    found = gpudirect().of(pool.machines[0].name)
    return found.rdma_networks if found else 0


def _gpu_memory_gb(pool: ResolvedPool) -> int:
    settings, whole = pool.settings, pool.gpu.memory_gb
    if not isinstance(settings, GkePool):
        return whole
    # A partition is named after its parts and its memory: 1g.10gb.
    part = int(settings.mig_partition.partition(".")[2].removesuffix("gb")) if settings.mig_partition else whole
    return part // settings.gpu_sharing.clients_per_gpu if settings.gpu_sharing else part


def owner_labels(settings: PlatformSettings) -> dict[str, str]:
    """What says whose something is, on every object and every node."""
    return {f"{OWN_LABELS}{key}": value for key, value in settings.ownership.items()}


def _its_team(resolved: ResolvedSettings, pool: ResolvedPool) -> dict[str, str]:
    """The team of a pool that is closed to every other one. What belongs to a department, its teams may borrow."""
    settings = resolved.settings
    teams = [team.name for team in settings.teams if pool.name in team.shares or pool.name in team.unqueued]
    shared = any(pool.name in cohort.shares for cohort in settings.cohorts)
    return {TEAM_LABEL: teams[0]} if len(teams) == 1 and not shared else {}


def _known_labels(resolved: ResolvedSettings, pool: ResolvedPool) -> dict[str, str]:
    """What an autoscaler knows of a node before it is there, besides its pool's name."""
    return {
        **pool.device_labels,
        **_tpu_topology(pool),
        **resolved.facts[pool.settings.capacity_type].autoscaler_labels,
    }


def _tpu_topology(pool: ResolvedPool) -> dict[str, str]:
    topology = getattr(pool.settings, "tpu_topology", None) or pool.machines[0].tpu_topology
    return {GKE_TPU_TOPOLOGY_LABEL: topology} if topology else {}


def _zones_with_the_machine(resolved: ResolvedSettings, pool: ResolvedPool) -> tuple[str, ...]:
    """Those of the platform's zones that offer the pool's machine, as far as that is known: in another, no node could be made."""
    if any(not machine.zones for machine in pool.machines):
        return resolved.zones
    if not resolved.zones_are_known:
        return resolved.zones
    offered = {zone for machine in pool.machines for zone in machine.offered_in(resolved.region)}
    return tuple(zone for zone in resolved.zones if zone in offered)


def _device_taint(pool: ResolvedPool) -> Taint:
    """Keeps off what asks for none of the pool's devices. The value is the one that GKE writes."""
    return Taint(pool.gpu.accelerator.taint_key, "present")


def _taints(resolved: ResolvedSettings, pool: ResolvedPool, compute_class: str | None) -> tuple[Taint, ...]:
    if resolved.autopilot:
        return taints_by_gke(resolved, pool, compute_class)
    taints = [_device_taint(pool)]
    capacity_type = pool.settings.capacity_type
    on_gke = resolved.settings.cloud is Platform.GKE
    if on_gke and capacity_type is CapacityType.QUEUED:
        taints.append(Taint(GKE_QUEUED_LABEL, "true"))
    elif on_gke and capacity_type is CapacityType.SPOT and compute_class is None:
        taints.append(Taint(GKE_SPOT_LABEL, "true"))
    elif capacity_type in _ENDING and compute_class is None:
        taints.append(Taint(CAPACITY_TAINT, capacity_type.value))
    if on_gke and pool.machines[0].architecture is Architecture.ARM64:
        taints.append(Taint(ARCHITECTURE_LABEL, Architecture.ARM64.value))
    if compute_class is not None:
        taints.append(Taint(COMPUTE_CLASS_LABEL, compute_class))
    elif len(set(pool.settings.serves)) == 1:
        # Only a pool that serves one class says so: classes that share a pool would keep each other out.
        taints.append(Taint(CLASS_LABEL, pool.settings.serves[0]))
    return tuple(taints)


def _notice(resolved: ResolvedSettings, pool: ResolvedPool) -> int | None:
    raised: int | None = getattr(pool.settings, "shutdown_grace_seconds", None)
    if raised is not None and pool.settings.capacity_type is CapacityType.SPOT:
        return raised - CRITICAL_PODS_SECONDS
    return resolved.facts[pool.settings.capacity_type].notice_seconds


def max_run_seconds(resolved: ResolvedSettings, pool: ResolvedPool) -> int | None:
    """After how long every node of a pool ends, whatever runs on it; None: never."""
    hours: int | None = getattr(pool.settings, "max_run_hours", None)
    return hours * 3600 if hours is not None else resolved.facts[pool.settings.capacity_type].max_run_seconds


def accelerator_ceilings(pools: tuple[PoolPlan, ...]) -> dict[str, int]:
    """The most GPUs of each accelerator, of all pools together."""
    ceilings: dict[str, int] = {}
    for pool in pools:
        ceilings[pool.accelerator] = ceilings.get(pool.accelerator, 0) + pool.max_gpus
    return dict(sorted(ceilings.items()))


def cluster_limits(resolved: ResolvedSettings) -> ClusterLimits | None:
    """The sum of all ceilings.

    Node auto-provisioning's limits bind the scaling of declared pools too, so they are among it.
    """
    settings = resolved.settings
    if not isinstance(settings, GkeSettings) or settings.cluster.existing is not None or resolved.autopilot:
        # The limits of a cluster that is there already are its owner's; Autopilot takes none.
        return None
    system, other = settings.cluster.system_pool, settings.cluster.other_work
    machine = resolved.machines[system.machine]
    pools = [pool.ceiling for pool in resolved.pools.values()]
    vcpu = sum(each.vcpu for each in pools) + system.max_nodes * machine.vcpu + other.max_vcpu
    memory_mib = sum(each.memory_mib for each in pools) + system.max_nodes * machine.memory_mib
    return ClusterLimits(vcpu, -(-memory_mib // 1024) + other.max_memory_gib)
