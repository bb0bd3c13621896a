"""Pools: which machines at which capacity type, up to which ceiling, for which classes; and what only GKE and only EKS ask of them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from capacity.catalog.capacity_type import CapacityType
from capacity.catalog.data_files import Record
from capacity.values.names import CAPACITY_RESERVATION, CRON, DISK_IMAGE, GCP_PROJECT, MIG_PARTITION, RESOURCE_NAME, Name, Zone

MAX_NODES = 5000
"""The most nodes of a pool, in nodes: more than either cloud takes in one cluster's pool by default."""


class PoolSettings(Record):
    """Machines of one type at one capacity type, up to a ceiling.

    `machine` is a name of the catalog. `gpus_per_node` says how many GPUs a node has: needed where they are attached (GKE's n1), and
    checked where machine and GPUs are a fixed pair.
    `max_nodes` or `max_gpus` is the ceiling, of the whole pool and not of a zone; there is no default. `max_vcpu` and `max_memory_gib` cap
    the pool further; a cap that keeps the other ceiling out of reach is refused.
    `min_nodes` are kept although nothing runs on them. `zones` are some of the platform's; empty: all of them.
    `serves` names workload classes.
    """

    name: Name
    machine: str
    capacity_type: CapacityType
    gpus_per_node: Annotated[int, Field(ge=1, le=16)] | None = None
    max_nodes: Annotated[int, Field(ge=1, le=MAX_NODES)] | None = None
    max_gpus: Annotated[int, Field(ge=1, le=16 * MAX_NODES)] | None = None
    max_vcpu: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    max_memory_gib: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    min_nodes: Annotated[int, Field(ge=0, le=MAX_NODES)] = 0
    zones: tuple[Zone, ...] = ()
    serves: Annotated[tuple[Name, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _has_a_ceiling(self) -> Self:
        if self.max_nodes is None and self.max_gpus is None:
            raise ValueError("has no ceiling; give max_nodes or max_gpus")
        return self


class LocalPool(PoolSettings):
    """A pool of the local control plane, whose fake nodes are those of EKS: Spot and on-demand alone."""

    alternatives: tuple[str, ...] = ()


class ReservationUse(StrEnum):
    """Which GCP reservations a pool's nodes may use. SPECIFIC is the named one alone; ANY is whichever open one matches."""

    SPECIFIC = "specific"
    ANY = "any"


class GkeReservation(Record):
    """The GCP reservation that a reserved pool draws on. `name` belongs to SPECIFIC; `project` is its owner's, when it is shared."""

    use: ReservationUse = ReservationUse.SPECIFIC
    name: Annotated[str, Field(pattern=RESOURCE_NAME)] | None = None
    project: Annotated[str, Field(pattern=GCP_PROJECT)] | None = None

    @model_validator(mode="after")
    def _a_specific_one_has_a_name(self) -> Self:
        if (self.use is ReservationUse.SPECIFIC) != (self.name is not None):
            raise ValueError("use: specific names the reservation, use: any names none")
        return self


class GpuDriver(StrEnum):
    """Which NVIDIA driver GKE installs. DEFAULT is that of the GKE version; DISABLED leaves it to somebody else's DaemonSet."""

    DEFAULT = "default"
    LATEST = "latest"
    DISABLED = "disabled"


class SharingStrategy(StrEnum):
    """How containers share a GPU. TIME_SHARING gives turns and no walls between them; MPS runs them side by side with limits."""

    TIME_SHARING = "time-sharing"
    MPS = "mps"


class GpuSharing(Record):
    """Several containers on one GPU, each of which counts as one `nvidia.com/gpu`. `clients_per_gpu` is how many, 2 to 48."""

    strategy: SharingStrategy
    clients_per_gpu: Annotated[int, Field(ge=2, le=48)]


class GkePool(PoolSettings):
    """A pool of GKE.

    `reservation` belongs to a reserved pool. `max_run_hours` ends every node of a flex-start pool after that time, 168 (7 days) at most
    and by default; the jobs of a queued pool carry it themselves. `shutdown_grace_seconds` (30 to 120, Spot alone) is the whole time
    between the signal and the end of a node; the last 15 are kept for system pods. Default: 30, GKE's own. More than 30 needs GKE
    1.35.0-gke.1171000.
    `gpu_sharing` and `mig_partition` split a GPU, for classes that wait in no queue alone: a queue's quota counts whole ones.
    `compact_placement` puts nodes close together. `topology` lets Kueue place a job's pods by where nodes are in the network: the pool then
    serves classes of its own, and its nodes are always there (min_nodes as many as max_nodes) or come through DWS (queued).
    `local_ssd_disks` are disks of 375 GB more than come with the machine.
    `secondary_boot_disk_images` hold container images that nodes need not pull.
    """

    reservation: GkeReservation | None = None
    max_run_hours: Annotated[int, Field(ge=1)] | None = None
    shutdown_grace_seconds: Annotated[int, Field(ge=30, le=120)] | None = None
    gpu_driver: GpuDriver = GpuDriver.DEFAULT
    gpu_sharing: GpuSharing | None = None
    mig_partition: Annotated[str, Field(pattern=MIG_PARTITION)] | None = None
    compact_placement: bool = False
    topology: bool = False
    local_ssd_disks: Annotated[int, Field(ge=0, le=32)] = 0
    boot_disk_gib: Annotated[int, Field(ge=10, le=65_536)] = 200
    secondary_boot_disk_images: tuple[Annotated[str, Field(pattern=DISK_IMAGE)], ...] = ()


class ReservationKind(StrEnum):
    """How AWS capacity was reserved. ON_DEMAND is an ODCR: until it is given back. CAPACITY_BLOCK is for a fixed time, in one zone."""

    ON_DEMAND = "on-demand"
    CAPACITY_BLOCK = "capacity-block"


class EksReservation(Record):
    """The AWS capacity reservations that a reserved pool draws on: by `ids` (cr-...) or by `tags`, never both."""

    kind: ReservationKind = ReservationKind.ON_DEMAND
    ids: tuple[Annotated[str, Field(pattern=CAPACITY_RESERVATION)], ...] = ()
    tags: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _ids_or_tags(self) -> Self:
        if bool(self.ids) == bool(self.tags):
            raise ValueError("give ids or tags, one of them")
        return self


class QuietHours(Record):
    """A time, in UTC, in which Karpenter takes no node away by its own choice: from `schedule` (five fields of cron) for `hours`."""

    schedule: Annotated[str, Field(pattern=CRON)]
    hours: Annotated[int, Field(ge=1, le=168)]


class EksPool(PoolSettings):
    """A pool of EKS. `alternatives` are other machines with the same GPUs, launched too; `reservation` belongs to a reserved pool.

    `efa` gives nodes the network of multi-node training, `compact_placement` puts them close together (a cluster placement group).
    `boot_disk_gib`, `boot_disk_iops` and `boot_disk_throughput_mib` (MiB/s) are of the encrypted gp3 volume that images and scratch
    data are on; where a machine has NVMe disks of its own, these take that place. `quiet_hours` are kept free of removals. https://docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html
    """

    alternatives: tuple[str, ...] = ()
    reservation: EksReservation | None = None
    quiet_hours: tuple[QuietHours, ...] = ()
    efa: bool = False
    compact_placement: bool = False
    boot_disk_gib: Annotated[int, Field(ge=20, le=16_384)] = 200
    boot_disk_iops: Annotated[int, Field(ge=3000, le=16_000)] = 6000
    boot_disk_throughput_mib: Annotated[int, Field(ge=125, le=1000)] = 500

    @model_validator(mode="after")
    def _the_disk_can_be_had(self) -> Self:
        if self.boot_disk_throughput_mib > self.boot_disk_iops / 4:
            raise ValueError("boot_disk_throughput_mib is above a quarter of boot_disk_iops; raise the latter")
        if self.boot_disk_iops > self.boot_disk_gib * 500:
            raise ValueError("boot_disk_iops is above 500 for each GiB; raise boot_disk_gib")
        return self
