"""Pools of EKS, with what only EKS asks of them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from capacity.names import CAPACITY_RESERVATION, CRON
from capacity.records import Record
from capacity.settings.pools import PoolSettings


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
