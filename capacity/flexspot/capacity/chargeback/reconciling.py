"""Reconciles a report with the bill: amounts and reasons of the differences, which sum to the bill, to the cent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.chargeback.bills.entries import Bill, BilledMachines, BilledPlace, Bought, Kind, Sum
from flexspot.capacity.chargeback.bills.gcp import FAMILY, cores_of
from flexspot.capacity.chargeback.charges import SPEND
from flexspot.capacity.values.quantities import SECONDS_OF_AN_HOUR, to_cents

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexspot.capacity.chargeback.saved_report import ReportedMonth, ReportedNodes


START_SECONDS = 600
"""Seconds for which a node may be billed before Kubernetes knows it and after it is gone; clouds bill from the machine's start on.

This is our own judgement: GPU nodes take some minutes to register. It does not explain longer differences.
"""


class Reason(StrEnum):
    """Reason for a difference between bill and report.

    The UNEXPLAINED reasons say so by name. All others have a cause that is visible in the report or the bill.
    """

    PRICE = "price differs"
    START = "start and end of nodes"
    LOOSE = "machines of no cluster"
    UNPRICED = "price not known to the report"
    COVERED = "paid by a commitment"
    NOT_IN_REPORT = "not in the report"
    NO_BILL = "no bill of this cloud given"
    COMMITMENT = "fees of commitments"
    DISCOUNT = "discounts"
    CREDIT = "credits"
    CORRECTION = "refunds and corrections"
    TAX = "taxes"
    SERVICE = "other services"
    ELSEWHEN = "other days than the report's"
    REPEATED = "rows that repeat an earlier one"
    MORE_HOURS = "unexplained: more hours billed"
    FEWER_HOURS = "unexplained: fewer hours billed"
    NOT_IN_BILL = "unexplained: not in the bill"
    UNEXPLAINED = "unexplained"

    @property
    def explains(self) -> bool:
        """True if the cause is known."""
        return not self.value.startswith("unexplained")


_REASONS = {
    Kind.COMMITMENT: Reason.COMMITMENT,
    Kind.DISCOUNT: Reason.DISCOUNT,
    Kind.CREDIT: Reason.CREDIT,
    Kind.CORRECTION: Reason.CORRECTION,
    Kind.TAX: Reason.TAX,
    Kind.SERVICE: Reason.SERVICE,
    Kind.MACHINE: Reason.UNEXPLAINED,
}


@dataclass(frozen=True, order=True)
class MachineKey:
    """Machines as a bill distinguishes them. `bought` is on-demand for reserved machines too; a `machine` that ends in -* is a family."""

    cloud: str
    region: str
    machine: str
    bought: str


@dataclass(frozen=True)
class MachineLine:
    """One kind of machine in the report and the bill."""

    key: MachineKey
    capacity_types: tuple[str, ...]
    """The report's own capacity types."""

    report_usd: Decimal
    report_hours: Fraction | None
    """Hours of nodes, or of vCPUs for a family. None if they cannot be counted."""

    bill_usd: Decimal
    bill_hours: Fraction
    report_price: Fraction | None
    """Price of an hour, from hours that have a price and that no commitment pays; `bill_price` likewise."""

    bill_price: Fraction | None
    parts: tuple[tuple[Reason, Decimal], ...]
    """Reasons of the difference, which the amounts sum to."""

    @property
    def difference(self) -> Decimal:
        """Amount by which the bill exceeds the report."""
        return self.bill_usd - self.report_usd


@dataclass(frozen=True)
class Other:
    """An amount of the bill that belongs to no machine of the report."""

    cloud: str
    reason: Reason
    what: str
    rows: int
    usd: Decimal


