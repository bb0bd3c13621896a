"""Plans of pools: labels, taints, order and removal of their nodes. On GKE also compute classes, Autopilot and the cluster's limits."""

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
    FLAVOR_LABEL,
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
    WHOLE_NODE_TAINT,
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


def requested_labels(resolved: ResolvedSettings, pool: ResolvedPool) -> dict[str, str]:
    """Return the labels by which a pod requests a node of `pool` from Autopilot. No label names the pool itself.

    They are the GPU and its number per node, the labels of the capacity type (flexspot/capacity/catalog/capacity_types/gke.yaml), and those
    of the pool's options, such as sharing and zone. Without the number of GPUs every node gets a single pod, however few GPUs it uses. GKE
    chooses the machine from what the pods request.

    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/autopilot-gpus (as of 2026-04-10): several pods on a node from
    1.29.2-gke.1355000 on, time-sharing and MIG from 1.29.3-gke.1093000 on, the driver from 1.29.2-gke.1108000 on. The labels of shared and
    partitioned GPUs are those that GoogleCloudPlatform/cluster-autoscaler reads, pkg/autoprovisioning/gpu_requests.go.
    """
    settings, facts = pool.settings, resolved.facts[pool.settings.capacity_type].autopilot
    labels = {**pool.device_labels, GKE_ACCELERATOR_COUNT_LABEL: str(pool.gpus_per_node)}
    labels |= facts.selector if facts else {}
    if isinstance(settings, GkePool):
        labels |= _reservation_labels(settings) | _sharing_labels(settings)
        if settings.gpu_driver is GpuDriver.LATEST:
            labels[GKE_GPU_DRIVER_LABEL] = settings.gpu_driver.value
    if len(settings.zones) == 1:
        labels[ZONE_LABEL] = settings.zones[0]
    return labels


def _reservation_labels(settings: GkePool) -> dict[str, str]:
    reservation = settings.reservation
    if reservation is None or reservation.name is None:
        return {}
    project = {} if reservation.project is None else {GKE_RESERVATION_PROJECT_LABEL: reservation.project}
    return {GKE_RESERVATION_NAME_LABEL: reservation.name, **project}


def _sharing_labels(settings: GkePool) -> dict[str, str]:
    labels = {} if settings.mig_partition is None else {GKE_GPU_PARTITION_LABEL: settings.mig_partition}
    if settings.gpu_sharing is not None:
        labels[GKE_GPU_SHARING_LABEL] = settings.gpu_sharing.strategy.value
        labels[GKE_GPU_CLIENTS_LABEL] = str(settings.gpu_sharing.clients_per_gpu)
    return labels


def taints_by_gke(resolved: ResolvedSettings, pool: ResolvedPool, compute_class: str | None) -> tuple[Taint, ...]:
    """Return the taints that GKE sets on the nodes that it creates for the pods of `pool`. There are no others.

    Nodes of a `compute_class` have the class's taint instead of the taint of Spot nodes.

    GKE adds the tolerations when a pod is created, but flavors and routes have them too. A pod that waits in a queue gets its selectors
    from Kueue when it is admitted, which is after GKE has seen it.
    """
    if compute_class is not None:
        return (_device_taint(pool), Taint(COMPUTE_CLASS_LABEL, compute_class))
    facts = resolved.facts[pool.settings.capacity_type].autopilot
    own = facts.taints if facts else ()
    return (_device_taint(pool), *(Taint(each.key, str(each.value)) for each in own))


# Capacity that ends before the work on it does. These nodes reject other pods with devices, whose tolerations the cloud adds by itself.
_ENDING = frozenset({CapacityType.SPOT, CapacityType.FLEX_START})


def pool_plans(resolved: ResolvedSettings) -> tuple[PoolPlan, ...]:
    """Return the plan of every pool, by name."""
    return tuple(_pool(resolved, resolved.pools[name]) for name in sorted(resolved.pools))


