"""GKE's rules for node pools with GPUs or TPUs: bounds, combinations, and sizes of slices over several hosts.

Settings are checked by them before planning, and components before a resource is created.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.accelerators import TPU
from flexspot.capacity.catalog.capacity_type import CapacityType, facts_of
from flexspot.capacity.catalog.gke_accelerators import hosts_of, is_slice_of, partitions_of, slices_of
from flexspot.capacity.catalog.machines import Vendor, machines_of
from flexspot.capacity.settings.pools import GpuDriver, ReservationUse, SharingStrategy
from flexspot.capacity.values.errors import SettingsProblem, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.capacity.catalog.machines import Confidential, Machine
    from flexspot.capacity.settings.pools import GkeNodeOptions


@dataclass(frozen=True)
class RequestedPool:
    """The parts of a requested pool that its machine and capacity type restrict."""

    capacity_type: CapacityType
    machine: Machine
    min_nodes: int
    max_run_seconds: int | None
    options: GkeNodeOptions
    zones: int
    """Number of zones of the pool."""


CRITICAL_PODS_SECONDS = 15
"""Seconds at the end of a Spot node's notice that GKE keeps for system-critical pods."""

_DWS = frozenset({CapacityType.FLEX_START, CapacityType.QUEUED})

# Of the GPU machines with flex-start, only these: GoogleCloudPlatform/cluster-toolkit, modules/compute/gke-node-pool.
_COMPACT_WITH_FLEX_START = ("a3-ultragpu-", "a4-")


def refusals(pool: RequestedPool, max_nodes: int) -> Iterator[SettingsProblem]:
    """Yield everything in a pool that GKE would refuse or ignore. The paths are the names of its options."""
    yield from _run_time(pool)
    yield from _shutdown_grace(pool)
    yield from _dws(pool)
    yield from _on_demand(pool)
    yield from _compact_placement(pool)
    yield from _reservation(pool)
    yield from confidential_refusals("confidential_nodes", pool.options.confidential_nodes, pool.machine)
    yield from _parts_of_gpus(pool)
    yield from _local_disks(pool)
    yield from _tpu_refusals(pool, max_nodes)


def _local_disks(pool: RequestedPool) -> Iterator[SettingsProblem]:
    disks, most, taken = pool.options.local_ssd_disks, pool.machine.max_local_ssd_disks, pool.machine.local_ssd_disks
    if disks > most:
        why = f"{pool.machine.name} accepts 0 to {most} disks in addition to its own"
        yield SettingsProblem("local_ssd_disks", str(disks), why, "use fewer, or a machine with more", "too-many-local-disks")
    elif disks and taken and disks not in taken:
        why = f"Compute Engine offers no {pool.machine.name} with this number"
        yield SettingsProblem("local_ssd_disks", str(disks), why, f"allowed: {', '.join(map(str, (0, *taken)))}", "number-of-local-disks")


def _run_time(pool: RequestedPool) -> Iterator[SettingsProblem]:
    run, option = pool.max_run_seconds, "max_run_seconds"
    if run is None:
        return
    facts = facts_of("gke")[pool.capacity_type]
    if pool.capacity_type is CapacityType.QUEUED:
        remedy = f"leave it out: each request sets {facts.run_time_set_by} from run_limit_hours of its class"
        yield SettingsProblem(option, str(run), "is not supported for queued pools", remedy, "run-time-on-queued-pool")
    elif pool.capacity_type is not CapacityType.FLEX_START:
        why = f"is only for flex-start, and this pool is {pool.capacity_type}"
        yield SettingsProblem(option, str(run), why, "leave it out", "run-time-without-flex-start")
    elif not (facts.min_run_seconds or 0) <= run <= (facts.max_run_seconds or 0):
        why = f"must be 10 minutes ({facts.min_run_seconds} s) to 7 days ({facts.max_run_seconds} s) for flex-start"
        yield SettingsProblem(option, str(run), why, "use a value in this range, and checkpoints for longer work", "run-time-too-long")


def _shutdown_grace(pool: RequestedPool) -> Iterator[SettingsProblem]:
    grace = pool.options.shutdown_grace_seconds
    if grace is not None and pool.capacity_type is not CapacityType.SPOT:
        why = f"is only for spot, and this pool is {pool.capacity_type}"
        yield SettingsProblem("shutdown_grace_seconds", str(grace), why, "leave it out", "shutdown-grace-without-spot")


