"""An entry: one amount of a bill, in the words of all bills; and a bill: sums of entries, never rows."""

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
    """A bill that cannot be used: what is wrong and in which row."""


class Kind(StrEnum):
    """What is paid for.

    MACHINE is a machine's time. COMMITMENT is the fee of a reservation or a plan, whatever ran. DISCOUNT is less for everything of a kind,
    by contract; CREDIT is money given; CORRECTION takes back or adds to an earlier charge. SERVICE is all else.
    """

    MACHINE = "machine"
    COMMITMENT = "commitment"
    DISCOUNT = "discount"
    CREDIT = "credit"
    CORRECTION = "correction"
    TAX = "tax"
    SERVICE = "service"


class Bought(StrEnum):
    """What a bill says of how a machine was bought.

    It does not tell a machine of a capacity reservation from one on demand, nor a queued one from flex-start. AUTO_MODE is a fee.
    """

    ON_DEMAND = "on-demand"
    SPOT = "spot"
    FLEX_START = "flex-start"
    AUTO_MODE = AUTO_MODE


@dataclass(frozen=True, order=True)
class BilledPlace:
    """Which machine, where, and how it was bought. `machine` ends in -* for a family of which the row does not say the machine (GCP)."""

    cloud: Vendor
    region: str
    machine: str
    bought: Bought


@dataclass(frozen=True, slots=True)
class Entry:
    """One amount of a bill, in US dollars.

    `hours` are those of nodes, or of vCPUs where the place is a family; zero for what is no time of its own, such as memory. `covered`: a
    commitment pays for it. `cluster` says that the row names a cluster of Kubernetes. `start` and `end` are seconds of Unix time, where
    the row says them. `identity` is that of the row, where the cloud gives it one.
    """

    kind: Kind
    cloud: Vendor
    what: str
    usd: Decimal
    place: BilledPlace | None = None
    hours: Fraction = Fraction(0)
    covered: bool = False
    cluster: bool = False
    start: int | None = None
    end: int | None = None
    identity: str = ""


_NUMBER = re.compile(r"[+-]?(?:\d{1,18}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE]([+-]?\d{1,3}))?", re.ASCII)
_MAX_EXPONENT = 30


def number(text: str, what: str) -> Decimal:
    """A figure of a bill; empty is 0. Raises BillError for what is no finite number, or one that no bill has."""
    written = text.strip()
    if not written:
        return Decimal(0)
    match = _NUMBER.fullmatch(written)
    if match is None or abs(int(match[1] or 0)) > _MAX_EXPONENT:
        raise BillError(f"{what} is {written[:40]!r}, which is not a number")
    return Decimal(written)


@lru_cache(maxsize=4096)
def moment(text: str, what: str) -> int | None:
    """A time of a bill as seconds of Unix time, UTC unless it says otherwise; empty is None. Raises BillError."""
    written = text.strip()
    if not written:
        return None
    try:
        found = datetime.fromisoformat(written.removesuffix(" UTC"))
    except ValueError:
        raise BillError(f"{what} is {written[:40]!r}, which is not a time such as 2026-10-01T00:00:00Z") from None
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())


def in_json(row: Mapping[str, str], name: str) -> Any:
    """What a column holds as JSON, numbers as they are written; empty, or null, is None. Raises BillError."""
    written = row.get(name, "").strip()
    if not written:
        return None
    try:
        return json.loads(written, parse_float=str, parse_int=str, parse_constant=str)
    except (ValueError, RecursionError):
        raise BillError(f"{name} is not JSON") from None


def is_in_dollars(currency: str) -> bool:
    """Return whether a bill's currency is that of reports."""
    return currency.strip().upper() == "USD"


def refuse_another(currency: str, column: str) -> None:
    """Raise BillError for an amount that is not in US dollars, in which reports are."""
    if not is_in_dollars(currency):
        raise BillError(
            f"{column} is {currency.strip()[:10] or 'empty'}, and reports are in USD. Export the bill in USD; of Google Cloud, give the "
            "standard or detailed billing export, whose rows have the exchange rate (currency_conversion_rate)"
        )


MAX_SUMS = 50_000
"""How many different machines and services a bill may name; more would fill the memory."""


MAX_IDENTITIES = 2_000_000
"""Of how many rows it is remembered that they were there."""


@dataclass
class BilledMachines:
    """What the bill says of the machines of a place, in US dollars and hours.

    `covered_*` are what a commitment pays for, of which `covered_usd` is left to pay here: nothing, as a rule. `loose_hours` are those of
    `hours` whose rows name no cluster.
    """

    usd: Fraction = field(default_factory=Fraction)
    hours: Fraction = field(default_factory=Fraction)
    covered_usd: Fraction = field(default_factory=Fraction)
    covered_hours: Fraction = field(default_factory=Fraction)
    loose_hours: Fraction = field(default_factory=Fraction)

    def __iadd__(self, other: BilledMachines) -> BilledMachines:  # noqa: PYI034 -- of itself
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
        self.machines: dict[BilledPlace, BilledMachines] = {}
        self.others: dict[tuple[Vendor, Kind, str], Sum] = {}
        self.elsewhen: dict[Vendor, Sum] = {}
        self.repeated: dict[Vendor, Sum] = {}
        self.partly = Sum()
        self.clouds: set[Vendor] = set()
        self.with_clusters: set[Vendor] = set()
        self.first: dict[Vendor, int] = {}
        self.last: dict[Vendor, int] = {}
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