def compute_class_of(resolved: ResolvedSettings, pool: ResolvedPool) -> str | None:
    """Return the GKE compute class of a pool: its class that moves on at a stock-out. None elsewhere."""
    if resolved.words.compute_class_label is None:
        return None
    # Another check reports unknown classes.
    known = {name: resolved.known_classes[name] for name in sorted(set(pool.settings.serves)) if name in resolved.known_classes}
    return next((name for name, each in known.items() if each.fallback is Fallback.STOCK_OUT), None)


def _pool(resolved: ResolvedSettings, pool: ResolvedPool) -> PoolPlan:
    words, settings = resolved.words, pool.settings
    labels = requested_labels(resolved, pool) if resolved.autopilot else _known_labels(resolved, pool)
    if compute_class := compute_class_of(resolved, pool):
        labels[COMPUTE_CLASS_LABEL] = compute_class
    ordered = any(each.fallback is Fallback.STOCK_OUT for each in pool.classes)
    # Classes that share a pool share the strictest rule: a node stays as long as any of them needs it.
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
        whole_nodes=uses_whole_nodes(resolved, pool),
        slice_nodes=pool.max_nodes if getattr(settings, "tpu_topology", None) else 0,
        min_nodes=settings.min_nodes,
        max_nodes=pool.max_nodes,
        ceiling=pool.ceiling,
        zones=tuple(sorted(settings.zones or _zones_with_the_machine(resolved, pool))),
        labels=dict(sorted(labels.items())),
        owner_labels={**owner_labels(resolved.settings), **_only_team(resolved, pool)},
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
    """Return the labels that name the owner, for every object and every node."""
    return {f"{OWN_LABELS}{key}": value for key, value in settings.ownership.items()}


def _only_team(resolved: ResolvedSettings, pool: ResolvedPool) -> dict[str, str]:
    """Return the label of the only team that can use a pool, or no label. Teams may borrow what belongs to their department."""
    settings = resolved.settings
    teams = [team.name for team in settings.teams if pool.name in team.shares or pool.name in team.unqueued]
    shared = any(pool.name in cohort.shares for cohort in settings.cohorts)
    return {TEAM_LABEL: teams[0]} if len(teams) == 1 and not shared else {}


def _known_labels(resolved: ResolvedSettings, pool: ResolvedPool) -> dict[str, str]:
    """Return the labels of a node that an autoscaler knows before the node exists, in addition to its pool's name."""
    return {
        **pool.device_labels,
        **_tpu_topology(pool),
        **resolved.facts[pool.settings.capacity_type].autoscaler_labels,
        **({FLAVOR_LABEL: flavor} if (flavor := shared_flavor(resolved, pool)) and resolved.words.compute_class_label is None else {}),
    }


def _tpu_topology(pool: ResolvedPool) -> dict[str, str]:
    topology = getattr(pool.settings, "tpu_topology", None) or pool.machines[0].tpu_topology
    return {GKE_TPU_TOPOLOGY_LABEL: topology} if topology else {}


def _zones_with_the_machine(resolved: ResolvedSettings, pool: ResolvedPool) -> tuple[str, ...]:
    """Return the platform's zones that offer the pool's machines, as far as that is known. Nodes cannot be created in other zones."""
    if any(not machine.zones for machine in pool.machines):
        return resolved.zones
    if not resolved.zones_are_known:
        return resolved.zones
    offered = {zone for machine in pool.machines for zone in machine.offered_in(resolved.region)}
    return tuple(zone for zone in resolved.zones if zone in offered)


def uses_whole_nodes(resolved: ResolvedSettings, pool: ResolvedPool) -> bool:
    """Return whether each pod of a pool uses all devices of its node.

    It must on TPU hosts, where GKE starts no other pods. It does on large nodes that several teams use. Quotas are sums, and smaller pods
    of one team could leave no node with enough free GPUs for a pod of another.
    """
    return pool.gpu.accelerator is TPU or (has_shared_large_nodes(resolved, pool) and not pool.settings.node_sharing)


