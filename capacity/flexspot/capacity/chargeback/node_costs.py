"""What each node of the books cost, what was committed to and not there, and the nodes by what a cloud's bill tells apart."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.machines import Vendor
from flexspot.capacity.catalog.price_book import prices_of
from flexspot.capacity.chargeback.charges import SPEND, Rate
from flexspot.capacity.chargeback.commitments import PlanUse, Uncommitted, apply_plans, commitments_of, hours_of
from flexspot.capacity.chargeback.nodes import UNKNOWN, cloud_of
from flexspot.capacity.values.quantities import SECONDS_OF_AN_HOUR, to_cents

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from decimal import Decimal

    from flexspot.capacity.catalog.contract import SpendCommitment
    from flexspot.capacity.catalog.data_files import Source
    from flexspot.capacity.catalog.price_book import Price, PriceBook, PriceFile
    from flexspot.capacity.chargeback.commitments import Kept
    from flexspot.capacity.chargeback.gpu_use import Books, NodeBook, NodeKey
    from flexspot.capacity.chargeback.nodes import NodeFacts
    from flexspot.capacity.chargeback.samples import Period, Seconds


class PriceTimes:
    """The price book of each cloud at each moment. `shipped` are those of no time, `own` the file before them, which has a `name`."""

    def __init__(self, shipped: Callable[[Vendor], PriceBook] = prices_of, own: PriceFile | None = None, name: str = "") -> None:
        self._shipped, self._own, self._name = shipped, own, name
        starts = set() if own is None else {int(each.start.timestamp()) for each in own.prices if each.start is not None}
        self.changes: tuple[Seconds, ...] = tuple(sorted(starts))
        """The moments at which some price changes, the first one first."""

        self._books: dict[tuple[Vendor, int], PriceBook] = {}

    def at(self, cloud: Vendor, moment: Seconds) -> PriceBook:
        """The prices of a moment. Raises DataFileError for a discount of the file that is off nothing."""
        number = bisect_right(self.changes, moment)
        if self._own is None or cloud is not self._own.cloud:
            return self._shipped(cloud)
        if (cloud, number) not in self._books:
            book = self._shipped(cloud)
            self._books[cloud, number] = book.with_rows_of(self._own, self._name, datetime.fromtimestamp(moment, UTC))
        return self._books[cloud, number]

    def of(self, moment: Seconds) -> Callable[[Vendor], PriceBook]:
        """The books of a moment."""
        return partial(self.at, moment=moment)

    def within(self, period: Period) -> tuple[Seconds, ...]:
        """The changes after the period's start and before its end."""
        return tuple(each for each in self.changes if period.start < each < period.end)

    def cuts(self, period: Period, also: Iterable[Seconds] = ()) -> tuple[Seconds, ...]:
        """At which moments the books must be cut, so that what is in one of them cost one price; `also` at these."""
        found = {*self.within(period), *hours_of(self.plans(period), period), *also}
        return tuple(sorted(each for each in found if period.start < each < period.end))

    def plans(self, period: Period) -> tuple[SpendCommitment, ...]:
        """The commitments of US dollars an hour of all clouds that hold in some of the period."""
        plans = [each for cloud in Vendor for each in self.at(cloud, period.start).spend_commitments]
        spans = [each.holds(period.start, period.end) for each in plans]
        return tuple(each for each, (start, end) in zip(plans, spans, strict=True) if end > start)


@dataclass(frozen=True)
class UnknownPrice:
    """Nodes of which no price is known: they are in no sum."""

    machine: str
    region: str
    capacity_type: str

    def __str__(self) -> str:
        return f"{self.capacity_type} price of {self.machine} in {self.region}"


@dataclass(frozen=True)
class NodePriceChange:
    """From `moment` on, in seconds since 1970 UTC, an hour of something cost another amount of US dollars; None: it was not known.

    `source` is that of the new price, by its name.
    """

    what: UnknownPrice
    pool: str
    moment: Seconds
    before: Fraction | None
    after: Fraction
    source: str


@dataclass(frozen=True)
class Priced:
    """A part of the time of a node's books, of which an hour costs `rate`; `plan` pays for it, or nobody but the on-demand price."""

    part: Fraction
    rate: Rate
    plan: SpendCommitment | None = None


