"""What GKE takes of a node pool of TPUs: which options are theirs, and of what size a slice over several hosts is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.catalog.accelerators import TPU
from capacity.catalog.capacity_type import CapacityType
from capacity.catalog.tpu_slices import hosts_of, is_slice_of, slices_of
from capacity.settings.pools import GpuDriver, ReservationUse
from capacity.values.errors import SettingsProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.settings.asked_pool import AskedPool


def tpu_refusals(pool: AskedPool) -> Iterator[SettingsProblem]:
    """Everything that GKE would refuse of a pool of TPUs, or do nothing for; and a topology on a pool that has none."""
    gpu, topology = pool.machine.gpu, pool.options.tpu_topology
    if gpu is None or gpu.accelerator is not TPU:
        if topology is not None:
            why = f"it joins TPU chips, and {pool.machine.name} has none"
            yield SettingsProblem("tpu_topology", repr(topology), why, "leave it out", "topology-without-tpus")
        return
    yield from _options_of_gpus(pool)
    yield from _capacity(pool)
    if topology is not None:
        yield from _slice(pool, topology)


def _options_of_gpus(pool: AskedPool) -> Iterator[SettingsProblem]:
    options = pool.options
    of_gpus = {
        "gpu_driver": options.gpu_driver.value if options.gpu_driver is not GpuDriver.DEFAULT else None,
        "gpu_sharing": options.gpu_sharing and options.gpu_sharing.strategy.value,
        "mig_partition": options.mig_partition,
    }
    for option, value in of_gpus.items():
        if value is not None:
            why = f"it belongs to NVIDIA's GPUs, and {pool.machine.name} has TPU chips"
            yield SettingsProblem(option, repr(value), why, "leave it out", "gpu-option-of-tpus")


def _capacity(pool: AskedPool) -> Iterator[SettingsProblem]:
    if pool.capacity_type is CapacityType.QUEUED:
        why = "queued nodes come by a request for NVIDIA's GPUs, and no page of Google's says that it serves TPUs"
        yield SettingsProblem("capacity_type", "queued", why, "use flex-start, spot, reserved or on-demand", "tpus-not-queued")
    reservation = pool.options.reservation
    if reservation is not None and reservation.use is ReservationUse.ANY:
        # GoogleCloudPlatform/accelerated-platforms, ComputeClasses of TPUs: "TPU currently only supports Specific affinity" (2026-11-26).
        why = "GKE draws on a reservation of TPUs by its name alone"
        yield SettingsProblem("reservation.use", "any", why, "write use: specific, and the name", "tpu-reservation-without-name")


def _slice(pool: AskedPool, topology: str) -> Iterator[SettingsProblem]:
    machine, option = pool.machine, "tpu_topology"
    if topology == machine.tpu_topology:
        why = f"it is what one {machine.name} has by itself, and GKE refuses it for such a pool"
        yield SettingsProblem(option, repr(topology), why, "leave it out", "topology-of-one-host")
    elif machine.one_host:
        why = f"a {machine.name} is never a part of a larger slice"
        remedy = "leave it out, or use the machine of its family with four chips"
        yield SettingsProblem(option, repr(topology), why, remedy, "topology-of-one-host")
    elif not is_slice_of(machine, topology):
        sides = "; also three sides that are multiples of 4, none smaller than the one before" if topology.count("x") > 1 else ""
        why = f"is no form of a slice of {machine.name}"
        yield SettingsProblem(option, repr(topology), why, f"allowed: {', '.join(slices_of(machine))}{sides}", "unknown-tpu-topology")
    else:
        yield from _whole(pool, topology, hosts_of(machine, topology))


def _whole(pool: AskedPool, topology: str, hosts: int) -> Iterator[SettingsProblem]:
    of_it = f"a slice of {topology} is {hosts} {pool.machine.name}, which GKE makes and removes together"
    if pool.max_nodes != hosts:
        remedy = f"write max_nodes: {hosts}; another slice is another pool"
        yield SettingsProblem("max_nodes", str(pool.max_nodes), of_it, remedy, "slice-not-whole")
    if pool.min_nodes not in {0, hosts}:
        yield SettingsProblem("min_nodes", str(pool.min_nodes), of_it, f"allowed: 0 or {hosts}", "slice-not-whole")
    if pool.zones != 1:
        why = f"the nodes of a slice are in one zone; this pool is in {pool.zones}"
        yield SettingsProblem("zones", str(pool.zones), why, "set the pool's zones to one", "slice-over-zones")
    if pool.options.surge is not None:
        yield SettingsProblem("surge", "given", of_it, "leave it out", "surge-of-a-slice")