def _dws(pool: RequestedPool) -> Iterator[SettingsProblem]:
    if pool.capacity_type not in _DWS:
        return
    if pool.min_nodes:
        why = f"must be 0 for {pool.capacity_type}, whose nodes start on request"
        yield SettingsProblem("min_nodes", str(pool.min_nodes), why, "leave it out", "dws-pool-with-floor")
    for option, value, given in (("surge", "given", pool.options.surge is not None), ("hold_upgrades", "true", pool.options.hold_upgrades)):
        if given:
            why = f"{pool.capacity_type} nodes are not upgraded: they keep their version until they are deleted"
            yield SettingsProblem(option, value, why, "leave it out", "upgrades-of-dws-pool")
    if not pool.machine.flex_start:
        given = sorted(each.name for each in machines_of(Vendor.GCP).values() if each.flex_start and each.gpu)
        why = f"is not offered by DWS, which {pool.capacity_type} needs"
        yield SettingsProblem("machine", pool.machine.name, why, nearest(pool.machine.name, given), "machine-not-in-dws")


def _on_demand(pool: RequestedPool) -> Iterator[SettingsProblem]:
    machine = pool.machine
    if pool.capacity_type is CapacityType.ON_DEMAND and not machine.on_demand and machine.gpu is not None:
        others = [
            each.name for each in machines_of(Vendor.GCP).values() if each.on_demand and each.gpu and each.gpu.name == machine.gpu.name
        ]
        why, kinds = "is not sold on demand by Google", "spot or flex-start" if machine.flex_start else "spot"
        remedy = f"make the pool {kinds}, or use a machine that is sold on demand: {', '.join(others) or 'none has its GPU'}"
        yield SettingsProblem("machine", machine.name, why, remedy, "machine-not-on-demand")


def _compact_placement(pool: RequestedPool) -> Iterator[SettingsProblem]:
    if not pool.options.compact_placement:
        return
    if pool.capacity_type is CapacityType.QUEUED:
        why, remedy = "is not supported for queued pools", "leave it out: DWS places the nodes of a request itself"
    elif pool.capacity_type is CapacityType.FLEX_START and not pool.machine.name.startswith(_COMPACT_WITH_FLEX_START):
        why, remedy = f"is supported with flex-start only on a3-ultragpu and a4, not on {pool.machine.name}", "leave it out"
    elif not pool.machine.compact_placement:
        why, remedy = f"is not supported on {pool.machine.name}", "leave it out"
    elif pool.zones != 1:
        # GoogleCloudPlatform/cluster-toolkit, modules/compute/gke-node-pool/main.tf (read 2026-11-26): a single zone.
        why = f"is only possible for a pool in one zone, and this pool is in {pool.zones}"
        yield SettingsProblem("compact_placement", "true", why, "set the pool's zones to one", "compact-over-zones")
        return
    else:
        return
    yield SettingsProblem("compact_placement", "true", why, remedy, "no-compact-placement")


def _reservation(pool: RequestedPool) -> Iterator[SettingsProblem]:
    reservation = pool.options.reservation
    if pool.capacity_type is not CapacityType.RESERVED and reservation is not None:
        why = f"is only for reserved pools, and this pool is {pool.capacity_type}"
        yield SettingsProblem("reservation", reservation.use, why, "leave it out, or make the pool reserved", "reservation-not-used")
    elif pool.capacity_type is CapacityType.RESERVED and reservation is None:
        remedy = "add {use: specific, name: NAME}, or {use: any}"
        yield SettingsProblem("reservation", "missing", "a reserved pool needs one", remedy, "reserved-pool-without-reservation")
    elif reservation is not None and reservation.use is ReservationUse.ANY and reservation.project:
        remedy = "leave out the project"
        yield SettingsProblem(
            "reservation.project",
            reservation.project,
            "has no effect with use: any, which uses every open reservation",
            remedy,
            "reservation-not-used",
        )


def confidential_refusals(option: str, technology: Confidential | None, machine: Machine) -> Iterator[SettingsProblem]:
    """Yield a problem if Compute Engine cannot encrypt the memory of a machine with `technology`, requested by `option`."""
    if technology is None or technology in machine.confidential:
        return
    if machine.confidential:
        allowed = f"allowed: {', '.join(machine.confidential)}"
    else:
        kind = "with GPUs" if machine.gpu else "without GPUs"
        others = [each for each in machines_of(Vendor.GCP).values() if technology in each.confidential]
        named = [each.name for each in others if (each.gpu is None) == (machine.gpu is None)]
        allowed = f"leave it out; machines {kind} that have it: {', '.join(named) or 'none'}"
    why = f"the memory of {machine.name} is not encrypted by {technology}"
    yield SettingsProblem(option, technology, why, allowed, "machine-not-confidential")


