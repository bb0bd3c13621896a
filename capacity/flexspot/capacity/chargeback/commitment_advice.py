"""Advises how many machines of each type to commit to, from a history of machine hours, and says how reliable that history is.

Only machines on demand can be committed to. AWS' plans are prices "compared to On-Demand pricing" (aws.amazon.com/savingsplans/faqs, read
2026-11-27). Google's discounts cover no Spot VMs (docs.archera.ai, a third party, of March 2026). That they cover neither flex-start
nor queued capacity is not verified. Reserved nodes are listed separately, because no label says whether a contract pays for them.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.price_book import HOURS_OF_A_MONTH
from flexspot.capacity.chargeback.nodes import UNKNOWN, cloud_of
from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.capacity.values.quantities import HOURS_OF_A_YEAR, as_decimal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from decimal import Decimal
    from pathlib import Path

    from flexspot.capacity.catalog.machines import Vendor
    from flexspot.capacity.catalog.price_book import Price, PriceBook
    from flexspot.capacity.chargeback.machine_hours import MachineHours, MachineKind


class NodeUse:
    """Hourly use of nodes. Raises ValueError if there are no hours."""

    def __init__(self, used_nodes: Sequence[int | Fraction]) -> None:
        if not used_nodes:
            raise ValueError("there are no hours of use to decide by")
        self.hours = len(used_nodes)
        self.peak = max(map(math.ceil, used_nodes))
        self.node_hours = sum(map(Fraction, used_nodes), Fraction(0))
        self._used = used_nodes

    @cached_property
    def shares(self) -> tuple[Fraction, ...]:
        """Share of the hours in which the first node, the second and so on up to the peak is used. It never rises."""
        whole = Counter(math.floor(used) for used in self._used)
        parts: defaultdict[int, Fraction] = defaultdict(Fraction)
        for used in self._used:
            # The part of a node belongs to the node above the whole ones.
            parts[math.floor(used) + 1] += Fraction(used) - math.floor(used)
        above, found = 0, list[Fraction]()
        for node in range(self.peak, 0, -1):
            above += whole[node]
            found.append((above + parts[node]) / self.hours)
        return tuple(reversed(found))

    @cached_property
    def _within(self) -> tuple[Fraction, ...]:
        return tuple(accumulate(self.shares, initial=Fraction(0)))

    def within(self, nodes: int) -> Fraction:
        """Return how many of `nodes` nodes are in use on average."""
        return self._within[min(nodes, self.peak)]

    def used_share(self, nodes: int) -> Fraction:
        """Return the utilisation of `nodes` reserved nodes: the used share of them, 1 if nothing is reserved."""
        return self.within(nodes) / nodes if nodes else Fraction(1)

    def covered_share(self, nodes: int) -> Fraction:
        """Return the coverage of `nodes` reserved nodes: their share of all use, 1 if nothing is used."""
        return self.within(nodes) * self.hours / self.node_hours if self.node_hours else Fraction(1)

    def worth_reserving(self, break_even_share: Fraction) -> int:
        """Return the number of nodes used for more than that share of the time. It is the cheapest number, and the fewest among equals."""
        return sum(share > break_even_share for share in self.shares)

    def usd(self, nodes: int, reserved_usd_per_hour: Decimal, other_usd_per_hour: Decimal, hours: int) -> Decimal:
        """Return the cost of `hours` hours of such use with `nodes` nodes reserved and the rest paid at the other price."""
        above = self.node_hours / self.hours - self.within(nodes)
        return as_decimal((Fraction(reserved_usd_per_hour) * nodes + Fraction(other_usd_per_hour) * above) * hours)


@dataclass(frozen=True)
class ReservedLevel:
    """A number of reserved nodes, evaluated over the hours of the history."""

    nodes: int
    usd: Decimal
    used_share: Fraction
    """Used share of the reserved nodes; 1 if there are none."""


@dataclass(frozen=True)
class ReservationAdvice:
    """The cheapest number of nodes to reserve, and the extremes to compare it with."""

    best: ReservedLevel
    """The cheapest level, with the fewest nodes among equals."""

    none: ReservedLevel
    """Nothing reserved."""

    peak: ReservedLevel
    """Everything reserved."""

    break_even_share: Fraction
    """Share of hours in which a node must be used to be worth reserving."""


def advise_reservation(
    used_nodes: Sequence[int | Fraction], reserved_usd_per_hour: Decimal, other_usd_per_hour: Decimal
) -> ReservationAdvice:
    """Return the best level for this hourly use; use above it costs the other price. Raises ValueError if there are no hours."""
    use = NodeUse(used_nodes)
    break_even = Fraction(reserved_usd_per_hour) / Fraction(other_usd_per_hour)

    def level(nodes: int) -> ReservedLevel:
        usd = use.usd(nodes, reserved_usd_per_hour, other_usd_per_hour, use.hours)
        return ReservedLevel(nodes, usd, use.used_share(nodes))

    return ReservationAdvice(level(use.worth_reserving(break_even)), level(0), level(use.peak), break_even)


def read_use(path: Path) -> list[int]:
    """Read the nodes in use, hour by hour: a whole number on each line. Empty lines are skipped. Raises ExplainedError for anything
    else.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ExplainedError(f"{path} cannot be read: {error}.", "name a text file.", exit_code=ExitCode.BAD_USAGE) from error
    used: list[int] = []
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if text and not (text.isascii() and text.isdigit()):
            raise ExplainedError(
                f"{path}, line {number}: {text[:40]!r} is not a number of nodes.",
                "give one whole number for each hour, each on a line of its own.",
                exit_code=ExitCode.BAD_USAGE,
            )
        if text:
            used.append(int(text))
    if not used:
        raise ExplainedError(f"{path} has no hours in it.", "give one whole number for each hour.", exit_code=ExitCode.BAD_USAGE)
    return used