@dataclass
class NodeCosts:
    """The exact cost of each node whose price is known; of the others, for how long they ran. `sources` are those of the prices.

    `fees` says how much of a node's cost is the fee of EKS Auto Mode.
    `unused` is what commitments cost while their nodes were not there; `uncommitted` are reserved nodes of no commitment that is known.
    `saved` is by how much each node was cheaper than the same machine on demand; `unsaved` names those of which that price is not known.
    `priced` are the parts of each node in `usd`, which are all of it; `unused_rates` since when what is in `unused` cost how much an hour,
    and for how many seconds, as far as it has a price. `changes` are prices of what was there that changed in the period. `plans` are
    commitments of US dollars an hour, and how they were used.
    """

    usd: dict[NodeKey, Fraction] = field(default_factory=dict["NodeKey", Fraction])
    saved: dict[NodeKey, Fraction] = field(default_factory=dict["NodeKey", Fraction])
    fees: dict[NodeKey, Fraction] = field(default_factory=dict["NodeKey", Fraction])
    unsaved: set[UnknownPrice] = field(default_factory=set["UnknownPrice"])
    unknown: dict[UnknownPrice, Seconds] = field(default_factory=dict["UnknownPrice", "Seconds"])
    sources: dict[str, Source] = field(default_factory=dict[str, "Source"])
    unused: list[tuple[Kept, Fraction]] = field(default_factory=list[tuple["Kept", Fraction]])
    uncommitted: dict[Uncommitted, Seconds] = field(default_factory=dict[Uncommitted, "Seconds"])
    priced: dict[NodeKey, tuple[Priced, ...]] = field(default_factory=dict["NodeKey", tuple[Priced, ...]])
    unused_rates: dict[Kept, list[tuple[Seconds, Rate, Seconds]]] = field(
        default_factory=dict["Kept", list[tuple["Seconds", Rate, "Seconds"]]]
    )
    changes: tuple[NodePriceChange, ...] = ()
    plans: list[PlanUse] = field(default_factory=list[PlanUse])

    def is_unknown(self, facts: NodeFacts, of_type: str, seconds: Seconds) -> None:
        """For so long something ran, or was committed to, of which that price is not known."""
        unknown = UnknownPrice(facts.machine, facts.region, of_type)
        self.unknown[unknown] = self.unknown.get(unknown, 0) + seconds


def cost_nodes(books: Books, prices: PriceTimes, *, auto_mode: Collection[str] = ()) -> NodeCosts:
    """Prices every node of the books, and what was committed to and not there, each at the prices of its time.

    `auto_mode` are the environments whose nodes EKS Auto Mode runs, for a fee on each.
    """
    costs = NodeCosts()
    for key, book in books.nodes.items():
        _cost_node(costs, key, book, prices.of(key.since), auto_mode=key.facts.environment in auto_mode)
    _apply_plans(costs, books, prices)
    _cost_commitments(costs, books, prices)
    seen = {each.facts for each in books.nodes} | {kept.facts for kept, _ in costs.unused}
    costs.changes = tuple(_changes(seen, prices, prices.within(books.period)))
    return costs


def _cost_node(costs: NodeCosts, key: NodeKey, book: NodeBook, prices: Callable[[Vendor], PriceBook], *, auto_mode: bool) -> None:
    facts = key.facts
    paid, of_type = _usd_per_hour(facts, prices, costs.sources), facts.bought_as
    usd_per_hour = paid
    if usd_per_hour is not None and auto_mode:
        # The fee is a part of the on-demand price, whatever the node was bought as.
        usd_per_hour, of_type = _with_fee(usd_per_hour, facts, prices, costs.sources), CapacityType.ON_DEMAND.value
    if usd_per_hour is None:
        costs.is_unknown(facts, of_type, book.seconds)
    else:
        costs.usd[key] = usd_per_hour * book.seconds / SECONDS_OF_AN_HOUR
        fee = usd_per_hour - (paid or 0)
        costs.priced[key] = (Priced(Fraction(1), Rate(usd_per_hour, _listed(facts, prices, fee), fee=fee)),)
        if fee:
            costs.fees[key] = fee * book.seconds / SECONDS_OF_AN_HOUR
    if paid is not None and facts.capacity_type is not CapacityType.ON_DEMAND:
        # The fee is the same, however a node was bought.
        full = _usd_per_hour(replace(facts, capacity_type=CapacityType.ON_DEMAND), prices, costs.sources)
        costs.saved[key] = Fraction(0) if full is None else (full - paid) * book.seconds / SECONDS_OF_AN_HOUR
        if full is None:
            costs.unsaved.add(UnknownPrice(facts.machine, facts.region, CapacityType.ON_DEMAND.value))


