"""Pools of GKE, with what only GKE asks of them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from capacity.names import DISK_IMAGE, GCP_PROJECT, MIG_PARTITION, RESOURCE_NAME
from capacity.records import Record
from capacity.settings.pools import PoolSettings


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