def _parts_of_gpus(pool: RequestedPool) -> Iterator[SettingsProblem]:
    partition, option, gpu, sharing = pool.options.mig_partition, "mig_partition", pool.machine.gpu, pool.options.gpu_sharing
    if partition is None or gpu is None or gpu.accelerator is TPU:
        return
    allowed = partitions_of(gpu.name)
    if not allowed:
        remedy = "use gpu_sharing, or an A100 or later"
        yield SettingsProblem(option, partition, f"GKE does not partition {gpu.name}", remedy, "gpu-without-partitions")
    elif partition not in allowed:
        why = f"GKE's device plugin does not support it on {gpu.name}"
        yield SettingsProblem(option, partition, why, f"allowed: {', '.join(allowed)}", "gpu-without-partitions")
    if sharing is not None and sharing.strategy is SharingStrategy.MPS:
        why = f"MPS does not share MIG partitions ({partition})"
        yield SettingsProblem("gpu_sharing.strategy", "mps", why, "use time-sharing, or no partition", "partitions-shared-by-mps")


def _tpu_refusals(pool: RequestedPool, max_nodes: int) -> Iterator[SettingsProblem]:
    """Yield everything in a TPU pool that GKE would refuse or ignore, and a topology on a pool without TPUs."""
    gpu, topology = pool.machine.gpu, pool.options.tpu_topology
    if gpu is None or gpu.accelerator is not TPU:
        if topology is not None:
            why = f"is only for TPU chips, and {pool.machine.name} has none"
            yield SettingsProblem("tpu_topology", repr(topology), why, "leave it out", "topology-without-tpus")
        return
    yield from _options_of_gpus(pool)
    yield from _capacity(pool)
    if topology is not None:
        yield from _slice(pool, topology, max_nodes)


def _options_of_gpus(pool: RequestedPool) -> Iterator[SettingsProblem]:
    options = pool.options
    of_gpus = {
        "gpu_driver": options.gpu_driver.value if options.gpu_driver is not GpuDriver.DEFAULT else None,
        "gpu_sharing": options.gpu_sharing and options.gpu_sharing.strategy.value,
        "mig_partition": options.mig_partition,
    }
    for option, value in of_gpus.items():
        if value is not None:
            why = f"is only for NVIDIA GPUs, and {pool.machine.name} has TPU chips"
            yield SettingsProblem(option, repr(value), why, "leave it out", "gpu-option-of-tpus")


def _capacity(pool: RequestedPool) -> Iterator[SettingsProblem]:
    if pool.capacity_type is CapacityType.QUEUED:
        why = "Google documents queued capacity only for NVIDIA GPUs, not for TPUs"
        yield SettingsProblem("capacity_type", "queued", why, "use flex-start, spot, reserved or on-demand", "tpus-not-queued")
    reservation = pool.options.reservation
    if reservation is not None and reservation.use is ReservationUse.ANY:
        # GoogleCloudPlatform/accelerated-platforms, ComputeClasses of TPUs: "TPU currently only supports Specific affinity" (2026-11-26).
        why = "GKE uses a TPU reservation only by its name"
        yield SettingsProblem("reservation.use", "any", why, "set use: specific and the name", "tpu-reservation-without-name")


def _slice(pool: RequestedPool, topology: str, max_nodes: int) -> Iterator[SettingsProblem]:
    machine, option = pool.machine, "tpu_topology"
    if topology == machine.tpu_topology:
        why = f"is the topology of a single {machine.name}, for which GKE accepts no topology"
        yield SettingsProblem(option, repr(topology), why, "leave it out", "topology-of-one-host")
    elif machine.one_host:
        why = f"a {machine.name} cannot be part of a larger slice"
        remedy = "leave it out, or use the machine of its family with four chips"
        yield SettingsProblem(option, repr(topology), why, remedy, "topology-of-one-host")
    elif not is_slice_of(machine, topology):
        sides = "; also three sides that are multiples of 4, none smaller than the one before" if topology.count("x") > 1 else ""
        why = f"is not a topology of a slice of {machine.name}"
        yield SettingsProblem(option, repr(topology), why, f"allowed: {', '.join(slices_of(machine))}{sides}", "unknown-tpu-topology")
    else:
        yield from _whole(pool, topology, max_nodes, hosts_of(machine, topology))


def _whole(pool: RequestedPool, topology: str, max_nodes: int, hosts: int) -> Iterator[SettingsProblem]:
    of_it = f"a slice of {topology} is {hosts} {pool.machine.name}, which GKE creates and removes together"
    if max_nodes != hosts:
        remedy = f"set max_nodes: {hosts}, and use another pool for another slice"
        yield SettingsProblem("max_nodes", str(max_nodes), of_it, remedy, "slice-not-whole")
    if pool.min_nodes not in {0, hosts}:
        yield SettingsProblem("min_nodes", str(pool.min_nodes), of_it, f"allowed: 0 or {hosts}", "slice-not-whole")
    if pool.zones != 1:
        why = f"the nodes of a slice must be in one zone, but this pool is in {pool.zones}"
        yield SettingsProblem("zones", str(pool.zones), why, "set the pool's zones to one", "slice-over-zones")
    if pool.options.surge is not None:
        yield SettingsProblem("surge", "given", of_it, "leave it out", "surge-of-a-slice")
