"""What GKE takes of a GPU node pool: bounds and combinations. Settings are checked by it before a plan, components before a resource."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity.catalog.capacity_type import CapacityType, facts_of
from capacity.catalog.machines import Cloud, machines_of
from capacity.values.errors import nearest
from capacity.values.names import MIG_PARTITION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.catalog.machines import Gpu, Machine

HYPERDISK_ONLY = ("a3-ultragpu-", "a4-", "g4-")
"""How the names of machines begin that boot from Hyperdisk: Google's blueprints for them do, and they are documented without Persistent
Disk. The others boot from a balanced Persistent Disk."""

CRITICAL_PODS_SECONDS = 15
"""How much of a Spot node's last seconds GKE keeps for system-critical pods."""

_DWS = frozenset({CapacityType.FLEX_START, CapacityType.QUEUED})

# GPUs before Ampere, and Ada's, have no MIG (NVIDIA MIG user guide, supported GPUs).
_WITHOUT_MIG = frozenset({"t4", "l4"})

# GoogleCloudPlatform/cluster-toolkit, modules/compute/gke-node-pool: with flex-start, of all GPU machines.
_COMPACT_WITH_FLEX_START = ("a3-ultragpu-", "a4-")


@dataclass(frozen=True)
class NodePoolOptions:
    """What of a pool its machine and capacity type decide on. `mps` says that containers share its GPUs by MPS."""

    capacity_type: CapacityType
    machine: Machine
    gpu: Gpu
    min_nodes: int = 0
    max_run_seconds: int | None = None
    shutdown_grace_seconds: int | None = None
    reservation_use: str | None = None
    reservation_name: str | None = None
    reservation_project: str | None = None
    compact_placement: bool = False
    local_ssd_disks: int = 0
    mig_partition: str | None = None
    mps: bool = False


@dataclass(frozen=True)
class Refusal:
    """An option that cannot be: the check's name, the option, what was asked, why not, and what to do."""

    rule: str
    option: str
    value: str
    why: str
    remedy: str


def refusals(pool: NodePoolOptions) -> Iterator[Refusal]:
    """Everything that GKE would refuse of a pool, or do nothing for."""
    yield from _run_time(pool)
    yield from _shutdown_grace(pool)
    yield from _dws(pool)
    yield from _compact_placement(pool)
    yield from _reservation(pool)
    yield from _parts_of_gpus(pool)
    most = pool.machine.max_local_ssd_disks
    if not 0 <= pool.local_ssd_disks <= most:
        why = f"{pool.machine.name} takes 0 to {most} disks besides its own"
        yield Refusal("too-many-local-disks", "local_ssd_disks", str(pool.local_ssd_disks), why, "use fewer, or a machine with more")


def _run_time(pool: NodePoolOptions) -> Iterator[Refusal]:
    run, option = pool.max_run_seconds, "max_run_seconds"
    if run is None:
        return
    facts = facts_of("gke")[pool.capacity_type]
    if pool.capacity_type is CapacityType.QUEUED:
        remedy = f"leave it out; each request sets {facts.run_time_set_by}, for which a class has run_limit_hours"
        yield Refusal("run-time-on-queued-pool", option, str(run), "a queued pool has none", remedy)
    elif pool.capacity_type is not CapacityType.FLEX_START:
        why = f"it belongs to flex-start; this pool is {pool.capacity_type}"
        yield Refusal("run-time-without-flex-start", option, str(run), why, "leave it out")
    elif not (facts.min_run_seconds or 0) <= run <= (facts.max_run_seconds or 0):
        why = f"flex-start takes 10 minutes ({facts.min_run_seconds} s) to 7 days ({facts.max_run_seconds} s)"
        yield Refusal("run-time-too-long", option, str(run), why, "use one of these, and a checkpoint for what runs longer")


