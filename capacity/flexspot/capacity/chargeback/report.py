"""The report: the cost of nodes, lines that sum to it to the cent, and the charges of each line."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, fields
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Generic, TypeVar

from pydantic import Field

from flexspot.capacity.catalog.data_files import Record, read_records
from flexspot.capacity.catalog.machines import Vendor
from flexspot.capacity.chargeback.charges import LineCharge, LineKey
from flexspot.capacity.chargeback.queries import NONE
from flexspot.capacity.values.quantities import SECONDS_OF_AN_HOUR, to_cents

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from flexspot.capacity.catalog.contract import SpendCommitment
    from flexspot.capacity.catalog.data_files import Source
    from flexspot.capacity.chargeback.charges import Credited
    from flexspot.capacity.chargeback.commitments import Uncommitted
    from flexspot.capacity.chargeback.gpu_use import Lost, Use
    from flexspot.capacity.chargeback.node_costs import NodeGroup, NodePriceChange, UnknownPrice
    from flexspot.capacity.chargeback.queries import Owner, Work, Workload
    from flexspot.capacity.chargeback.samples import Gap, Period, Seconds


class ExtraKind(StrEnum):
    """Kind of an extra cost."""

    STORAGE = "storage"
    """Data that is kept, in buckets or on disks."""

    EGRESS = "egress"
    """Data that leaves a zone, a region or the cloud."""


class ExtraCost(Record):
    """An amount that a team is billed for storage or egress in the period."""

    team: Annotated[str, Field(min_length=1)]
    kind: ExtraKind
    usd: Annotated[Decimal, Field(ge=Decimal(0), decimal_places=2)]
    """US dollars and cents."""

    project: str = NONE
    what: str = ""
    """Description, such as a bucket's name."""

    cloud: Vendor | None = None
    """Cloud whose bill it is from. Default: the cloud of the report's nodes."""


class ExtraCostFile(Record):
    """A file with a list `costs`."""

    costs: list[ExtraCost]


def read_extra_costs(path: Path) -> tuple[ExtraCost, ...]:
    """Read the extra costs from a file. Raises DataFileError with every problem at once."""
    return tuple(read_records(path, ExtraCostFile).costs)


HOUR = SECONDS_OF_AN_HOUR


class IdlePolicy(StrEnum):
    """The payer of idle GPUs."""

    PROPORTIONAL = "proportional"
    """Teams that had GPUs of the same pool, by their cost; for an unused pool, all teams by their cost."""

    OWNER = "owner"
    """The team or owner in the node's labels."""

    CENTRAL = "central"
    """No team: a separate line. It also gets costs for which the other policies find no payer."""


DIMENSIONS = tuple(each.name for each in fields(LineKey))
"""Names of the dimensions by which lines can be added up."""


@dataclass(frozen=True)
class Totals:
    """Sums of lines."""

    allocated_usd: Decimal = Decimal(0)
    idle_usd: Decimal = Decimal(0)
    saved_usd: Decimal = Decimal(0)
    """Amount by which `allocated_usd` is less than the on-demand cost of the same GPUs. Idle GPUs save nothing."""

    gpu_seconds: float = 0.0
    """Allocated GPU seconds."""

    measured: float = 0.0
    """Allocated GPU seconds with measured utilisation."""

    used: float = 0.0
    """Busy GPU seconds."""

    unpriced: float = 0.0
    """Allocated GPU seconds on nodes without a known price."""

    @property
    def usd(self) -> Decimal:
        """Amount to pay, for allocated and for idle GPUs."""
        return self.allocated_usd + self.idle_usd

    @property
    def saved_share(self) -> float:
        """Saving as a share of the on-demand cost of the same GPUs; 0 without allocated GPUs."""
        whole = self.allocated_usd + self.saved_usd
        return float(self.saved_usd / whole) if whole else 0.0

    @property
    def gpu_hours(self) -> float:
        """Allocated GPU hours."""
        return self.gpu_seconds / HOUR

    @property
    def used_share(self) -> float | None:
        """Utilisation of GPUs while it was measured; None if it never was."""
        return self.used / self.measured if self.measured else None

    def __add__(self, other: Totals) -> Totals:
        return Totals(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(Totals)))


@dataclass(frozen=True)
class Line:
    """One line."""

    key: LineKey
    totals: Totals


