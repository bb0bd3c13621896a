"""Adds up a bill: keeps sums by machine and by what else is paid for, never rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from capacity.chargeback.bills.entries import BillError, Kind, Place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from capacity.catalog.machines import Cloud
    from capacity.chargeback.bills.entries import Entry

MAX_SUMS = 50_000
"""How many different machines and services a bill may name; more would fill the memory."""

MAX_IDENTITIES = 2_000_000
"""Of how many rows it is remembered that they were there."""


@dataclass
class Machines:
    """What the bill says of the machines of a place, in US dollars and hours.

    `covered_*` are what a commitment pays for, of which `covered_usd` is left to pay here: nothing, as a rule. `loose_hours` are those of
    `hours` whose rows name no cluster.
    """

    usd: Fraction = field(default_factory=Fraction)
    hours: Fraction = field(default_factory=Fraction)
    covered_usd: Fraction = field(default_factory=Fraction)
    covered_hours: Fraction = field(default_factory=Fraction)
    loose_hours: Fraction = field(default_factory=Fraction)

    def __iadd__(self, other: Machines) -> Machines:  # noqa: PYI034 -- of itself
        for name in ("usd", "hours", "covered_usd", "covered_hours", "loose_hours"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self


@dataclass
class Sum:
    """An amount, and of how many rows."""

    usd: Fraction = field(default_factory=Fraction)
    rows: int = 0


class Bill:
    """The sums of all bills of a period: `machines` by place, `others` by cloud, kind and what it is.

    `elsewhen` is what is of other days than the period's, by cloud; `repeated` what rows say that repeat an earlier one, by cloud. Both are
    in no other sum. `partly` is how much of `machines` is of rows that lie in the period in part only.
    """

    def __init__(self, start: int, end: int) -> None:
        self.start, self.end = start, end
        self.machines: dict[Place, Machines] = {}
        self.others: dict[tuple[Cloud, Kind, str], Sum] = {}
        self.elsewhen: dict[Cloud, Sum] = {}
        self.repeated: dict[Cloud, Sum] = {}
        self.partly = Sum()
        self.clouds: set[Cloud] = set()
        self.with_clusters: set[Cloud] = set()
        self.first: dict[Cloud, int] = {}
        self.last: dict[Cloud, int] = {}
        self.unchecked = 0
        self._seen: set[int] = set()

    def add(self, row: Sequence[Entry]) -> None:
        """The entries of one row. Raises BillError where the bill names more than is to be remembered."""
        again = self._is_repeated(row)
        for each in row:
            self.clouds.add(each.cloud)
            if again:
                _add(self.repeated.setdefault(each.cloud, Sum()), each)
            elif not self._is_in_period(each):
                _add(self.elsewhen.setdefault(each.cloud, Sum()), each)
            elif each.place is None:
                key = (each.cloud, each.kind, " ".join(each.what.split())[:120])
                _add(self.others.setdefault(key, Sum()), each)
            else:
                self._add_machine(each, each.place)
        if len(self.machines) + len(self.others) > MAX_SUMS:
            raise BillError(f"it names more than {MAX_SUMS} different machines and services, as no bill does")

    def _is_repeated(self, row: Sequence[Entry]) -> bool:
        if not row or not row[0].identity:
            return False
        mark = hash(row[0].identity)
        if mark in self._seen:
            return True
        if len(self._seen) < MAX_IDENTITIES:
            self._seen.add(mark)
        else:
            self.unchecked += 1
        return False

    def _is_in_period(self, entry: Entry) -> bool:
        if entry.start is None:
            return True
        end = entry.end if entry.end is not None and entry.end > entry.start else entry.start + 1
        return entry.start < self.end and end > self.start

    def _add_machine(self, entry: Entry, place: Place) -> None:
        sums = self.machines.setdefault(place, Machines())
        usd = Fraction(entry.usd)
        if entry.covered:
            sums.covered_usd += usd
            sums.covered_hours += entry.hours
        else:
            sums.usd += usd
            sums.hours += entry.hours
            sums.loose_hours += Fraction(0) if entry.cluster else entry.hours
        if entry.cluster:
            self.with_clusters.add(entry.cloud)
        if entry.start is not None:
            end = entry.start if entry.end is None else entry.end
            self.first[entry.cloud] = min(entry.start, self.first.get(entry.cloud, entry.start))
            self.last[entry.cloud] = max(end, self.last.get(entry.cloud, end))
            if entry.start < self.start or end > self.end:
                _add(self.partly, entry)


def _add(to: Sum, entry: Entry) -> None:
    to.usd += Fraction(entry.usd)
    to.rows += 1