@dataclass(frozen=True)
class Reconciliation:
    """Result of a comparison: `report_usd` and all parts and others sum to `bill_usd`."""

    name: str
    report_usd: Decimal
    bill_usd: Decimal
    lines: tuple[MachineLine, ...]
    others: tuple[Other, ...]
    notes: tuple[str, ...]

    @property
    def by_reason(self) -> dict[Reason, Decimal]:
        """The differences summed by reason, in the order of Reason."""
        found: dict[Reason, Decimal] = {}
        for reason, usd in self._amounts():
            found[reason] = found.get(reason, Decimal(0)) + usd
        return {each: found[each] for each in Reason if each in found}

    @property
    def unexplained_usd(self) -> Decimal:
        """Unexplained amount. Positive and negative differences do not cancel."""
        return sum((abs(usd) for reason, usd in self._amounts() if not reason.explains), Decimal("0.00"))

    def within(self, percent: Decimal) -> bool:
        """Return whether the unexplained amount is at most this percentage of the report's sum."""
        return self.unexplained_usd * 100 <= self.report_usd * percent

    def _amounts(self) -> Iterable[tuple[Reason, Decimal]]:
        for line in self.lines:
            yield from line.parts
        for each in self.others:
            yield each.reason, each.usd


@dataclass
class _Reported:
    """The report's side of a line, in seconds times `factor`: vCPUs of a node if a family is compared."""

    usd: Decimal = Decimal(0)
    hours: Fraction | None = Fraction(0)
    unpriced: Fraction = Fraction(0)
    nodes: Fraction = Fraction(0)
    capacity_types: tuple[str, ...] = ()

    @property
    def priced(self) -> Fraction:
        """Hours whose price the report knows."""
        return max((self.hours or Fraction(0)) - self.unpriced, Fraction(0))

    @property
    def price(self) -> Fraction | None:
        """Price of an hour."""
        return Fraction(self.usd) / self.priced if self.priced else None

    def add(self, nodes: ReportedNodes, factor: int | None) -> None:
        """Add nodes. `factor` None means that their hours are not comparable."""
        self.usd += nodes.usd
        self.capacity_types = tuple(sorted({*self.capacity_types, nodes.capacity_type}))
        if factor is None or self.hours is None:
            self.hours = None
            return
        self.hours += Fraction((nodes.node_seconds + nodes.unused_seconds) * factor, SECONDS_OF_AN_HOUR)
        self.unpriced += Fraction(nodes.unpriced_seconds * factor, SECONDS_OF_AN_HOUR)
        self.nodes += nodes.nodes * factor


def reconcile(month: ReportedMonth, bill: Bill) -> Reconciliation:
    """Compare the nodes of a report with a bill of its period."""
    families = {each for each in bill.machines if each.machine.endswith(FAMILY)}
    reported = _reported(month, families)
    billed = _billed(bill, families)
    exact: dict[tuple[int, MachineKey | tuple[str, str], Reason], Fraction] = {}
    for key in sorted({*reported, *billed}):
        with_bill = key.cloud in {each.value for each in bill.clouds}
        tagged = key.cloud in {each.value for each in bill.with_clusters}
        for reason, usd in _why(reported.get(key), billed.get(key), month.step_seconds, with_bill=with_bill, tagged=tagged).items():
            if usd:
                exact[0, key, reason] = usd
    rows: dict[tuple[str, str, Reason], int] = {}
    for cloud, reason, what, each in _others(bill):
        exact[1, (cloud, what), reason] = exact.get((1, (cloud, what), reason), Fraction(0)) + each.usd
        rows[cloud, what, reason] = rows.get((cloud, what, reason), 0) + each.rows
    for each in month.nodes:
        # The bill has the plan's whole fee. Machines' use of it is in their amounts; this is the rest.
        if each.capacity_type == SPEND and each.usd:
            what = f"unused part of {each.machine}, in the report"
            exact[1, (each.cloud, what), Reason.COMMITMENT] = -Fraction(each.usd)
            rows[each.cloud, what, Reason.COMMITMENT] = 0
    rounded = to_cents(exact)
    lines: list[MachineLine] = []
    for key in sorted({*reported, *billed}):
        mine, theirs = reported.get(key, _Reported()), billed.get(key, BilledMachines())
        parts = tuple((reason, rounded[0, key, reason]) for reason in Reason if (0, key, reason) in exact)
        bill_usd = mine.usd + sum((usd for _, usd in parts), Decimal(0))
        prices = (mine.price, theirs.usd / theirs.hours if theirs.hours > 0 else None)
        lines.append(
            MachineLine(key, mine.capacity_types, mine.usd, mine.hours, bill_usd, theirs.hours + theirs.covered_hours, *prices, parts)
        )
    others = tuple(
        Other(cloud, reason, what, rows[cloud, what, reason], rounded[1, (cloud, what), reason])
        for cloud, what, reason in sorted(rows, key=lambda each: (each[0], list(Reason).index(each[2]), each[1]))
    )
    bill_usd = month.node_usd + sum(rounded.values(), Decimal(0))
    notes = tuple(_notes(month, bill, families))
    return Reconciliation(month.period.name, month.node_usd, bill_usd, tuple(lines), others, notes)