@dataclass(frozen=True)
class WorkLine:
    """Cost of the GPUs that a workload had for a user. `totals` contain no idle GPUs and no savings."""

    team: str
    workload: Workload
    user: str
    totals: Totals


@dataclass(frozen=True)
class OpenCostFigure:
    """Cost of nodes according to OpenCost, and according to this report."""

    nodes: int
    opencost_usd: Decimal
    report_usd: Decimal


@dataclass(frozen=True)
class UnusedCommitment:
    """A commitment of the period in node seconds: billed, without a node, and the cost of the latter."""

    what: str
    seconds: Seconds
    unused: Seconds
    usd: Decimal


@dataclass(frozen=True)
class SpentPlan:
    """A commitment of US dollars an hour in the period: the billed amount and the part that machines used."""

    plan: SpendCommitment
    committed_usd: Decimal
    used_usd: Decimal
    unused_usd: Decimal
    utilisation: Fraction | None
    """Used share. None if nothing was billed."""

    coverage: Fraction | None
    """Paid share of the eligible usage, at on-demand prices. None if no usage was eligible."""


@dataclass(frozen=True)
class Report:
    """The report of a period."""

    period: Period
    asked: Period
    step: Seconds
    idle: IdlePolicy
    lines: tuple[Line, ...]
    node_usd: Decimal
    """Cost of all nodes. It includes unused commitments and plans; usage that plans paid for is included at their rates."""

    idle_usd: Decimal
    """Cost of idle GPUs. It includes unused plans, and unused commitments of machines with GPUs."""

    platform_usd: Decimal
    node_seconds: Seconds
    """Seconds of all nodes."""

    gpu_seconds: float
    """GPU seconds of all nodes, allocated or idle."""

    unknown: dict[UnknownPrice, Seconds]
    """Seconds of nodes without a known price."""
    sources: dict[str, Source]
    lost: dict[Owner, Lost]
    """Work lost to interruptions, by owner."""
    evictions: dict[tuple[str, str], float]
    """Number of evictions, by cluster queue and reason."""
    unmatched: dict[Owner, Fraction]
    """GPU seconds of pods on nodes that were never seen."""
    extra: tuple[ExtraCost, ...]
    opencost: OpenCostFigure | None
    gaps: tuple[Gap, ...]
    """Times without samples that are not counted."""
    notes: tuple[str, ...]
    commitments: tuple[UnusedCommitment, ...] = ()
    """Commitments of machines, with their unused part."""

    uncommitted: dict[Uncommitted, Seconds] = field(default_factory=dict["Uncommitted", "Seconds"])
    """Seconds of reserved nodes without a known commitment."""
    doubled: dict[str, Seconds] = field(default_factory=dict[str, "Seconds"])
    """Names that belonged to two objects at once, and for how long."""
    charges: tuple[LineCharge, ...] = ()
    """The lines split by kind and supply; the same sum."""

    nodes: tuple[NodeGroup, ...] = ()
    """All nodes grouped as a bill distinguishes them; they sum to `node_usd`."""

    work: tuple[WorkLine, ...] = ()
    """The allocated GPUs by workload and user; a team's sum to its `allocated_usd`."""

    price_changes: tuple[NodePriceChange, ...] = ()
    plans: tuple[SpentPlan, ...] = ()
    """Commitments of US dollars an hour."""
    credits: tuple[Credited, ...] = ()
    """Amounts taken off, not included in any other sum."""

    @property
    def complete(self) -> bool:
        """True if the sums are complete and certain: every price is known, nothing was unseen, and the period is over.

        For reserved nodes without a commitment, the bill for the rest of it is not known. For a name of two objects, their owners are not.
        """
        missing = self.unknown or self.gaps or self.unmatched or self.uncommitted or self.doubled
        return not missing and self.period == self.asked

    @property
    def total(self) -> Totals:
        """Sums of all lines."""
        return sum((each.totals for each in self.lines), Totals())

    @property
    def extra_usd(self) -> Decimal:
        """Storage and traffic, which are not part of the nodes' cost."""
        return sum((each.usd for each in self.extra), Decimal(0))

    @property
    def credit_usd(self) -> Decimal:
        """Amount that credits take off; it is not part of the nodes' cost."""
        return sum((each.usd for each in self.credits), Decimal("0.00"))

    @property
    def paid_usd(self) -> Decimal:
        """Amount left to pay for nodes, storage and egress."""
        return self.node_usd + self.extra_usd - self.credit_usd

    def by(self, *dimensions: str) -> dict[tuple[str, ...], Totals]:
        """Return the lines added up by dimensions, the most expensive first."""
        found: dict[tuple[str, ...], Totals] = {}
        for line in self.lines:
            key = tuple(getattr(line.key, each) for each in dimensions)
            found[key] = found.get(key, Totals()) + line.totals
        return dict(sorted(found.items(), key=lambda each: (-each[1].usd, each[0])))


