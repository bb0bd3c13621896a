"""Contract terms for prices: discounts off the list, committed machines, and committed spend in US dollars an hour.

Committed spend means AWS's Savings Plans and Google's Compute flexible committed-use discounts. Sources, all read 2026-11-27:
docs.aws.amazon.com/savingsplans/latest/userguide/sp-applying.html; docs.cloud.google.com/docs/cuds-multiprice: since 2026-01-21 the
commitment of a flexible discount is an amount at discounted prices, like AWS's.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Protocol, Self, TypeVar

from pydantic import Field, model_validator

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.data_files import Record
from flexspot.capacity.catalog.machines import Vendor
from flexspot.capacity.values.quantities import SECONDS_OF_AN_HOUR

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Discount(Record):
    """A percentage off the list price of one capacity type.

    If several match a machine, the one that names the pool applies, then the one that names the machine, then the region. A `reserved`
    discount is off the on-demand price, as no cloud lists a price of reservations. Discounts apply to list prices only: a price in the same
    file is already the contract's.
    """

    capacity_type: CapacityType
    """Capacity type whose price is reduced."""
    percent: Annotated[Decimal, Field(gt=Decimal(0), lt=Decimal(100))]
    machine: str | None = None
    """Machine that the discount is limited to; None for any."""
    region: str | None = None
    """Region that it is limited to; None for any."""
    pool: str | None = None
    """Pool that it is limited to; None for any."""
    source: str

    @property
    def what(self) -> str:
        """Name of the discount in messages."""
        return " ".join(each or "any" for each in (self.capacity_type.value, self.machine, self.region, self.pool))

    @property
    def narrowness(self) -> tuple[bool, bool, bool]:
        """Sort key: the more specific of two discounts is larger."""
        return self.pool is not None, self.machine is not None, self.region is not None

    def holds(self, machine: str, region: str) -> bool:
        """Return whether the discount covers this machine and region in some pool."""
        return self.machine in {None, machine} and self.region in {None, region}


class Lasting(Record, ABC):
    """A part of a contract that is valid from `start` until before `end`; a missing bound means no limit.

    A time without an offset is in UTC.
    """

    start: datetime | None = None
    end: datetime | None = None

    @property
    @abstractmethod
    def what(self) -> str:
        """Name of the part in messages."""

    @model_validator(mode="after")
    def _it_ends_after_it_starts(self) -> Self:
        if self.start is not None and self.end is not None and _utc(self.end) <= _utc(self.start):
            raise ValueError(f"{self.what} ends at {self.end}, which is not after its start {self.start}")
        return self

    def holds(self, start: int, end: int) -> tuple[int, int]:
        """Return the valid part of an interval, in seconds since 1970 UTC. The end equals the start if they do not overlap."""
        first = start if self.start is None else max(start, int(_utc(self.start).timestamp()))
        last = end if self.end is None else min(end, int(_utc(self.end).timestamp()))
        return first, max(first, last)


class Commitment(Lasting):
    """`nodes` machines that are billed from `start` until before `end`, running or not: a reservation or a capacity block.

    Their price is the book's `reserved` price, or the on-demand price. A different price is a row of the file.
    """

    machine: str
    region: str
    nodes: Annotated[int, Field(ge=1)]
    pool: str | None = None
    """Pool whose nodes alone use it; None for any pool."""
    source: str

    @property
    def what(self) -> str:
        """Name of the commitment in messages."""
        return f"{self.nodes} reserved {self.machine} in {self.region}" + (f" for pool {self.pool}" if self.pool else "")

    def is_of(self, machine: str, region: str, pool: str) -> bool:
        """Return whether a reserved node of `pool` can use it."""
        return (self.machine, self.region) == (machine, region) and self.pool in {None, pool}


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


class SpendKind(StrEnum):
    """The cloud's name of the commitment. The narrower of AWS's two is applied first."""

    EC2_INSTANCE_SAVINGS_PLAN = "ec2-instance-savings-plan"
    COMPUTE_SAVINGS_PLAN = "compute-savings-plan"
    COMPUTE_FLEXIBLE_CUD = "compute-flexible-cud"

    @property
    def cloud(self) -> Vendor:
        """Cloud that sells it."""
        return Vendor.GCP if self is SpendKind.COMPUTE_FLEXIBLE_CUD else Vendor.AWS


class SpendRate(Record):
    """Price of an hour of a machine under the commitment, in US dollars. Machines without a rate are not covered."""

    machine: str
    region: str
    usd_per_hour: Annotated[Decimal, Field(gt=Decimal(0))]


class SpendCommitment(Lasting):
    """`usd_per_hour` that are billed from `start` until before `end`, whatever runs. They pay for on-demand machines at `rates`.

    `start` and `end` have an offset and are starts of clock hours, as commitments are applied hour by hour.
    """

    name: Annotated[str, Field(min_length=1)]
    """The cloud's ID, or a name of your choice."""
    kind: SpendKind
    usd_per_hour: Annotated[Decimal, Field(gt=Decimal(0))]
    rates: Annotated[tuple[SpendRate, ...], Field(min_length=1)]
    source: str

    @model_validator(mode="after")
    def _has_whole_hours(self) -> SpendCommitment:
        for name, moment in (("start", self.start), ("end", self.end)):
            if problem := moment_problem(moment, name):
                raise ValueError(f"the commitment {self.name}: {problem}")
            if moment is not None and moment.timestamp() % SECONDS_OF_AN_HOUR:
                raise ValueError(f"the commitment {self.name}: the {name} {moment} is not on a full hour, such as 14:00")
        return self

    @model_validator(mode="after")
    def _every_rate_stands_once(self) -> SpendCommitment:
        places = [(each.machine, each.region) for each in self.rates]
        if twice := sorted(each for each in set(places) if places.count(each) > 1):
            raise ValueError(f"the commitment {self.name} has two rates of {twice[0][0]} in {twice[0][1]}")
        return self

    @property
    def what(self) -> str:
        """Name of the commitment in messages."""
        return f"{self.kind} {self.name}, {self.usd_per_hour} USD an hour"

    def rate_of(self, machine: str, region: str) -> Decimal | None:
        """Return the price of an hour of a machine under the commitment. None if it does not cover the machine."""
        return next((each.usd_per_hour for each in self.rates if (each.machine, each.region) == (machine, region)), None)


