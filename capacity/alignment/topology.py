"""Pools whose pods Kueue places by the network, which it can do on nodes that are there, and for jobs that ask for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.capacity_type import CapacityType
from capacity.planning.pools import compute_class_of
from capacity.settings.gke_pools import GkePool
from capacity.settings.problems import SettingsProblem
from capacity.workload_class import Fallback

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.planning.ground import Ground, ResolvedPool

_WITH_LABELS = ("a3-highgpu-8g", "a3-megagpu-", "a3-ultragpu-", "a4-", "a4x-")
"""Machines whose nodes have the labels: https://docs.cloud.google.com/ai-hypercomputer/docs/workloads/schedule-gke-workloads-tas"""


def _placed(ground: Ground) -> list[tuple[ResolvedPool, GkePool]]:
    pools = [(pool, pool.settings) for pool in ground.pools.values()]
    return [(pool, settings) for pool, settings in pools if isinstance(settings, GkePool) and settings.topology]


def placed_nodes_say_where_they_are(ground: Ground) -> Iterator[SettingsProblem]:
    """Kueue leaves out nodes without the labels of every level, so on a pool of such no job would ever be admitted."""
    for pool, settings in _placed(ground):
        machine = pool.machines[0].name
        if not machine.startswith(_WITH_LABELS):
            problem = f"nodes of {machine} have no labels that say where in the network they are"
            remedy = f"leave it out; machines that have them: {', '.join(each.rstrip('-') for each in _WITH_LABELS)}"
            yield SettingsProblem(f"{pool.path}.topology", "true", problem, remedy, "topology-without-labels")
        elif settings.capacity_type is CapacityType.SPOT and not settings.compact_placement:
            problem = "Spot nodes say where they are with compact placement alone"
            yield SettingsProblem(f"{pool.path}.topology", "true", problem, "set compact_placement too", "topology-without-labels")


def placed_pods_find_nodes(ground: Ground) -> Iterator[SettingsProblem]:
    """Kueue admits with a topology onto nodes that exist, and an autoscaler makes nodes for pods that are admitted: neither would begin.

    With a ProvisioningRequest the place is looked for once the nodes are there. Source: Kueue v0.19, keps/2724 ("support Cluster Autoscaler
    without ProvisioningRequest" is a non-goal) and pkg/scheduler/flavorassigner/tas_flavorassigner.go.
    """
    for pool, settings in _placed(ground):
        if settings.capacity_type is not CapacityType.QUEUED and settings.min_nodes != pool.max_nodes:
            problem = f"Kueue places pods on nodes that exist, and of {pool.max_nodes} only {settings.min_nodes} always do"
            remedy = f"set min_nodes to {pool.max_nodes}, make the pool queued, or leave it out"
            yield SettingsProblem(f"{pool.path}.topology", "true", problem, remedy, "topology-without-nodes")


def placed_pods_come_from_a_queue(ground: Ground) -> Iterator[SettingsProblem]:
    """Only what a queue gives away flavor by flavor is placed by Kueue."""
    for pool, _ in _placed(ground):
        climbing = any(each.fallback is Fallback.STOCK_OUT for each in pool.classes)
        if not pool.queued or compute_class_of(ground, pool) is not None or climbing:
            problem = "has no effect: Kueue places the pods of queued classes with fallback: quota"
            yield SettingsProblem(
                f"{pool.path}.topology", "true", problem, "leave it out, or change what the pool serves", "topology-without-queue"
            )


def a_class_is_placed_everywhere_or_nowhere(ground: Ground) -> Iterator[SettingsProblem]:
    """A flavor with a topology takes only jobs that ask for one, and other flavors none of those: some pools would stay empty."""
    placed = {pool.name for pool, _ in _placed(ground)}
    for name, each in ground.classes.items():
        pools = [pool.name for pool in ground.pools.values() if name in pool.settings.serves]
        others = [pool for pool in pools if pool not in placed]
        if each.queued and others and len(others) < len(pools):
            written = ", ".join(f"{pool} ({'with' if pool in placed else 'without'})" for pool in pools)
            problem = "is served by pools with topology and by pools without, and a job can only be let into one of both kinds"
            remedy = "give the pools with topology a class of their own"
            yield SettingsProblem(f"classes.{name}", written, problem, remedy, "topology-for-part-of-a-class")


CHECKS = (
    placed_nodes_say_where_they_are,
    placed_pods_find_nodes,
    placed_pods_come_from_a_queue,
    a_class_is_placed_everywhere_or_nowhere,
)