def _apply_plans(costs: NodeCosts, books: Books, prices: PriceTimes) -> None:
    """Has commitments of US dollars an hour pay for nodes on demand, whose fee of EKS Auto Mode they do not."""
    plans = prices.plans(books.period)
    if not plans:
        return
    on_demand = {key: priced.rate.paid - priced.rate.fee for key, (priced,) in costs.priced.items()}
    applied = apply_plans(books, on_demand, plans)
    costs.plans = applied.plans
    for key, covered in applied.covered.items():
        [whole], seconds = costs.priced[key], books.nodes[key].seconds
        rate, parts = whole.rate, list[Priced]()
        for each in covered:
            off = replace(rate, paid=each.usd_per_hour + rate.fee, contracted=rate.paid)
            parts.append(Priced(each.seconds / seconds, off, each.plan))
            less = (rate.paid - off.paid) * each.seconds / SECONDS_OF_AN_HOUR
            costs.usd[key] -= less
            costs.saved[key] = costs.saved.get(key, Fraction(0)) + less
        left = 1 - sum((each.part for each in parts), Fraction(0))
        costs.priced[key] = (*parts, *([replace(whole, part=left)] if left else []))
    for plan in plans:
        costs.sources[plan.source] = prices.at(plan.kind.cloud, books.period.start).source_of(plan)


def _cost_commitments(costs: NodeCosts, books: Books, prices: PriceTimes) -> None:
    start = books.period.start
    commitments = [each for cloud in Vendor for each in prices.at(cloud, start).commitments]
    committed = commitments_of(books, commitments, books.cuts)
    costs.uncommitted = committed.uncommitted
    for kept in committed.kept:
        usd = Fraction(0)
        for since, seconds in kept.unused_since:
            book = prices.of(since)
            usd_per_hour = _usd_per_hour(kept.facts, book, costs.sources)
            if usd_per_hour is None:
                costs.is_unknown(kept.facts, kept.facts.bought_as, seconds)
                continue
            costs.unused_rates.setdefault(kept, []).append((since, Rate(usd_per_hour, _listed(kept.facts, book)), seconds))
            usd += usd_per_hour * seconds / SECONDS_OF_AN_HOUR
        costs.unused.append((kept, usd))


def _changes(seen: Iterable[NodeFacts], prices: PriceTimes, moments: Iterable[Seconds]) -> Iterator[NodePriceChange]:
    """Which prices of what was there changed, in the order of time."""
    kinds = {(each.machine, each.region, each.bought_as, each.pool): each for each in seen}
    for moment in moments:
        for key in sorted(kinds):
            before, after = (_price(kinds[key], prices.of(each)) for each in (moment - 1, moment))
            if after is not None and (before is None or before.usd_per_hour != after.usd_per_hour):
                was, usd = None if before is None else Fraction(before.usd_per_hour), Fraction(after.usd_per_hour)
                yield NodePriceChange(UnknownPrice(*key[:3]), key[3], moment, was, usd, after.source)


def _price(facts: NodeFacts, prices: Callable[[Vendor], PriceBook]) -> Price | None:
    cloud = cloud_of(facts.machine)
    if cloud is None or facts.capacity_type is None or UNKNOWN in {facts.machine, facts.region}:
        return None
    return prices(cloud).paid(facts.machine, facts.region, facts.capacity_type, facts.pool)


