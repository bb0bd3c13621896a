"""What a contract says of prices: discounts off the list, and machines that are paid for whether they run or not."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated

from pydantic import Field, model_validator

from capacity.catalog.capacity_type import CapacityType
from capacity.catalog.data_files import Record


class Discount(Record):
    """So many percent off the list price of one capacity type; `machine`, `region` and `pool` narrow it, None means any.

    Of several that hold for the same machine, the one that names the pool counts, then the one that names the machine, then the region.
    Of `reserved` it is off the on-demand price, as no cloud lists a price of reservations. It is of list prices alone: a price that the
    same file names is one of the contract, with nothing off.
    """

    capacity_type: CapacityType
    percent: Annotated[Decimal, Field(gt=Decimal(0), lt=Decimal(100))]
    machine: str | None = None
    region: str | None = None
    pool: str | None = None
    source: str

    @property
    def what(self) -> str:
        """What it is of, in words."""
        return " ".join(each or "any" for each in (self.capacity_type.value, self.machine, self.region, self.pool))

    @property
    def narrowness(self) -> tuple[bool, bool, bool]:
        """By what the narrower of two counts."""
        return self.pool is not None, self.machine is not None, self.region is not None

    def holds(self, machine: str, region: str) -> bool:
        """Whether it is of this machine there, in whatever pool."""
        return self.machine in {None, machine} and self.region in {None, region}


class Commitment(Record):
    """`nodes` machines that are billed from `start` until before `end`, there or not: a reservation, or a block of capacity.

    Without `start` or `end` they are for as long as anybody asks. A time without an offset is in UTC. With `pool` the nodes of that pool
    alone are of it. Their price is that of `reserved` in the book, or the on-demand price; a price of their own is a row of the file.
    """

    machine: str
    region: str
    nodes: Annotated[int, Field(ge=1)]
    pool: str | None = None
    start: datetime | None = None
    end: datetime | None = None
    source: str

    @model_validator(mode="after")
    def _it_ends_after_it_starts(self) -> Commitment:
        if self.start is not None and self.end is not None and _utc(self.end) <= _utc(self.start):
            raise ValueError(f"the commitment for {self.machine} ends at {self.end}, which is not after its start {self.start}")
        return self

    @property
    def what(self) -> str:
        """What it is of, in words."""
        return f"{self.nodes} reserved {self.machine} in {self.region}" + (f" for pool {self.pool}" if self.pool else "")

    def seconds(self, start: int, end: int) -> tuple[int, int]:
        """The part of a period, in seconds since 1970 UTC, in which it holds; the end is the start where it does not."""
        first = start if self.start is None else max(start, int(_utc(self.start).timestamp()))
        last = end if self.end is None else min(end, int(_utc(self.end).timestamp()))
        return first, max(first, last)

    def is_of(self, machine: str, region: str, pool: str) -> bool:
        """Whether a reserved node of `pool` can be one of its."""
        return (self.machine, self.region) == (machine, region) and self.pool in {None, pool}


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
