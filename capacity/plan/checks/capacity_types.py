"""What each capacity type asks of a pool, what it must not be combined with, and ceilings that contradict one another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.catalog.capacity_type import CapacityType
from capacity.catalog.platform import Platform
from capacity.catalog.unreachable_limits import NodeCeilings, out_of_reach
from capacity.plan.pools import max_run_seconds
from capacity.settings.pools import MAX_NODES, EksPool, ReservationKind
from capacity.values.errors import SettingsProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.plan.resolved_settings import ResolvedSettings


_HOUR = 3600


def reservations_belong_to_reserved_pools(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """A reserved pool of EKS says which reservation, and no other pool does."""
    for pool in resolved.pools.values():
        if not isinstance(pool.settings, EksPool):
            continue
        reserved, path = pool.settings.capacity_type is CapacityType.RESERVED, f"{pool.path}.reservation"
        if reserved and pool.settings.reservation is None:
            problem = "is missing: a reserved pool draws on a reservation"
            yield SettingsProblem(path, "", problem, "name it, or choose another capacity_type", "reserved-pool-without-reservation")
        if not reserved and pool.settings.reservation is not None:
            problem = f"does not go with capacity_type {pool.settings.capacity_type}"
            yield SettingsProblem(path, "", problem, "leave it out, or make the pool reserved", "reservation-not-used")


def a_capacity_block_is_in_one_zone(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """A capacity block is sold in one zone; a pool in others would ask for what is not there."""
    for pool in resolved.pools.values():
        block = isinstance(pool.settings, EksPool) and pool.settings.reservation and pool.settings.reservation.kind
        if block is ReservationKind.CAPACITY_BLOCK and len(pool.settings.zones or resolved.zones) != 1:
            written = ", ".join(pool.settings.zones) or "(all)"
            yield SettingsProblem(
                f"{pool.path}.zones", written, "a capacity block is in one zone", "name that zone alone", "capacity-block-without-zone"
            )


def work_fits_into_the_run_time(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """A node that ends before a job's limit takes the job with it, whatever a PodDisruptionBudget says."""
    for pool in resolved.pools.values():
        end = max_run_seconds(resolved, pool)
        for name in sorted(set(pool.settings.serves) & set(resolved.classes)):
            each = resolved.classes[name]
            if end is None or (each.run_limit_hours is not None and each.run_limit_hours * _HOUR <= end):
                continue
            limit = "no run_limit_hours" if each.run_limit_hours is None else f"run_limit_hours {each.run_limit_hours}"
            problem = f"its nodes end after {end // _HOUR} hours, but class {name} has {limit}"
            remedy = f"set run_limit_hours of {name} to {end // _HOUR} or less, or let it write checkpoints"
            yield SettingsProblem(f"{pool.path}.serves", name, problem, remedy, "run-limit-beyond-nodes", refused=not each.checkpoint)


def gpu_ceilings_are_whole_nodes(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """A part of a node cannot be launched, so a GPU ceiling between two nodes is not the one that holds."""
    for pool in resolved.pools.values():
        limit, per_node = pool.settings.max_gpus, pool.gpus_per_node
        if limit is not None and limit % per_node:
            lower = limit // per_node * per_node
            near = " or ".join(str(each) for each in (lower, lower + per_node) if each)
            problem = f"is no multiple of the {per_node} GPUs of a {pool.machines[0].name}"
            yield SettingsProblem(f"{pool.path}.max_gpus", str(limit), problem, f"allowed: {near}", "gpu-limit-not-a-multiple")


def node_and_gpu_ceilings_agree(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Given both, they say the same."""
    for pool in resolved.pools.values():
        nodes, gpus = pool.settings.max_nodes, pool.settings.max_gpus
        if nodes is not None and gpus is not None and nodes * pool.gpus_per_node != gpus:
            problem = f"{nodes} nodes have {nodes * pool.gpus_per_node} GPUs, not {gpus}"
            yield SettingsProblem(f"{pool.path}.max_gpus", str(gpus), problem, "give one of max_nodes and max_gpus", "ceilings-disagree")


def vcpu_and_memory_leave_the_gpus_in_reach(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """A vCPU or memory ceiling that ends a pool earlier than its GPU ceiling: queues would promise GPUs that never come."""
    for pool in resolved.pools.values():
        gib = pool.settings.max_memory_gib
        ceilings = NodeCeilings(pool.max_nodes, pool.settings.max_vcpu, None if gib is None else gib * 1024)
        for machine in pool.machines:
            ended = out_of_reach([(machine, pool.gpus_per_node)], pool.ceiling.gpus, ceilings)
            if ended:
                caps = {"max_vcpu": pool.settings.max_vcpu, "max_memory_gib": pool.settings.max_memory_gib}
                written = ", ".join(f"{name}: {cap}" for name, cap in caps.items() if cap is not None)
                problem = f"with {machine.name} the pool ends at {ended.gpus} GPUs, its ceiling of {pool.ceiling.gpus} is out of reach"
                need = f"{pool.max_nodes * machine.vcpu} vCPU and {-(-pool.max_nodes * machine.memory_mib // 1024)} GiB are needed"
                yield SettingsProblem(pool.path, written, problem, need, "gpu-limit-unreachable")


def the_floor_is_below_the_ceiling(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """min_nodes fits, and costs money around the clock."""
    for pool in resolved.pools.values():
        if pool.settings.min_nodes and resolved.settings.cloud is not Platform.GKE:
            path, problem = f"{pool.path}.min_nodes", "has no effect: Karpenter launches a node when a pod needs it, and never before"
            yield SettingsProblem(path, str(pool.settings.min_nodes), problem, "leave it out", "floor-without-effect")
        elif pool.settings.min_nodes > pool.max_nodes:
            problem = f"is above the ceiling of {pool.max_nodes} nodes"
            yield SettingsProblem(f"{pool.path}.min_nodes", str(pool.settings.min_nodes), problem, "lower it", "floor-above-ceiling")
        if pool.max_nodes > MAX_NODES:
            problem = f"are {pool.max_nodes} nodes of {pool.machines[0].name}"
            allowed = f"allowed: {MAX_NODES} nodes of a pool"
            yield SettingsProblem(f"{pool.path}.max_gpus", str(pool.settings.max_gpus), problem, allowed, "ceiling-above-any-cluster")


CHECKS = (
    reservations_belong_to_reserved_pools,
    a_capacity_block_is_in_one_zone,
    work_fits_into_the_run_time,
    gpu_ceilings_are_whole_nodes,
    node_and_gpu_ceilings_agree,
    vcpu_and_memory_leave_the_gpus_in_reach,
    the_floor_is_below_the_ceiling,
)
