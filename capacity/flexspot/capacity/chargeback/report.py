"""The report: what nodes cost, lines that sum to it to the cent, and the charges that each line consists of."""

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
    from flexspot.capacity.chargeback.commitments import Uncommitted
    from flexspot.capacity.chargeback.credits import Credited
    from flexspot.capacity.chargeback.gpu_use import Lost, Use
    from flexspot.capacity.chargeback.node_costs import NodeGroup, NodePriceChange, UnknownPrice
    from flexspot.capacity.chargeback.queries import Owner, Work, Workload
    from flexspot.capacity.chargeback.samples import Gap, Period, Seconds


class ExtraKind(StrEnum):
    """STORAGE is data that is kept, in buckets or on disks; EGRESS is data that leaves a zone, a region or the cloud."""

    STORAGE = "storage"
    EGRESS = "egress"


class ExtraCost(Record):
    """What a team is billed for one of these in the period, in US dollars and cents; `what` says what it is, such as a bucket's name.

    `cloud` is whose bill it is from. Default: the one whose nodes the report is of.
    """

    team: Annotated[str, Field(min_length=1)]
    kind: ExtraKind
    usd: Annotated[Decimal, Field(ge=Decimal(0), decimal_places=2)]
    project: str = NONE
    what: str = ""
    cloud: Vendor | None = None


class ExtraCostFile(Record):
    """The file: a list `costs`."""

    costs: list[ExtraCost]


def read_extra_costs(path: Path) -> tuple[ExtraCost, ...]:
    """What the file says. Raises DataFileError with every problem at once."""
    return tuple(read_records(path, ExtraCostFile).costs)


HOUR = SECONDS_OF_AN_HOUR


class IdlePolicy(StrEnum):
    """Who pays for GPUs that nobody had.

    PROPORTIONAL: those who had GPUs of the same pool, by what these cost; of a pool that nobody used, all teams likewise. OWNER: the
    team or owner that the node is labelled with. CENTRAL: no team; it is a line of its own, also for what nobody can be found for.
    """

    PROPORTIONAL = "proportional"
    OWNER = "owner"
    CENTRAL = "central"


DIMENSIONS = tuple(each.name for each in fields(LineKey))
"""The names by which the lines can be added up."""


@dataclass(frozen=True)
class Totals:
    """Sums. Seconds are of GPUs: had, had while somebody measured, and busy. `unpriced` are those on nodes whose price is not known.

    `saved_usd` is by how much `allocated_usd` is less than the same GPUs on demand: idle ones save nothing.
    """

    allocated_usd: Decimal = Decimal(0)
    idle_usd: Decimal = Decimal(0)
    saved_usd: Decimal = Decimal(0)
    gpu_seconds: float = 0.0
    measured: float = 0.0
    used: float = 0.0
    unpriced: float = 0.0

    @property
    def usd(self) -> Decimal:
        """What is paid: for what was had, and for what was idle."""
        return self.allocated_usd + self.idle_usd

    @property
    def saved_share(self) -> float:
        """Of what the same GPUs had cost on demand; 0 where nothing was had."""
        whole = self.allocated_usd + self.saved_usd
        return float(self.saved_usd / whole) if whole else 0.0

    @property
    def gpu_hours(self) -> float:
        """GPU hours had."""
        return self.gpu_seconds / HOUR

    @property
    def used_share(self) -> float | None:
        """How busy GPUs were while somebody measured; None: nobody did."""
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
    """What a team paid for the GPUs that a workload had on behalf of a user: `totals` have no idle GPUs, and nothing of what was saved."""

    team: str
    workload: Workload
    user: str
    totals: Totals


@dataclass(frozen=True)
class OpenCostFigure:
    """What OpenCost says of the nodes that it knows, and what this report says of the same ones."""

    nodes: int
    opencost_usd: Decimal
    report_usd: Decimal


@dataclass(frozen=True)
class UnusedCommitment:
    """A commitment of the period in node seconds: how long it was billed, how long no node of it was there, and what that came to."""

    what: str
    seconds: Seconds
    unused: Seconds
    usd: Decimal


@dataclass(frozen=True)
class SpentPlan:
    """A commitment of US dollars an hour in the period: what was billed for it, and how much of that machines used.

    `utilisation` is how much of it was used; `coverage` how much of what it could pay for it paid, at on-demand prices. None: of nothing.
    """

    plan: SpendCommitment
    committed_usd: Decimal
    used_usd: Decimal
    unused_usd: Decimal
    utilisation: Fraction | None
    coverage: Fraction | None