_AS_BILLED = {CapacityType.RESERVED: Bought.ON_DEMAND, CapacityType.QUEUED: Bought.FLEX_START}


def _reported(month: ReportedMonth, families: Iterable[BilledPlace]) -> dict[MachineKey, _Reported]:
    found: dict[MachineKey, _Reported] = {}
    for each in month.nodes:
        if each.capacity_type == SPEND:
            continue
        known = each.capacity_type in set(CapacityType)
        bought = _AS_BILLED.get(CapacityType(each.capacity_type), each.capacity_type) if known else each.capacity_type
        key, family = _key(each.cloud, each.region, each.machine, bought, families)
        factor = cores_of(each.machine) if family else 1
        found.setdefault(key, _Reported()).add(each, factor)
    return found


def _billed(bill: Bill, families: Iterable[BilledPlace]) -> dict[MachineKey, BilledMachines]:
    found: dict[MachineKey, BilledMachines] = {}
    for place, sums in bill.machines.items():
        key, family = _key(place.cloud, place.region, place.machine, place.bought, families)
        factor = (cores_of(place.machine) or 0) if family and not place.machine.endswith(FAMILY) else 1
        hours = (sums.hours * factor, sums.covered_hours * factor, sums.loose_hours * factor)
        into = found.setdefault(key, BilledMachines())
        into += BilledMachines(sums.usd, hours[0], sums.covered_usd, hours[1], hours[2])
    return found


def _key(cloud: str, region: str, machine: str, bought: str, families: Iterable[BilledPlace]) -> tuple[MachineKey, bool]:
    """Return the line of a machine, and whether it is a family's: if a row names no machine, all machines of its family are compared
    together.
    """
    for each in families:
        if (each.cloud, each.region, each.bought) == (cloud, region, bought) and f"{machine}-".startswith(each.machine.removesuffix("*")):
            return MachineKey(cloud, region, each.machine, bought), True
    return MachineKey(cloud, region, machine, bought), False


def _why(
    mine: _Reported | None, theirs: BilledMachines | None, step_seconds: int, *, with_bill: bool, tagged: bool
) -> dict[Reason, Fraction]:
    """Return the reasons for a difference. The parts sum to the bill's amount less the report's in every case."""
    if theirs is None:
        lacking = -Fraction(mine.usd) if mine else Fraction(0)
        return {Reason.NOT_IN_BILL if with_bill else Reason.NO_BILL: lacking}
    if mine is None:
        return {Reason.NOT_IN_REPORT: theirs.usd + theirs.covered_usd}
    if mine.hours is None:
        return {Reason.UNEXPLAINED: theirs.usd + theirs.covered_usd - Fraction(mine.usd)}
    priced, price = mine.priced, mine.price
    # Hours that a commitment pays for are first of all those that have a price in the report.
    covered = max(min(theirs.covered_hours, priced), Fraction(0))
    left = priced - covered
    unpriced = max(mine.unpriced - max(theirs.covered_hours - priced, Fraction(0)), Fraction(0))
    parts = {Reason.COVERED: theirs.covered_usd - (price or Fraction(0)) * covered}
    if theirs.hours <= 0:
        # An amount without any time shows nothing about hours and prices.
        parts[Reason.UNEXPLAINED] = theirs.usd
        parts |= _hours(-left, price or Fraction(0), mine.nodes, step_seconds, Fraction(0))
        return _checked(parts, mine, theirs)
    bill_price = theirs.usd / theirs.hours
    of_unpriced = min(unpriced, theirs.hours)
    compared = theirs.hours - of_unpriced
    own = bill_price if price is None else price
    parts[Reason.UNPRICED] = of_unpriced * bill_price
    parts[Reason.PRICE] = compared * (bill_price - own)
    parts |= _hours(compared - left, own, mine.nodes, step_seconds, theirs.loose_hours if tagged else Fraction(0))
    return _checked(parts, mine, theirs)