def _shutdown_grace(pool: NodePoolOptions) -> Iterator[Refusal]:
    grace = pool.shutdown_grace_seconds
    if grace is not None and pool.capacity_type is not CapacityType.SPOT:
        why = f"it belongs to spot; this pool is {pool.capacity_type}"
        yield Refusal("shutdown-grace-without-spot", "shutdown_grace_seconds", str(grace), why, "leave it out")


def _dws(pool: NodePoolOptions) -> Iterator[Refusal]:
    if pool.capacity_type not in _DWS:
        return
    if pool.min_nodes:
        why = f"it is 0 for {pool.capacity_type}, which starts from nothing"
        yield Refusal("dws-pool-with-floor", "min_nodes", str(pool.min_nodes), why, "leave it out")
    if not pool.machine.flex_start:
        given = sorted(each.name for each in machines_of(Cloud.GCP).values() if each.flex_start and each.gpu)
        why = f"DWS does not give it, as {pool.capacity_type} needs"
        yield Refusal("machine-not-in-dws", "machine", pool.machine.name, why, nearest(pool.machine.name, given))


def _compact_placement(pool: NodePoolOptions) -> Iterator[Refusal]:
    if not pool.compact_placement:
        return
    if pool.capacity_type is CapacityType.QUEUED:
        why, remedy = "a queued pool has none", "leave it out: DWS places the nodes of a request itself"
    elif pool.capacity_type is CapacityType.FLEX_START and not pool.machine.name.startswith(_COMPACT_WITH_FLEX_START):
        why, remedy = f"with flex-start only a3-ultragpu and a4 have it, not {pool.machine.name}", "leave it out"
    elif not pool.machine.compact_placement:
        why, remedy = f"{pool.machine.name} cannot be placed compactly", "leave it out"
    else:
        return
    yield Refusal("no-compact-placement", "compact_placement", "true", why, remedy)


def _reservation(pool: NodePoolOptions) -> Iterator[Refusal]:
    use = pool.reservation_use
    if pool.capacity_type is not CapacityType.RESERVED:
        if use is not None:
            why = f"it belongs to reserved; this pool is {pool.capacity_type}"
            yield Refusal("reservation-not-used", "reservation", use, why, "leave it out, or make the pool reserved")
    elif use is None:
        yield Refusal(
            "reserved-pool-without-reservation",
            "reservation",
            "missing",
            "a reserved pool draws on one",
            "add {use: specific, name: NAME}, or {use: any}",
        )
    elif use == "specific" and not pool.reservation_name:
        yield Refusal("reservation-without-name", "reservation.name", "missing", "use: specific draws on one by name", "add its name")
    elif use == "any" and (named := pool.reservation_name or pool.reservation_project):
        option = "reservation.name" if pool.reservation_name else "reservation.project"
        yield Refusal("reservation-not-used", option, named, "use: any draws on every open one", "leave out name and project")


def _parts_of_gpus(pool: NodePoolOptions) -> Iterator[Refusal]:
    partition, option = pool.mig_partition, "mig_partition"
    if partition is None:
        return
    memory_gb = -(-pool.gpu.memory_mib // 1024)
    well_formed = re.fullmatch(MIG_PARTITION, partition) is not None
    if pool.gpu.model in _WITHOUT_MIG:
        remedy = "use gpu_sharing, or an A100 or later"
        yield Refusal("gpu-without-partitions", option, partition, f"{pool.gpu.name} cannot be divided", remedy)
    elif not well_formed or int(partition.partition(".")[2].removesuffix("gb")) > memory_gb:
        why = f"it is COMPUTEg.MEMORYgb with up to 7 and {memory_gb} on {pool.gpu.name}"
        yield Refusal("gpu-without-partitions", option, partition, why, "use a size of NVIDIA's MIG user guide")
    if pool.mps:
        why = f"MPS does not share MIG partitions ({partition})"
        yield Refusal("partitions-shared-by-mps", "gpu_sharing.strategy", "mps", why, "use time-sharing, or no partition")
