"""Entry: one amount of a bill, in a form shared by all bills. Bill: sums of entries; rows are not kept."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from flexspot.capacity.chargeback.node_costs import AUTO_MODE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from flexspot.capacity.catalog.machines import Vendor


class BillError(ValueError):
    """A bill that cannot be used: the problem and its row."""


class Kind(StrEnum):
    """Kind of an entry: what the money is paid for."""

    MACHINE = "machine"
    """A machine's time."""

    COMMITMENT = "commitment"
    """The fee of a reservation or a plan, whatever ran."""

    DISCOUNT = "discount"
    """A contractual reduction for everything of a kind."""

    CREDIT = "credit"
    """Money given."""

    CORRECTION = "correction"
    """A refund of, or an addition to, an earlier charge."""

    TAX = "tax"
    SERVICE = "service"
    """Everything else."""


class Bought(StrEnum):
    """The way a machine was bought, as far as a bill shows it.

    A bill does not distinguish a machine of a capacity reservation from one on demand, nor a queued one from flex-start. AUTO_MODE is a
    fee.
    """

    ON_DEMAND = "on-demand"
    SPOT = "spot"
    FLEX_START = "flex-start"
    AUTO_MODE = AUTO_MODE


@dataclass(frozen=True, order=True)
class BilledPlace:
    """A machine, its place, and how it was bought."""

    cloud: Vendor
    region: str
    machine: str
    """Machine type. It ends in -* for a family, where the row does not name the machine (GCP)."""

    bought: Bought


@dataclass(frozen=True, slots=True)
class Entry:
    """One amount of a bill, in US dollars."""

    kind: Kind
    cloud: Vendor
    what: str
    usd: Decimal
    place: BilledPlace | None = None
    hours: Fraction = Fraction(0)
    """Hours of nodes, or of vCPUs if the place is a family. Zero for items without time of their own, such as memory."""

    covered: bool = False
    """True if a commitment pays for it."""

    cluster: bool = False
    """True if the row names a Kubernetes cluster."""

    start: int | None = None
    """Unix time in seconds, if the row has it; `end` likewise."""

    end: int | None = None
    identity: str = ""
    """Identity of the row, if the cloud assigns one."""


_NUMBER = re.compile(r"[+-]?(?:\d{1,18}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE]([+-]?\d{1,3}))?", re.ASCII)
_MAX_EXPONENT = 30


def number(text: str, what: str) -> Decimal:
    """Parse a number of a bill; empty is 0. Raises BillError for anything that is not a finite number of plausible size."""
    written = text.strip()
    if not written:
        return Decimal(0)
    match = _NUMBER.fullmatch(written)
    if match is None or abs(int(match[1] or 0)) > _MAX_EXPONENT:
        raise BillError(f"{what} is {written[:40]!r}, which is not a number")
    return Decimal(written)


@lru_cache(maxsize=4096)
def moment(text: str, what: str) -> int | None:
    """Parse a time of a bill into seconds of Unix time; UTC unless it has an offset. Empty is None. Raises BillError."""
    written = text.strip()
    if not written:
        return None
    try:
        found = datetime.fromisoformat(written.removesuffix(" UTC"))
    except ValueError:
        raise BillError(f"{what} is {written[:40]!r}, which is not a time such as 2026-10-01T00:00:00Z") from None
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())


def in_json(row: Mapping[str, str], name: str) -> Any:
    """Parse a JSON column and keep numbers as they are written. Empty and null are None. Raises BillError."""
    written = row.get(name, "").strip()
    if not written:
        return None
    try:
        return json.loads(written, parse_float=str, parse_int=str, parse_constant=str)
    except (ValueError, RecursionError):
        raise BillError(f"{name} is not JSON") from None


def is_in_dollars(currency: str) -> bool:
    """Return whether a bill's currency is the currency of reports."""
    return currency.strip().upper() == "USD"


def refuse_another(currency: str, column: str) -> None:
    """Raise BillError for an amount that is not in US dollars, the currency of reports."""
    if not is_in_dollars(currency):
        raise BillError(
            f"{column} is {currency.strip()[:10] or 'empty'}, and reports are in USD. Export the bill in USD; of Google Cloud, give the "
            "standard or detailed billing export, whose rows have the exchange rate (currency_conversion_rate)"
        )


MAX_SUMS = 50_000
"""Most distinct machines and services of a bill; more would fill the memory."""


MAX_IDENTITIES = 2_000_000
"""Most rows whose identity is remembered, to detect repeated rows."""


@dataclass
class BilledMachines:
    """Sums of the bill for the machines of a place, in US dollars and hours."""

    usd: Fraction = field(default_factory=Fraction)
    hours: Fraction = field(default_factory=Fraction)
    covered_usd: Fraction = field(default_factory=Fraction)
    """The part of covered usage that is still billed here: usually nothing."""

    covered_hours: Fraction = field(default_factory=Fraction)
    """Hours that a commitment pays for."""

    loose_hours: Fraction = field(default_factory=Fraction)
    """The part of `hours` whose rows name no cluster."""

    def __iadd__(self, other: BilledMachines) -> BilledMachines:  # noqa: PYI034 -- of itself
        for name in ("usd", "hours", "covered_usd", "covered_hours", "loose_hours"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self


@dataclass
class Sum:
    """An amount and the number of rows in it."""

    usd: Fraction = field(default_factory=Fraction)
    rows: int = 0


class Bill:
    """The sums of all bills of a period."""

    def __init__(self, start: int, end: int) -> None:
        self.start, self.end = start, end
        self.machines: dict[BilledPlace, BilledMachines] = {}
        """Sums of machines, by place."""
        self.others: dict[tuple[Vendor, Kind, str], Sum] = {}
        """Other sums, by cloud, kind and description."""
        self.elsewhen: dict[Vendor, Sum] = {}
        """Rows of days outside the period, by cloud. In no other sum."""
        self.repeated: dict[Vendor, Sum] = {}
        """Rows that repeat an earlier one, by cloud. In no other sum."""
        self.partly = Sum()
        """The part of `machines` whose rows lie only partly in the period."""
        self.clouds: set[Vendor] = set()
        self.with_clusters: set[Vendor] = set()
        """Clouds of rows of machines that name a cluster."""
        self.first: dict[Vendor, int] = {}
        """Start of the earliest row of a machine, by cloud, in seconds of Unix time."""
        self.last: dict[Vendor, int] = {}
        """End of the latest one."""
        self.unchecked = 0
        """Number of rows that were not compared with earlier ones, because too many were remembered."""
        self._seen: set[int] = set()

    def add(self, row: Sequence[Entry]) -> None:
        """Add the entries of one row. Raises BillError if the bill names more machines and services than MAX_SUMS."""
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
            raise BillError(f"it names more than {MAX_SUMS} different machines and services, implausible for a bill")

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

    def _add_machine(self, entry: Entry, place: BilledPlace) -> None:
        sums = self.machines.setdefault(place, BilledMachines())
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