def _hours(more: Fraction, price: Fraction, nodes: Fraction, step_seconds: int, loose: Fraction) -> dict[Reason, Fraction]:
    """Return why the bill has `more` hours than the report, or fewer if negative."""
    if more >= 0:
        starting = min(more, nodes * START_SECONDS / SECONDS_OF_AN_HOUR)
        untagged = min(more - starting, loose)
        return {
            Reason.START: starting * price,
            Reason.LOOSE: untagged * price,
            Reason.MORE_HOURS: (more - starting - untagged) * price,
        }
    # A sample stands for a step: a node's first and last may each be off by one.
    sampled = min(-more, nodes * 2 * step_seconds / SECONDS_OF_AN_HOUR)
    return {Reason.START: -sampled * price, Reason.FEWER_HOURS: (more + sampled) * price}


def _checked(parts: dict[Reason, Fraction], mine: _Reported, theirs: BilledMachines) -> dict[Reason, Fraction]:
    difference = theirs.usd + theirs.covered_usd - Fraction(mine.usd)
    rest = difference - sum(parts.values(), Fraction(0))
    if rest:
        parts[Reason.UNEXPLAINED] = parts.get(Reason.UNEXPLAINED, Fraction(0)) + rest
    return parts


def _others(bill: Bill) -> Iterable[tuple[str, Reason, str, Sum]]:
    for (cloud, kind, what), each in bill.others.items():
        yield cloud.value, _REASONS[kind], what, each
    for reason, sums in ((Reason.ELSEWHEN, bill.elsewhen), (Reason.REPEATED, bill.repeated)):
        for cloud, each in sums.items():
            yield cloud.value, reason, "all rows", each


def _notes(month: ReportedMonth, bill: Bill, families: Iterable[BilledPlace]) -> Iterable[str]:
    def shown(seconds: int) -> str:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")

    if not month.complete:
        yield "The report is not complete; it lists what is missing. Hours that it did not see appear here as additional billed hours."
    period = month.period
    for cloud in sorted(bill.clouds):
        if cloud not in bill.first:
            yield f"The bill of {cloud.value} has no machine in the report's period, {shown(period.start)} to {shown(period.end)}."
        elif bill.first[cloud] > period.start or bill.last[cloud] < period.end:
            yield (
                f"The bill of {cloud.value} has machines from {shown(bill.first[cloud])} to {shown(bill.last[cloud])}; the report is of "
                f"{shown(period.start)} to {shown(period.end)}."
            )
        if cloud in bill.first and cloud not in bill.with_clusters:
            yield f"No row of {cloud.value} names a cluster: machines of other clusters or of none look like the report's."
    if bill.partly.rows:
        usd = to_cents({0: bill.partly.usd})[0]
        rows = f"{bill.partly.rows} rows of machines, {usd:,} USD"
        yield f"{rows}, lie in the report's period in part only, and are counted as a whole."
    if bill.unchecked:
        yield f"{bill.unchecked:,} rows came after the last that was remembered; they were not checked for repetitions."
    for each in sorted(families):
        yield (
            f"Rows of {each.region} name no machine (system label compute.googleapis.com/machine_spec): {each.machine} "
            f"{each.bought.value} is compared as a family, in hours of vCPUs."
        )