def has_shared_large_nodes(resolved: ResolvedSettings, pool: ResolvedPool) -> bool:
    """Return whether several teams use a queued pool, or others of its flavor, and its nodes have several GPUs.

    Not on Autopilot, which can always add another node.
    """
    flavor = shared_flavor(resolved, pool)
    names = {name for name, each in resolved.pools.items() if each is pool or (flavor and shared_flavor(resolved, each) == flavor)}
    users = [team for team in resolved.settings.teams if not names.isdisjoint({**team.shares, **team.unqueued})]
    return pool.queued and pool.gpus_per_node > 1 and len(users) > 1 and not resolved.autopilot


def shared_flavor(resolved: ResolvedSettings, pool: ResolvedPool) -> str | None:
    """Return the name of the flavor of all pools among which the autoscaler chooses at a stock-out. None if the pool has its own."""
    if not any(each.queued and each.fallback is Fallback.STOCK_OUT for each in pool.classes):
        return None
    return f"any-{compute_class_of(resolved, pool) or pool.gpu.model}"


def _device_taint(pool: ResolvedPool) -> Taint:
    """Return the taint that rejects pods which request none of the pool's devices. GKE writes the same value."""
    return Taint(pool.gpu.accelerator.taint_key, "present")


def _taints(resolved: ResolvedSettings, pool: ResolvedPool, compute_class: str | None) -> tuple[Taint, ...]:
    if resolved.autopilot:
        return taints_by_gke(resolved, pool, compute_class)
    taints = [_device_taint(pool)]
    if uses_whole_nodes(resolved, pool) and pool.gpus_per_node > 1:
        taints.append(Taint(WHOLE_NODE_TAINT, str(pool.gpus_per_node)))
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
        # Only a pool that serves a single class has the class taint: classes that share a pool would exclude each other.
        taints.append(Taint(CLASS_LABEL, pool.settings.serves[0]))
    return tuple(taints)


def _notice(resolved: ResolvedSettings, pool: ResolvedPool) -> int | None:
    raised: int | None = getattr(pool.settings, "shutdown_grace_seconds", None)
    if raised is not None and pool.settings.capacity_type is CapacityType.SPOT:
        return raised - CRITICAL_PODS_SECONDS
    return resolved.facts[pool.settings.capacity_type].notice_seconds


def max_run_seconds(resolved: ResolvedSettings, pool: ResolvedPool) -> int | None:
    """Return the seconds after which every node of a pool ends, whatever runs on it. None: never."""
    hours: int | None = getattr(pool.settings, "max_run_hours", None)
    return hours * 3600 if hours is not None else resolved.facts[pool.settings.capacity_type].max_run_seconds


def accelerator_ceilings(pools: tuple[PoolPlan, ...]) -> dict[str, int]:
    """Return the ceilings in GPUs of all pools together, by accelerator."""
    ceilings: dict[str, int] = {}
    for pool in pools:
        ceilings[pool.accelerator] = ceilings.get(pool.accelerator, 0) + pool.max_gpus
    return dict(sorted(ceilings.items()))


def cluster_limits(resolved: ResolvedSettings) -> ClusterLimits | None:
    """Return the limits of the cluster: the sum of all ceilings. None for an existing cluster, whose owner sets them, and on Autopilot.

    Node auto-provisioning's limits also bind the scaling of declared pools, so they are included.
    """
    settings = resolved.settings
    if not isinstance(settings, GkeSettings) or settings.cluster.existing is not None or resolved.autopilot:
        return None
    system, other = settings.cluster.system_pool, settings.cluster.other_work
    machine = resolved.machines[system.machine]
    pools = [pool.ceiling for pool in resolved.pools.values()]
    vcpu = sum(each.vcpu for each in pools) + system.max_nodes * machine.vcpu + other.max_vcpu
    memory_mib = sum(each.memory_mib for each in pools) + system.max_nodes * machine.memory_mib
    return ClusterLimits(vcpu, -(-memory_mib // 1024) + other.max_memory_gib)
