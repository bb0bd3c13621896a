"""GKE's own options of a pool, with what they must agree with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.gke_rules import NodePoolOptions, refusals
from capacity.settings.gke_pools import GkePool, SharingStrategy
from capacity.settings.problems import SettingsProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.machines import Machine
    from capacity.planning.ground import Ground


def split_gpus_are_for_services(ground: Ground) -> Iterator[SettingsProblem]:
    """A shared or partitioned GPU shows as several: a queue's quota, counted in whole ones, would promise a part of what there is."""
    for pool in ground.pools.values():
        if not isinstance(pool.settings, GkePool):
            continue
        split = [field for field in ("gpu_sharing", "mig_partition") if getattr(pool.settings, field) is not None]
        if split and pool.queued:
            problem = "splits GPUs of a pool that a queue gives away in whole"
            remedy = "let the pool serve classes with queued: false alone"
            yield SettingsProblem(f"{pool.path}.{split[0]}", "", problem, remedy, "split-gpus-in-a-queue")


def gke_takes_the_pools(ground: Ground) -> Iterator[SettingsProblem]:
    """What GKE would refuse of a pool, or do nothing for, is known before it is asked."""
    for pool in ground.pools.values():
        if not isinstance(pool.settings, GkePool):
            continue
        for each in refusals(_options(pool.settings, pool.machines[0])):
            # Settings count in hours what GKE counts in seconds.
            run_time = each.option == "max_run_seconds"
            option, value = ("max_run_hours", str(pool.settings.max_run_hours)) if run_time else (each.option, each.value)
            yield SettingsProblem(f"{pool.path}.{option}", value, each.why, each.remedy, each.rule)


def _options(pool: GkePool, machine: Machine) -> NodePoolOptions:
    assert machine.gpu is not None, "pools are resolved to machines with GPUs"  # noqa: S101 -- tells the type checker what was checked
    reservation = pool.reservation
    return NodePoolOptions(
        capacity_type=pool.capacity_type,
        machine=machine,
        gpu=machine.gpu,
        min_nodes=pool.min_nodes,
        max_run_seconds=None if pool.max_run_hours is None else pool.max_run_hours * 3600,
        shutdown_grace_seconds=pool.shutdown_grace_seconds,
        reservation_use=None if reservation is None else reservation.use,
        reservation_name=None if reservation is None else reservation.name,
        reservation_project=None if reservation is None else reservation.project,
        compact_placement=pool.compact_placement,
        local_ssd_disks=pool.local_ssd_disks,
        mig_partition=pool.mig_partition,
        mps=pool.gpu_sharing is not None and pool.gpu_sharing.strategy is SharingStrategy.MPS,
    )


CHECKS = (split_gpus_are_for_services, gke_takes_the_pools)
