"""Rows of a price file: prices that change, each until the next one of the same; the fee of a node, and families without GPUs."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Protocol, TypeVar

from pydantic import Field

from capacity.catalog.data_files import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Dated(Protocol):
    """A row that may have a start."""

    @property
    def what(self) -> str:
        """What it is of: rows of the same follow each other in time."""
        ...

    @property
    def start(self) -> datetime | None:
        """From when on it holds; None: from ever."""
        ...


DatedT = TypeVar("DatedT", bound=Dated)


def moment_problem(moment: datetime | None, name: str) -> str | None:
    """What is wrong with a moment, which has a `name`: no offset, or parts of a second; None: nothing."""
    if moment is not None and moment.tzinfo is None:
        return f"the {name} {moment} has no offset from UTC; write it as in {moment.replace(tzinfo=UTC).isoformat()}"
    if moment is not None and moment.microsecond:
        return f"the {name} {moment} has parts of a second; write whole ones"
    return None


def order_problem(rows: Sequence[tuple[str, datetime | None]]) -> str | None:
    """What is wrong with the starts of rows, each with what it is of; None: nothing.

    A start has an offset and whole seconds; rows of the same are in the order of time, and no two begin at one moment.
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
                told = f"the price{_from(start) or ' without a start'} stands after that{_from(before)}"
                return f"{what}: {told}; write them in the order of time"
        last[what] = start
    return None


def _from(start: datetime | None) -> str:
    return "" if start is None else f" from {start.isoformat()} on"


def valid_at(rows: Iterable[DatedT], at: datetime | None = None) -> list[DatedT]:
    """Of rows of the same the last that has begun by `at`, which is now unless it is said."""
    moment = datetime.now(UTC) if at is None else at
    found: dict[str, DatedT] = {}
    for each in rows:
        if each.start is None or each.start <= moment:
            found[each.what] = each
    return list(found.values())


class NodeFee(Record):
    """What EKS Auto Mode bills for running a node: a part, in percent, of its machine's on-demand price.

    Of machines of some categories, such as g and gr; without categories, of all that no row before it is of.
    """

    categories: tuple[str, ...] = ()
    percent: Annotated[Decimal, Field(gt=Decimal(0), lt=Decimal(100))]
    source: str

    def is_of(self, machine: str) -> bool:
        """Whether it is the fee of a machine such as g6e.xlarge."""
        category = re.match("[a-z]*", machine)
        return not self.categories or (category is not None and category[0] in self.categories)


class FamilyPrice(Record):
    """The smallest machine of a family without GPUs on demand, in US dollars an hour; larger ones cost no more for what they have.

    An autoscaler may make any size of these families for work without GPUs, and no other families.
    """

    family: str
    region: str
    vcpu: Annotated[int, Field(ge=1)]
    memory_gib: Annotated[int, Field(ge=1)]
    usd_per_hour: Annotated[Decimal, Field(gt=Decimal(0))]
    source: str
