"""Each cloud's own options of a pool, and placement by the network, with what they must agree with."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from capacity.catalog.capacity_type import CapacityType
from capacity.catalog.workload_classes import Fallback
from capacity.plan.pools import compute_class_of
from capacity.settings.gke_rules import AskedPool, refusals
from capacity.settings.pools import EksPool, GkePool
from capacity.values.errors import SettingsProblem, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.plan.resolved_settings import ResolvedPool, ResolvedSettings


def split_gpus_are_for_services(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """A shared or partitioned GPU shows as several: a queue's quota, counted in whole ones, would promise a part of what there is."""
    for pool in resolved.pools.values():
        if not isinstance(pool.settings, GkePool):
            continue
        split = [field for field in ("gpu_sharing", "mig_partition") if getattr(pool.settings, field) is not None]
        if split and pool.queued:
            problem = "splits GPUs of a pool that a queue gives away in whole"
            remedy = "let the pool serve classes with queued: false alone"
            yield SettingsProblem(f"{pool.path}.{split[0]}", "", problem, remedy, "split-gpus-in-a-queue")


def gke_takes_the_pools(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """What GKE would refuse of a pool, or do nothing for, is known before it is asked."""
    for pool in resolved.pools.values():
        if not isinstance(pool.settings, GkePool):
            continue
        settings = pool.settings
        run_seconds = None if settings.max_run_hours is None else settings.max_run_hours * 3600
        for each in refusals(AskedPool(settings.capacity_type, pool.machines[0], settings.min_nodes, run_seconds, settings)):
            # Settings count in hours what GKE counts in seconds.
            run_time = each.path == "max_run_seconds"
            option, value = ("max_run_hours", str(settings.max_run_hours)) if run_time else (each.path, each.value)
            yield replace(each, path=f"{pool.path}.{option}", value=value)


def efa_is_on_machines_that_have_it(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """A node class lists the network cards, so all machines of its pool must have the same number of them."""
    for pool in resolved.pools.values():
        if not isinstance(pool.settings, EksPool) or not pool.settings.efa:
            continue
        path, first = f"{pool.path}.efa", pool.machines[0]
        if first.efa_interfaces == 0:
            with_efa = sorted(each.name for each in resolved.machines.values() if each.efa_interfaces and each.gpu)
            problem = f"{first.name} has no EFA interface"
            yield SettingsProblem(
                path, "true", problem, f"leave it out; of machines, {nearest(first.name, with_efa)}", "efa-without-interface"
            )
        for number, other in enumerate(pool.machines[1:]):
            if first.efa_interfaces not in {0, other.efa_interfaces}:
                problem = f"has {other.efa_interfaces} EFA interfaces, but {first.name} has {first.efa_interfaces}"
                remedy = "the machines of a pool with efa have as many; make it a pool of its own"
                yield SettingsProblem(f"{pool.path}.alternatives.{number}", repr(other.name), problem, remedy, "mixed-efa-in-pool")


def a_placement_group_is_in_one_zone(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """A cluster placement group is of one zone: its nodes would all be in whichever zone came first.

    A capacity reservation is used from within a group only if it was made in that very group, which is not there before the platform is.
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/placement-strategies.html#placement-groups-cluster
    """
    for pool in resolved.pools.values():
        if not isinstance(pool.settings, EksPool) or not pool.settings.compact_placement:
            continue
        path = f"{pool.path}.compact_placement"
        if pool.settings.capacity_type is CapacityType.RESERVED:
            problem = "does not go with a reservation, which is used from no group but the one that it was made in"
            yield SettingsProblem(path, "true", problem, "leave it out; reserve the capacity close together", "compact-reservation")
        elif len(pool.settings.zones or resolved.zones) != 1:
            problem = "needs a pool in one zone, as a cluster placement group is"
            yield SettingsProblem(path, "true", problem, "set the pool's zones to one", "compact-over-zones")


_WITH_LABELS = ("a3-highgpu-8g", "a3-megagpu-", "a3-ultragpu-", "a4-", "a4x-")
"""Machines whose nodes have the labels: https://docs.cloud.google.com/ai-hypercomputer/docs/workloads/schedule-gke-workloads-tas"""


def _placed(resolved: ResolvedSettings) -> list[tuple[ResolvedPool, GkePool]]:
    pools = [(pool, pool.settings) for pool in resolved.pools.values()]
    return [(pool, settings) for pool, settings in pools if isinstance(settings, GkePool) and settings.topology]


def placed_nodes_say_where_they_are(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Kueue leaves out nodes without the labels of every level, so on a pool of such no job would ever be admitted."""
    for pool, settings in _placed(resolved):
        machine = pool.machines[0].name
        if not machine.startswith(_WITH_LABELS):
            problem = f"nodes of {machine} have no labels that say where in the network they are"
            remedy = f"leave it out; machines that have them: {', '.join(each.rstrip('-') for each in _WITH_LABELS)}"
            yield SettingsProblem(f"{pool.path}.topology", "true", problem, remedy, "topology-without-labels")
        elif settings.capacity_type is CapacityType.SPOT and not settings.compact_placement:
            problem = "Spot nodes say where they are with compact placement alone"
            yield SettingsProblem(f"{pool.path}.topology", "true", problem, "set compact_placement too", "topology-without-labels")


def placed_pods_find_nodes(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Kueue admits with a topology onto nodes that exist, and an autoscaler makes nodes for pods that are admitted: neither would begin.

    With a ProvisioningRequest the place is looked for once the nodes are there. Source: Kueue v0.19, keps/2724 ("support Cluster Autoscaler
    without ProvisioningRequest" is a non-goal) and pkg/scheduler/flavorassigner/tas_flavorassigner.go.
    """
    for pool, settings in _placed(resolved):
        if settings.capacity_type is not CapacityType.QUEUED and settings.min_nodes != pool.max_nodes:
            problem = f"Kueue places pods on nodes that exist, and of {pool.max_nodes} only {settings.min_nodes} always do"
            remedy = f"set min_nodes to {pool.max_nodes}, make the pool queued, or leave it out"
            yield SettingsProblem(f"{pool.path}.topology", "true", problem, remedy, "topology-without-nodes")


def placed_pods_come_from_a_queue(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Only what a queue gives away flavor by flavor is placed by Kueue."""
    for pool, _ in _placed(resolved):
        climbing = any(each.fallback is Fallback.STOCK_OUT for each in pool.classes)
        if not pool.queued or compute_class_of(resolved, pool) is not None or climbing:
            problem = "has no effect: Kueue places the pods of queued classes with fallback: quota"
            yield SettingsProblem(
                f"{pool.path}.topology", "true", problem, "leave it out, or change what the pool serves", "topology-without-queue"
            )


def a_class_is_placed_everywhere_or_nowhere(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """A flavor with a topology takes only jobs that ask for one, and other flavors none of those: some pools would stay empty."""
    placed = {pool.name for pool, _ in _placed(resolved)}
    for name, each in resolved.classes.items():
        pools = [pool.name for pool in resolved.pools.values() if name in pool.settings.serves]
        others = [pool for pool in pools if pool not in placed]
        if each.queued and others and len(others) < len(pools):
            written = ", ".join(f"{pool} ({'with' if pool in placed else 'without'})" for pool in pools)
            problem = "is served by pools with topology and by pools without, and a job can only be let into one of both kinds"
            remedy = "give the pools with topology a class of their own"
            yield SettingsProblem(f"classes.{name}", written, problem, remedy, "topology-for-part-of-a-class")


CHECKS = (
    split_gpus_are_for_services,
    gke_takes_the_pools,
    efa_is_on_machines_that_have_it,
    a_placement_group_is_in_one_zone,
    placed_nodes_say_where_they_are,
    placed_pods_find_nodes,
    placed_pods_come_from_a_queue,
    a_class_is_placed_everywhere_or_nowhere,
)
