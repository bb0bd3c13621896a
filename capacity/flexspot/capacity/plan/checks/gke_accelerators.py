"""Checks of GPUDirect and TPUs on GKE: pools, cluster and network."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.accelerators import TPU
from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.gke_accelerators import gpudirect
from flexspot.capacity.catalog.workload_classes import Fallback
from flexspot.capacity.settings.network import gpudirect_ranges
from flexspot.capacity.settings.platform import GkeSettings
from flexspot.capacity.settings.pools import GkePool, NodeNetwork
from flexspot.capacity.values.errors import SettingsProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.capacity.plan.resolve import ResolvedPool, ResolvedSettings


def _gpudirect_pools(resolved: ResolvedSettings) -> list[tuple[ResolvedPool, GkePool]]:
    pools = [(pool, pool.settings) for pool in resolved.pools.values()]
    return [(pool, each) for pool, each in pools if isinstance(each, GkePool) and each.network is NodeNetwork.GPUDIRECT]


def _pools_with_cards(resolved: ResolvedSettings) -> list[tuple[ResolvedPool, GkePool]]:
    """Return the GPUDirect pools whose machine has network cards for it. Another check reports the rest."""
    return [(pool, each) for pool, each in _gpudirect_pools(resolved) if gpudirect().of(pool.machines[0].name)]


def gpudirect_machines_have_cards(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse GPUDirect on machines without network cards for it.

    Pods would request networks that their nodes do not have, and wait forever.
    """
    facts = gpudirect()
    for pool, _ in _gpudirect_pools(resolved):
        name = pool.machines[0].name
        if facts.of(name) is None:
            why = facts.why_not(name) or "has no RDMA network cards that the platform knows of"
            with_it = ", ".join(machine for each in facts.machines for machine in each.names)
            remedy = f"leave it out for the ordinary network, or use a machine that has it: {with_it}"
            yield SettingsProblem(f"{pool.path}.network", "'gpudirect'", f"machine {name}: {why}", remedy, "gpudirect-without-cards")


def gpudirect_pools_are_in_one_zone(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse GPUDirect pools in several zones.

    A network for RDMA is in one zone, and the cluster's Networks have one name each: cloud.google.com/vpc/docs/rdma-network-profiles.
    """
    found = {pool.path: tuple(sorted(settings.zones or resolved.zones)) for pool, settings in _pools_with_cards(resolved)}
    first = next((zones[0] for zones in found.values() if len(zones) == 1), "")
    for path, zones in found.items():
        if len(zones) != 1:
            problem = f"needs a pool in one zone, as an RDMA network is in one zone, but the pool is in several: {', '.join(zones)}"
            remedy = "set the pool's zones to one of these that has the machine"
            yield SettingsProblem(f"{path}.network", "'gpudirect'", problem, remedy, "gpudirect-over-zones")
        elif zones[0] != first:
            problem = f"must be the same zone for all pools with gpudirect: another is in {first}"
            remedy = "put these pools into one zone, or move one of them to a separate stack"
            yield SettingsProblem(f"{path}.zones", ", ".join(zones), problem, remedy, "gpudirect-over-zones")


def gpudirect_needs_a_new_cluster(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse GPUDirect on an existing cluster. Nodes have additional networks only in a cluster that was created with multi-networking."""
    if not isinstance(resolved.settings, GkeSettings) or resolved.settings.cluster.existing is None:
        return
    for pool, _ in _pools_with_cards(resolved):
        problem = "needs a cluster with multi-networking, which a stack cannot turn on for an existing cluster"
        remedy = "leave it out, or let the stack create the cluster"
        yield SettingsProblem(f"{pool.path}.network", "'gpudirect'", problem, remedy, "gpudirect-on-existing-cluster")


def gpudirect_networks_have_room(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse a range of additional networks that is too small. Each node takes an address of each subnetwork, and Google keeps four."""
    settings, pools = resolved.settings, _pools_with_cards(resolved)
    if not isinstance(settings, GkeSettings) or not pools:
        return
    room = IPv4Network(gpudirect_ranges(settings.network.gpudirect_cidr)[0]).num_addresses - _KEPT_BY_GOOGLE
    nodes = sum(pool.max_nodes + 1 for pool, _ in pools)
    if nodes > room:
        problem = f"has room for {room} nodes in each sixteenth (one per network), but pools with gpudirect can have {nodes}"
        written = settings.network.gpudirect_cidr
        yield SettingsProblem("network.gpudirect_cidr", written, problem, "choose a larger range", "range-too-small")


_KEPT_BY_GOOGLE = 4


def gpudirect_nodes_are_near_each_other(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Warn about GPUDirect pools without compact placement, because distance between nodes slows the network down.

    Reservations have their own placement.
    """
    for pool, settings in _pools_with_cards(resolved):
        if not settings.compact_placement and settings.capacity_type is not CapacityType.RESERVED:
            problem = "the pool's nodes may be far apart in the network"
            remedy = "set compact_placement too, or accept the distance in exchange for fewer stock-outs"
            yield SettingsProblem(f"{pool.path}.network", "'gpudirect'", problem, remedy, "gpudirect-not-placed", refused=False)


def _tpu_pools(resolved: ResolvedSettings) -> dict[str, ResolvedPool]:
    return {name: pool for name, pool in resolved.pools.items() if pool.gpu.accelerator is TPU}


def _is_slice(pool: ResolvedPool) -> bool:
    return getattr(pool.settings, "tpu_topology", None) is not None


def tpus_are_in_node_pools(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse TPUs on Autopilot and in compute classes. GKE creates the nodes there, by fields that were not tested on a cluster."""
    for pool in _tpu_pools(resolved).values():
        if resolved.autopilot:
            problem = "has TPU chips, which need node pools, and Autopilot has none"
            remedy = "use cluster.mode: standard, or a machine with NVIDIA GPUs"
            yield SettingsProblem(f"{pool.path}.machine", repr(pool.settings.machine), problem, remedy, "tpus-on-autopilot")
        climbing = sorted(
            name for name in set(pool.settings.serves) & set(resolved.classes) if resolved.classes[name].fallback is Fallback.STOCK_OUT
        )
        for name in climbing:
            problem = f"class {name} falls back at a stock-out, but its compute class cannot name TPU chips"
            remedy = f"list a class with fallback: quota, or set classes.{name}.fallback to quota"
            yield SettingsProblem(f"{pool.path}.serves", name, problem, remedy, "tpus-in-compute-class")


def slices_are_for_jobs_only(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse unqueued classes on a slice.

    A pod of a service or notebook takes one node, and the slice's chips on it wait for the other nodes forever.
    """
    for pool in _tpu_pools(resolved).values():
        for name in sorted(set(pool.settings.serves) & set(resolved.classes)):
            if _is_slice(pool) and not resolved.classes[name].queued:
                problem = f"pods of class {name} wait in no queue and start one by one, but a slice is used as a whole"
                remedy = "list only queued classes, or leave tpu_topology out for nodes that work independently"
                yield SettingsProblem(f"{pool.path}.serves", name, problem, remedy, "slice-for-single-pods")