def _usd_per_hour(facts: NodeFacts, prices: Callable[[Vendor], PriceBook], sources: dict[str, Source]) -> Fraction | None:
    price, cloud = _price(facts, prices), cloud_of(facts.machine)
    if price is None or cloud is None:
        return None
    sources[price.source] = prices(cloud).source_of(price)
    return Fraction(price.usd_per_hour)


def _listed(facts: NodeFacts, prices: Callable[[Vendor], PriceBook], fee: Fraction = Fraction(0)) -> Fraction | None:
    """The on-demand price with no discount off. One that a file of one's own names counts as the list's."""
    cloud = cloud_of(facts.machine)
    price = None if cloud is None else prices(cloud).undiscounted.get((facts.machine, facts.region, CapacityType.ON_DEMAND))
    return None if price is None else Fraction(price.usd_per_hour) + fee


def _with_fee(
    usd_per_hour: Fraction, facts: NodeFacts, prices: Callable[[Vendor], PriceBook], sources: dict[str, Source]
) -> Fraction | None:
    """With the fee of EKS Auto Mode; None where that is not known, so that no sum is too low without a word."""
    cloud = cloud_of(facts.machine)
    found = None if cloud is None else prices(cloud).node_fee(facts.machine, facts.region)
    if cloud is None or found is None:
        return None
    fee, usd = found
    sources[fee.source] = prices(cloud).source_of(fee)
    return usd_per_hour + Fraction(usd)


AUTO_MODE = "eks-auto-mode"
"""Stands in place of a capacity type for the fee of EKS Auto Mode, which a bill has in a line of its own."""


@dataclass(frozen=True)
class NodeGroup:
    """Nodes of one machine, bought in one way.

    `nodes` is how many there were. Of their `node_seconds` the price of `unpriced_seconds` is not known. `unused_seconds` are those of
    commitments of which no node was there, and no part of `node_seconds`. `usd` is what all of them cost, in cents.
    """

    cloud: str
    region: str
    machine: str
    capacity_type: str
    nodes: int
    node_seconds: Seconds
    unpriced_seconds: Seconds
    unused_seconds: Seconds
    usd: Decimal


@dataclass
class _CostSums:
    nodes: int = 0
    seconds: int = 0
    unpriced: int = 0
    unused: int = 0
    usd: Fraction = field(default_factory=Fraction)


_Key = tuple[str, str, str, str]


def node_groups(books: Books, costs: NodeCosts) -> tuple[NodeGroup, ...]:
    """All nodes of the books and what was committed to and not there; their cents sum to those of the whole cost, rounded once."""
    found: dict[_Key, _CostSums] = {}
    known: set[tuple[str, NodeFacts]] = set()
    for key, book in books.nodes.items():
        sums = found.setdefault(_key(key.facts), _CostSums())
        usd, fee = costs.usd.get(key), costs.fees.get(key)
        # Cuts are of prices: the node went on.
        new = (key.node, key.facts) not in known
        known.add((key.node, key.facts))
        sums.nodes += new
        sums.seconds += book.seconds
        sums.unpriced += book.seconds if usd is None else 0
        sums.usd += (usd or Fraction(0)) - (fee or Fraction(0))
        if fee is not None:
            fees = found.setdefault((*_key(key.facts)[:3], AUTO_MODE), _CostSums())
            fees.nodes += new
            fees.seconds += book.seconds
            fees.usd += fee
    for kept, usd in costs.unused:
        sums = found.setdefault(_key(kept.facts), _CostSums())
        sums.unused += kept.unused
        sums.usd += usd
    for use in costs.plans:
        # It is of no region and no machine: its name says which it is.
        found.setdefault((use.plan.kind.cloud.value, UNKNOWN, use.plan.name, SPEND), _CostSums()).usd += use.unused
    rounded = to_cents({key: sums.usd for key, sums in found.items()})
    return tuple(NodeGroup(*key, sums.nodes, sums.seconds, sums.unpriced, sums.unused, rounded[key]) for key, sums in sorted(found.items()))


def _key(facts: NodeFacts) -> _Key:
    cloud = cloud_of(facts.machine)
    return (UNKNOWN if cloud is None else cloud.value, facts.region, facts.machine, facts.bought_as)