TERM_YEARS = (1, 3)
"""Terms of commitments in years, with AWS (TermInYears of its recommendations) and Google Cloud (docs, "Committed use discounts for Compute
Engine"); both read 2026-11-27.
"""

_HOURS_OF_A_DAY = 24
LEAST_DAYS, GOOD_DAYS = 14, 60
"""Days of history below which nothing is advised, and from which a history is not called short.

Two weeks have every day of the week twice. 60 days is the longest that AWS' own recommendations look back (LookbackPeriodInDays: 7, 30 or
60 days; read 2026-11-27).
"""

MOST_MISSING_PERCENT, GOOD_MISSING_PERCENT = 25, 5
"""Percent of missing hours between the first and the last: above the first number nothing is advised, above the second a note warns. Both
are our own choice.
"""


@dataclass(frozen=True)
class Reach:
    """Reliability of a history."""

    first: datetime | None
    last: datetime | None
    hours: int
    missing: int
    refused: tuple[str, ...]
    """Reasons why it supports no advice."""

    weak: tuple[str, ...]
    """Reasons for doubt."""


def reach_of(history: MachineHours) -> Reach:
    """Return the length of a history and how much of it is missing."""
    hours, span, refused, weak = len(history.hours), history.span, list[str](), list[str]()
    days = Fraction(hours, _HOURS_OF_A_DAY)
    seen = f"{as_decimal(days):.1f} days were seen"
    if days < LEAST_DAYS:
        refused.append(f"{seen}; advice needs {LEAST_DAYS}, so that every day of the week is there twice")
    elif days < GOOD_DAYS:
        weak.append(f"{seen}, less than {GOOD_DAYS}: what is not in them, such as the end of a quarter, is not in the advice")
    missing = Fraction(history.missing * 100, span) if span else Fraction(0)
    gone = f"{history.missing} of {span} hours between the first and the last are missing ({as_decimal(missing):.1f} %)"
    if missing > MOST_MISSING_PERCENT:
        refused.append(f"{gone}; at most {MOST_MISSING_PERCENT} % may be")
    elif missing > GOOD_MISSING_PERCENT:
        weak.append(f"{gone}: where they are not hours like the others, the advice is off")
    first, last = (datetime.fromtimestamp(each, UTC) for each in (history.hours[0], history.hours[-1])) if history.hours else (None, None)
    return Reach(first, last, hours, history.missing, tuple(refused), tuple(weak))


@dataclass(frozen=True)
class Terms:
    """Price and term of a commitment. At most one of price and discount is given; without both, the price file's price counts."""

    years: int = TERM_YEARS[0]
    """Term."""

    committed_usd_per_hour: Decimal | None = None
    """Price of one machine for an hour."""

    discount_percent: Decimal | None = None
    """Percent off the on-demand price."""

    on_demand_usd_per_hour: Decimal | None = None
    """Replaces the price book's price."""


@dataclass(frozen=True)
class CommittedLevel:
    """A number of machines committed to."""

    nodes: int
    used_share: Fraction
    """Utilisation of what is committed; 1 if nothing is."""

    covered_share: Fraction
    """Share of all use that it covers."""

    usd_a_month: Decimal | None
    """Cost of the commitment and of the use above it on demand, for 730 hours. None if it is not known."""


