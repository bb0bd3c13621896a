"""The report: what nodes cost, and lines that sum to it to the cent, with what must be known to read them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from capacity.catalog.capacity_type import CapacityType
from capacity.catalog.data_files import Record, read_records
from capacity.catalog.machines import Cloud
from capacity.chargeback.charges import LineKey, Rate
from capacity.chargeback.commitments import Uncommitted, commitments_of
from capacity.chargeback.nodes import UNKNOWN, cloud_of
from capacity.chargeback.queries import NONE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from capacity.catalog.data_files import Source
    from capacity.catalog.price_book import PriceBook
    from capacity.chargeback.charges import Charge
    from capacity.chargeback.commitments import Kept
    from capacity.chargeback.gpu_use import Books, Lost, NodeKey
    from capacity.chargeback.node_groups import NodeGroup
    from capacity.chargeback.nodes import NodeFacts
    from capacity.chargeback.queries import Owner
    from capacity.chargeback.samples import Gap, Period, Seconds
    from capacity.chargeback.work import Workload


_HOUR = 3600


@dataclass(frozen=True)
class UnknownPrice:
    """Nodes of which no price is known: they are in no sum."""

    machine: str
    region: str
    capacity_type: str

    def __str__(self) -> str:
        return f"{self.capacity_type} price of {self.machine} in {self.region}"


@dataclass
class NodeCosts:
    """The exact cost of each node whose price is known; of the others, for how long they ran. `sources` are those of the prices.

    `fees` says how much of a node's cost is the fee of EKS Auto Mode.
    `unused` is what commitments cost while their nodes were not there; `uncommitted` are reserved nodes of no commitment that is known.
    `saved` is by how much each node was cheaper than the same machine on demand; `unsaved` names those of which that price is not known.
    `rates` are what an hour of each node in `usd` costs, `unused_rates` what an hour of what is in `unused` does, as far as it has a price.
    """

    usd: dict[NodeKey, Fraction] = field(default_factory=dict["NodeKey", Fraction])
    saved: dict[NodeKey, Fraction] = field(default_factory=dict["NodeKey", Fraction])
    fees: dict[NodeKey, Fraction] = field(default_factory=dict["NodeKey", Fraction])
    unsaved: set[UnknownPrice] = field(default_factory=set["UnknownPrice"])
    unknown: dict[UnknownPrice, Seconds] = field(default_factory=dict["UnknownPrice", "Seconds"])
    sources: dict[str, Source] = field(default_factory=dict[str, "Source"])
    unused: list[tuple[Kept, Fraction]] = field(default_factory=list[tuple["Kept", Fraction]])
    uncommitted: dict[Uncommitted, Seconds] = field(default_factory=dict[Uncommitted, "Seconds"])
    rates: dict[NodeKey, Rate] = field(default_factory=dict["NodeKey", Rate])
    unused_rates: dict[Kept, Rate] = field(default_factory=dict["Kept", Rate])


def cost_nodes(books: Books, prices: Callable[[Cloud], PriceBook], *, auto_mode: Collection[str] = ()) -> NodeCosts:
    """Prices every node of the books, and what was committed to and not there.

    `auto_mode` are the environments whose nodes EKS Auto Mode runs, for a fee on each.
    """
    costs = NodeCosts()
    for (name, facts), book in books.nodes.items():
        paid, of_type = _usd_per_hour(facts, prices, costs.sources), facts.bought_as
        usd_per_hour = paid
        if usd_per_hour is not None and facts.environment in auto_mode:
            # The fee is a part of the on-demand price, whatever the node was bought as.
            usd_per_hour, of_type = _with_fee(usd_per_hour, facts, prices, costs.sources), CapacityType.ON_DEMAND.value
        if usd_per_hour is None:
            unknown = UnknownPrice(facts.machine, facts.region, of_type)
            costs.unknown[unknown] = costs.unknown.get(unknown, 0) + book.seconds
        else:
            costs.usd[name, facts] = usd_per_hour * book.seconds / _HOUR
            costs.rates[name, facts] = Rate(usd_per_hour, _listed(facts, prices, fee=usd_per_hour - (paid or 0)))
            if paid is not None and usd_per_hour != paid:
                costs.fees[name, facts] = (usd_per_hour - paid) * book.seconds / _HOUR
        if paid is not None and facts.capacity_type is not CapacityType.ON_DEMAND:
            # The fee is the same, however a node was bought.
            full = _usd_per_hour(replace(facts, capacity_type=CapacityType.ON_DEMAND), prices, costs.sources)
            costs.saved[name, facts] = Fraction(0) if full is None else (full - paid) * book.seconds / _HOUR
            if full is None:
                costs.unsaved.add(UnknownPrice(facts.machine, facts.region, CapacityType.ON_DEMAND.value))
    committed = commitments_of(books, [each for cloud in Cloud for each in prices(cloud).commitments])
    costs.uncommitted = committed.uncommitted
    for kept in committed.kept:
        usd_per_hour = _usd_per_hour(kept.facts, prices, costs.sources)
        if usd_per_hour is None and kept.unused:
            unknown = UnknownPrice(kept.facts.machine, kept.facts.region, kept.facts.bought_as)
            costs.unknown[unknown] = costs.unknown.get(unknown, 0) + kept.unused
        elif usd_per_hour is not None:
            costs.unused_rates[kept] = Rate(usd_per_hour, _listed(kept.facts, prices))
        costs.unused.append((kept, (usd_per_hour or Fraction(0)) * kept.unused / _HOUR))
    return costs


def _usd_per_hour(facts: NodeFacts, prices: Callable[[Cloud], PriceBook], sources: dict[str, Source]) -> Fraction | None:
    cloud = cloud_of(facts.machine)
    if cloud is None or facts.capacity_type is None or UNKNOWN in {facts.machine, facts.region}:
        return None
    book = prices(cloud)
    price = book.paid(facts.machine, facts.region, facts.capacity_type, facts.pool)
    if price is None:
        return None
    sources[price.source] = book.source_of(price)
    return Fraction(price.usd_per_hour)


def _listed(facts: NodeFacts, prices: Callable[[Cloud], PriceBook], fee: Fraction = Fraction(0)) -> Fraction | None:
    """The on-demand price with no discount off. One that a file of one's own names counts as the list's."""
    cloud = cloud_of(facts.machine)
    price = None if cloud is None else prices(cloud).undiscounted.get((facts.machine, facts.region, CapacityType.ON_DEMAND))
    return None if price is None else Fraction(price.usd_per_hour) + fee


def _with_fee(
    usd_per_hour: Fraction, facts: NodeFacts, prices: Callable[[Cloud], PriceBook], sources: dict[str, Source]
) -> Fraction | None:
    """With the fee of EKS Auto Mode; None where that is not known, so that no sum is too low without a word."""
    cloud = cloud_of(facts.machine)
    found = None if cloud is None else prices(cloud).node_fee(facts.machine, facts.region)
    if cloud is None or found is None:
        return None
    fee, usd = found
    sources[fee.source] = prices(cloud).source_of(fee)
    return usd_per_hour + Fraction(usd)


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
    cloud: Cloud | None = None


class ExtraCostFile(Record):
    """The file: a list `costs`."""

    costs: list[ExtraCost]


def read_extra_costs(path: Path) -> tuple[ExtraCost, ...]:
    """What the file says. Raises DataFileError with every problem at once."""
    return tuple(read_records(path, ExtraCostFile).costs)


HOUR = 3600


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
class Report:
    """Everything there is to say of a period. `gpu_seconds` are all of the nodes', had or idle; `node_seconds` of all nodes.

    What was committed to and not there is in `node_usd` and, for machines with GPUs, in `idle_usd`; `commitments` says how much it was.
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
    uncommitted: dict[Uncommitted, Seconds] = field(default_factory=dict[Uncommitted, "Seconds"])
    doubled: dict[str, Seconds] = field(default_factory=dict[str, "Seconds"])
    charges: tuple[Charge, ...] = ()
    nodes: tuple[NodeGroup, ...] = ()
    work: tuple[WorkLine, ...] = ()

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

    def by(self, *dimensions: str) -> dict[tuple[str, ...], Totals]:
        """The lines added up, the dearest first."""
        found: dict[tuple[str, ...], Totals] = {}
        for line in self.lines:
            key = tuple(getattr(line.key, each) for each in dimensions)
            found[key] = found.get(key, Totals()) + line.totals
        return dict(sorted(found.items(), key=lambda each: (-each[1].usd, each[0])))