class Dated(Protocol):
    """A row that may have a start."""

    @property
    def what(self) -> str:
        """Key of the rows that follow each other in time."""
        ...

    @property
    def start(self) -> datetime | None:
        """First moment of validity; None if the row was always valid."""
        ...


DatedT = TypeVar("DatedT", bound=Dated)


def moment_problem(moment: datetime | None, name: str) -> str | None:
    """Return the problem of a moment called `name`: no offset, or parts of a second. None if it has none."""
    if moment is not None and moment.tzinfo is None:
        return f"the {name} {moment} has no offset from UTC; write it as in {moment.replace(tzinfo=UTC).isoformat()}"
    if moment is not None and moment.microsecond:
        return f"the {name} {moment} has parts of a second; write whole ones"
    return None


def order_problem(rows: Sequence[tuple[str, datetime | None]]) -> str | None:
    """Return the problem of the starts of rows, each given with its key. None if they have none.

    A start has an offset and whole seconds. Rows with the same key are in the order of time, each with a different start.
    """
    last: dict[str, datetime | None] = {}
    for what, start in rows:
        if problem := moment_problem(start, "start"):
            return f"{what}: {problem}"
        if what in last:
            before = last[what]
            if start == before:
                return f"{what} has two prices{_from(start)}"
            if start is None or (before is not None and start < before):
                position = f"the price{_from(start) or ' without a start'} stands after that{_from(before)}"
                return f"{what}: {position}; write them in the order of time"
        last[what] = start
    return None


def _from(start: datetime | None) -> str:
    return "" if start is None else f" from {start.isoformat()} on"


def valid_at(rows: Iterable[DatedT], at: datetime | None = None) -> list[DatedT]:
    """Return the last started row of each key.

    at: the moment to look at. Default: now.
    """
    moment = datetime.now(UTC) if at is None else at
    found: dict[str, DatedT] = {}
    for each in rows:
        if each.start is None or each.start <= moment:
            found[each.what] = each
    return list(found.values())


class NodeFee(Record):
    """Fee of EKS Auto Mode for running a node, in percent of its machine's on-demand price."""

    categories: tuple[str, ...] = ()
    """Machine categories with this fee, such as g and gr. Empty: all that no earlier row names."""
    percent: Annotated[Decimal, Field(gt=Decimal(0), lt=Decimal(100))]
    source: str

    def is_of(self, machine: str) -> bool:
        """Return whether the fee applies to a machine such as g6e.xlarge."""
        category = re.match("[a-z]*", machine)
        return not self.categories or (category is not None and category[0] in self.categories)


class FamilyPrice(Record):
    """On-demand price of the smallest machine of a family without GPUs, in US dollars an hour. Larger ones cost no more per vCPU and GiB.

    An autoscaler may create any size of these families for work without GPUs, and no other families.
    """

    family: str
    region: str
    vcpu: Annotated[int, Field(ge=1)]
    memory_gib: Annotated[int, Field(ge=1)]
    usd_per_hour: Annotated[Decimal, Field(gt=Decimal(0))]
    source: str