TOP_CONSUMERS = 10
"""Default number of consumers shown for each team."""

MOST_CONSUMERS = 1000


def totals_of(use: Use, *, priced: bool) -> Totals:
    """Return a use as sums, before prices. `priced` is True if the price of its node is known."""
    seconds = float(use.allocated)
    return Totals(gpu_seconds=seconds, measured=float(use.measured), used=use.used, unpriced=0.0 if priced else seconds)


_Consumer = tuple["Workload", str]


class WorkAmounts:
    """Exact dollars by line, workload and user, added node by node."""

    def __init__(self) -> None:
        self._usd: defaultdict[LineKey, defaultdict[_Consumer, Fraction]] = defaultdict(_fractions)
        self._totals: dict[tuple[str, _Consumer], Totals] = {}

    def add_use(self, line: LineKey, work: Work, use: Use, *, priced: bool) -> None:
        """Add GPUs that the work had on a node."""
        key = line.team, (work.workload, work.user)
        self._totals[key] = self._totals.get(key, Totals()) + totals_of(use, priced=priced)

    def add_usd(self, line: LineKey, work: Work, usd: Fraction) -> None:
        """Add their cost."""
        self._usd[line][work.workload, work.user] += usd

    def lines(self, allocated: Mapping[LineKey, Decimal]) -> tuple[WorkLine, ...]:
        """Return the lines of each team, which sum to what its lines pay for allocated GPUs: `allocated`, in cents.

        Cents are divided line by line, as `to_cents` returns the exact sum only for amounts rounded once.
        """
        found = dict(self._totals)
        for line, amounts in self._usd.items():
            for consumer, usd in to_cents(dict(sorted(amounts.items())), allocated[line]).items():
                found[line.team, consumer] += Totals(allocated_usd=usd)
        return tuple(WorkLine(team, *consumer, totals) for (team, consumer), totals in sorted(found.items(), key=lambda each: each[0]))


def _fractions() -> defaultdict[_Consumer, Fraction]:
    return defaultdict(Fraction)


KeyT = TypeVar("KeyT")


@dataclass(frozen=True)
class TopConsumers(Generic[KeyT]):
    """The most expensive consumers of one team.

    `top`, `others` and `idle_usd` sum to `team`.
    """

    team: Totals
    """Everything the team pays."""

    top: tuple[tuple[KeyT, Totals], ...]
    """The most expensive ones, in order."""

    others: Totals
    """Sum of those not in `top`."""

    count: int
    """Number of those not in `top`."""

    @property
    def idle_usd(self) -> Decimal:
        """Cost of idle GPUs that the team pays for. It is attributed to no workload."""
        return self.team.idle_usd

    def share(self, totals: Totals) -> float | None:
        """Return the share of everything that the team pays. None if it pays nothing."""
        return float(totals.usd / self.team.usd) if self.team.usd else None


def top_consumers(report: Report, most: int, by: Callable[[WorkLine], KeyT]) -> dict[str, TopConsumers[KeyT]]:
    """Return at most `most` consumers of each team, by cost, then GPU hours, then name; the most expensive team first."""
    of_team: dict[str, dict[KeyT, Totals]] = {}
    for line in report.work:
        sums = of_team.setdefault(line.team, {})
        sums[by(line)] = sums.get(by(line), Totals()) + line.totals
    found: dict[str, TopConsumers[KeyT]] = {}
    for (team,), totals in report.by("team").items():
        if team in of_team:
            ranked = sorted(of_team[team].items(), key=lambda each: (-each[1].usd, -each[1].gpu_seconds, str(each[0])))
            rest = ranked[most:]
            found[team] = TopConsumers(totals, tuple(ranked[:most]), sum((each for _, each in rest), Totals()), len(rest))
    return found