@dataclass(frozen=True)
class Report:
    """Everything there is to say of a period. `gpu_seconds` are all of the nodes', had or idle; `node_seconds` of all nodes.

    What was committed to and not there is in `node_usd` and, for machines with GPUs, in `idle_usd`; `commitments` says how much it was.
    What of the `plans` nothing used is in `node_usd` and `idle_usd` as well; what they paid for is in both at their rates.
    `credits` are what is taken off, apart from all other sums.
    `charges` are the lines taken apart by what they are of; theirs is the same sum.
    `nodes` are all nodes by what a bill tells apart, and sum to `node_usd`.
    `work` is by whom, and for what, the teams' GPUs were had; a team's sums to its `allocated_usd`.
    """

    period: Period
    asked: Period
    step: Seconds
    idle: IdlePolicy
    lines: tuple[Line, ...]
    node_usd: Decimal
    idle_usd: Decimal
    platform_usd: Decimal
    node_seconds: Seconds
    gpu_seconds: float
    unknown: dict[UnknownPrice, Seconds]
    sources: dict[str, Source]
    lost: dict[Owner, Lost]
    evictions: dict[tuple[str, str], float]
    homeless: dict[Owner, Fraction]
    extra: tuple[ExtraCost, ...]
    opencost: OpenCostFigure | None
    gaps: tuple[Gap, ...]
    notes: tuple[str, ...]
    commitments: tuple[UnusedCommitment, ...] = ()
    uncommitted: dict[Uncommitted, Seconds] = field(default_factory=dict["Uncommitted", "Seconds"])
    doubled: dict[str, Seconds] = field(default_factory=dict[str, "Seconds"])
    charges: tuple[LineCharge, ...] = ()
    nodes: tuple[NodeGroup, ...] = ()
    work: tuple[WorkLine, ...] = ()
    price_changes: tuple[NodePriceChange, ...] = ()
    plans: tuple[SpentPlan, ...] = ()
    credits: tuple[Credited, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether nothing is missing from the sums, nor in doubt: every price is known, nothing was unseen, and the period is over.

        Reserved nodes without a commitment leave open what was billed for the rest of it; a name of two things, what was whose.
        """
        missing = self.unknown or self.gaps or self.homeless or self.uncommitted or self.doubled
        return not missing and self.period == self.asked

    @property
    def total(self) -> Totals:
        """All lines."""
        return sum((each.totals for each in self.lines), Totals())

    @property
    def extra_usd(self) -> Decimal:
        """Storage and traffic, which are no part of the nodes' cost."""
        return sum((each.usd for each in self.extra), Decimal(0))

    @property
    def credit_usd(self) -> Decimal:
        """What credits take off: no part of the nodes' cost."""
        return sum((each.usd for each in self.credits), Decimal("0.00"))

    @property
    def paid_usd(self) -> Decimal:
        """What is left to pay of nodes, storage and egress."""
        return self.node_usd + self.extra_usd - self.credit_usd

    def by(self, *dimensions: str) -> dict[tuple[str, ...], Totals]:
        """The lines added up, the dearest first."""
        found: dict[tuple[str, ...], Totals] = {}
        for line in self.lines:
            key = tuple(getattr(line.key, each) for each in dimensions)
            found[key] = found.get(key, Totals()) + line.totals
        return dict(sorted(found.items(), key=lambda each: (-each[1].usd, each[0])))


TOP_CONSUMERS = 10
"""So many of each team are shown unless asked otherwise."""

MOST_CONSUMERS = 1000


def totals_of(use: Use, *, priced: bool) -> Totals:
    """A use as sums, before any money; `priced` says whether the price of its node is known."""
    seconds = float(use.allocated)
    return Totals(gpu_seconds=seconds, measured=float(use.measured), used=use.used, unpriced=0.0 if priced else seconds)


_Consumer = tuple["Workload", str]


class WorkAmounts:
    """Exact dollars by line, workload and user, as they are found node by node."""

    def __init__(self) -> None:
        self._usd: defaultdict[LineKey, defaultdict[_Consumer, Fraction]] = defaultdict(_fractions)
        self._totals: dict[tuple[str, _Consumer], Totals] = {}

    def add_use(self, line: LineKey, work: Work, use: Use, *, priced: bool) -> None:
        """GPUs that the work had on a node."""
        key = line.team, (work.workload, work.user)
        self._totals[key] = self._totals.get(key, Totals()) + totals_of(use, priced=priced)

    def add_usd(self, line: LineKey, work: Work, usd: Fraction) -> None:
        """What these cost."""
        self._usd[line][work.workload, work.user] += usd

    def lines(self, allocated: Mapping[LineKey, Decimal]) -> tuple[WorkLine, ...]:
        """Each team's, which sum to what its lines pay for GPUs that were had. `allocated` is that, in cents.

        Cents are divided line by line, as `to_cents` gives the right sum only of what was rounded once.
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
    """Those of one team that cost most, the dearest first. `others` are all that are not in `top`, and `count` how many these are.

    `top`, `others` and `idle_usd`, which is for GPUs that nobody had, sum to `team`: what the team pays.
    """

    team: Totals
    top: tuple[tuple[KeyT, Totals], ...]
    others: Totals
    count: int

    @property
    def idle_usd(self) -> Decimal:
        """What the team pays for GPUs that nobody had: no workload is to blame for them."""
        return self.team.idle_usd

    def share(self, totals: Totals) -> float | None:
        """Of all that the team pays; None where that is nothing."""
        return float(totals.usd / self.team.usd) if self.team.usd else None


def top_consumers(report: Report, most: int, by: Callable[[WorkLine], KeyT]) -> dict[str, TopConsumers[KeyT]]:
    """At most `most` of each team that had GPUs, by cost, then GPU hours, then name; the dearest team first."""
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