@dataclass(frozen=True)
class MachineAdvice:
    """Number of machines of a type to commit to in a region, or the prices that are missing to say it."""

    machine: str
    region: str
    use: NodeUse
    on_demand: Price | None
    on_demand_usd_per_hour: Decimal | None
    committed: Price | None
    committed_usd_per_hour: Decimal | None
    break_even_share: Fraction | None
    best: CommittedLevel | None = None
    """None if the history does not support advice or the price of a commitment is not known."""

    none: CommittedLevel | None = None
    fewer: CommittedLevel | None = None
    """One machine less."""

    more: CommittedLevel | None = None
    """One machine more."""

    halves: tuple[int, int] | None = None
    """Best numbers by the first and by the second half of the hours alone."""

    term_usd: Decimal | None = None
    """Cost of the commitment over its term."""

    pays_after_months: Fraction | None = None
    """Months for which use must continue unchanged until the commitment has cost no more than on demand."""

    @property
    def saved_usd_a_month(self) -> Decimal | None:
        """Saving of a month in comparison to no commitment. None if a price is not known."""
        if self.best is None or self.none is None or self.best.usd_a_month is None or self.none.usd_a_month is None:
            return None
        return self.none.usd_a_month - self.best.usd_a_month

    def pays_below_usd_per_hour(self, node: int) -> Decimal | None:
        """Return the hourly price of a machine below which committing to the node pays. The first node is 1. None without an on-demand
        price.
        """
        if self.on_demand_usd_per_hour is None:
            return None
        return as_decimal(self.use.shares[node - 1] * Fraction(self.on_demand_usd_per_hour))

    @property
    def unknown(self) -> tuple[str, ...]:
        """Descriptions of the missing prices."""
        of = f"{self.machine} in {self.region}"
        missing = {
            f"the on-demand price of {of}": self.on_demand_usd_per_hour is None,
            f"the price of a commitment for {of}": self.break_even_share is None and self.committed_usd_per_hour is None,
        }
        return tuple(what for what, is_missing in missing.items() if is_missing)


@dataclass(frozen=True)
class CommitmentAdvice:
    """Numbers to commit to, by machine and region."""

    reach: Reach
    terms: Terms
    machines: tuple[MachineAdvice, ...]
    uncommittable: dict[MachineKind, Fraction] = field(default_factory=dict["MachineKind", Fraction])
    """Node hours of machines bought in other ways than on demand."""

    @property
    def complete(self) -> bool:
        """True if every machine has its number and the resulting saving."""
        return not self.reach.refused and all(each.saved_usd_a_month is not None for each in self.machines)


def advise_commitments(history: MachineHours, prices: Callable[[Vendor], PriceBook], terms: Terms) -> CommitmentAdvice:
    """Return the number of each machine with the lowest cost for the history. Raises ValueError for a history without hours."""
    reach = reach_of(history)
    machines: list[MachineAdvice] = []
    other: dict[MachineKind, Fraction] = {}
    for kind, nodes in history.nodes.items():
        if kind.bought_as == CapacityType.ON_DEMAND and UNKNOWN not in {kind.machine, kind.region}:
            machines.append(_advice(kind, history.of(kind), prices, terms, carries=not reach.refused))
        elif node_hours := sum(nodes.values(), Fraction(0)):
            other[kind] = node_hours
    return CommitmentAdvice(reach, terms, tuple(machines), other)


def _advice(
    kind: MachineKind, used: list[Fraction], prices: Callable[[Vendor], PriceBook], terms: Terms, *, carries: bool
) -> MachineAdvice:
    cloud = cloud_of(kind.machine)
    book = None if cloud is None else prices(cloud)
    on_demand = None if book is None else book.find(kind.machine, kind.region, CapacityType.ON_DEMAND)
    contract = None if book is None else book.find(kind.machine, kind.region, CapacityType.RESERVED)
    if terms.on_demand_usd_per_hour is not None:
        on_demand = None
    list_price = terms.on_demand_usd_per_hour or (None if on_demand is None else on_demand.usd_per_hour)
    off, committed = terms.discount_percent, terms.committed_usd_per_hour
    if off is not None or committed is not None:
        contract = None
    elif contract is not None:
        committed = contract.usd_per_hour
    if off is not None and list_price is not None:
        committed = list_price * (1 - off / 100)
    # A discount determines the share from which a machine pays, even if the on-demand price is not known.
    ratio = None if off is None else 1 - Fraction(off) / 100
    if ratio is None and committed is not None and list_price is not None:
        ratio = Fraction(committed) / Fraction(list_price)
    use = NodeUse(used)
    known = MachineAdvice(kind.machine, kind.region, use, on_demand, list_price, contract, committed, ratio)
    if ratio is None or not carries:
        return known

    def level(nodes: int) -> CommittedLevel:
        usd = None if committed is None or list_price is None else use.usd(nodes, committed, list_price, HOURS_OF_A_MONTH)
        return CommittedLevel(nodes, use.used_share(nodes), use.covered_share(nodes), usd)

    best, half = use.worth_reserving(ratio), len(used) // 2
    return replace(
        known,
        best=level(best),
        none=level(0),
        fewer=level(best - 1) if best else None,
        more=level(best + 1),
        halves=(NodeUse(used[:half]).worth_reserving(ratio), NodeUse(used[half:]).worth_reserving(ratio)),
        term_usd=None if committed is None else committed * best * HOURS_OF_A_YEAR * terms.years,
        pays_after_months=ratio * 12 * terms.years / use.used_share(best) if best else None,
    )
