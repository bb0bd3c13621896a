"""Cost of each node of the books and of commitments without nodes, and the nodes grouped as a cloud's bill distinguishes them."""

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
    """The price book of each cloud at each moment.

    `shipped` returns the price books without times. `own` is a price file that takes precedence; `name` is its name.
    """

    def __init__(self, shipped: Callable[[Vendor], PriceBook] = prices_of, own: PriceFile | None = None, name: str = "") -> None:
        self._shipped, self._own, self._name = shipped, own, name
        starts = set() if own is None else {int(each.start.timestamp()) for each in own.prices if each.start is not None}
        self.changes: tuple[Seconds, ...] = tuple(sorted(starts))
        """Moments at which a price changes, in order."""

        self._books: dict[tuple[Vendor, int], PriceBook] = {}

    def at(self, cloud: Vendor, moment: Seconds) -> PriceBook:
        """Return the prices of a moment. Raises DataFileError for a discount of the file that applies to nothing."""
        number = bisect_right(self.changes, moment)
        if self._own is None or cloud is not self._own.cloud:
            return self._shipped(cloud)
        if (cloud, number) not in self._books:
            book = self._shipped(cloud)
            self._books[cloud, number] = book.with_rows_of(self._own, self._name, datetime.fromtimestamp(moment, UTC))
        return self._books[cloud, number]

    def of(self, moment: Seconds) -> Callable[[Vendor], PriceBook]:
        """Return a function from a cloud to its price book at a moment."""
        return partial(self.at, moment=moment)

    def within(self, period: Period) -> tuple[Seconds, ...]:
        """Return the changes after the period's start and before its end."""
        return tuple(each for each in self.changes if period.start < each < period.end)

    def cuts(self, period: Period, also: Iterable[Seconds] = ()) -> tuple[Seconds, ...]:
        """Return the moments at which the books must be cut so that prices are constant within each, including those of `also`."""
        found = {*self.within(period), *hours_of(self.plans(period), period), *also}
        return tuple(sorted(each for each in found if period.start < each < period.end))

    def plans(self, period: Period) -> tuple[SpendCommitment, ...]:
        """Return the commitments of US dollars an hour of all clouds that are valid in a part of the period."""
        plans = [each for cloud in Vendor for each in self.at(cloud, period.start).spend_commitments]
        spans = [each.holds(period.start, period.end) for each in plans]
        return tuple(each for each, (start, end) in zip(plans, spans, strict=True) if end > start)


@dataclass(frozen=True)
class UnknownPrice:
    """Nodes without a known price: they are in no sum."""

    machine: str
    region: str
    capacity_type: str

    def __str__(self) -> str:
        return f"{self.capacity_type} price of {self.machine} in {self.region}"


@dataclass(frozen=True)
class NodePriceChange:
    """A change of an hourly price in US dollars."""

    what: UnknownPrice
    pool: str
    moment: Seconds
    """Seconds since 1970 UTC."""

    before: Fraction | None
    """None if it was not known."""

    after: Fraction
    source: str
    """Name of the new price's source."""


@dataclass(frozen=True)
class Priced:
    """A part of the time of a node's book, with its hourly rate."""

    part: Fraction
    rate: Rate
    plan: SpendCommitment | None = None
    """The commitment that pays for it; None if the on-demand price does."""


@dataclass
class NodeCosts:
    """The exact cost of the books' nodes.

    Nodes without a known price are in `unknown`, with the seconds that they ran.
    """

    usd: dict[NodeKey, Fraction] = field(default_factory=dict["NodeKey", Fraction])
    """Cost of each node with a known price."""

    saved: dict[NodeKey, Fraction] = field(default_factory=dict["NodeKey", Fraction])
    """Saving of each node in comparison to the same machine on demand."""

    fees: dict[NodeKey, Fraction] = field(default_factory=dict["NodeKey", Fraction])
    """Part of each node's cost that is the fee of EKS Auto Mode."""

    unsaved: set[UnknownPrice] = field(default_factory=set["UnknownPrice"])
    """Nodes whose on-demand price is not known, so that their savings are not known either."""

    unknown: dict[UnknownPrice, Seconds] = field(default_factory=dict["UnknownPrice", "Seconds"])
    sources: dict[str, Source] = field(default_factory=dict[str, "Source"])
    """Sources of the prices."""

    unused: list[tuple[Kept, Fraction]] = field(default_factory=list[tuple["Kept", Fraction]])
    """Cost of commitments while their nodes did not exist."""

    uncommitted: dict[Uncommitted, Seconds] = field(default_factory=dict[Uncommitted, "Seconds"])
    """Reserved nodes without a known commitment."""

    priced: dict[NodeKey, tuple[Priced, ...]] = field(default_factory=dict["NodeKey", tuple[Priced, ...]])
    """Parts of the time of each node in `usd`, which together are all of it."""

    unused_rates: dict[Kept, list[tuple[Seconds, Rate, Seconds]]] = field(
        default_factory=dict["Kept", list[tuple["Seconds", Rate, "Seconds"]]]
    )
    """Start, rate and seconds of what is in `unused`, as far as it has a price."""

    changes: tuple[NodePriceChange, ...] = ()
    """Price changes within the period of nodes that existed."""

    plans: list[PlanUse] = field(default_factory=list[PlanUse])
    """Commitments of US dollars an hour, and their use."""

    def is_unknown(self, facts: NodeFacts, of_type: str, seconds: Seconds) -> None:
        """Add seconds in which something ran, or was committed to, without a known price."""
        unknown = UnknownPrice(facts.machine, facts.region, of_type)
        self.unknown[unknown] = self.unknown.get(unknown, 0) + seconds


def cost_nodes(books: Books, prices: PriceTimes, *, auto_mode: Collection[str] = ()) -> NodeCosts:
    """Price every node of the books and every committed node that did not exist, at the prices of their time.

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
    """Let commitments of US dollars an hour pay for nodes on demand, but not for their fee of EKS Auto Mode."""
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
    """Yield the price changes of existing nodes, in order of time."""
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
    """Return the on-demand price without discounts. A price in the user's own file counts as a list price."""
    cloud = cloud_of(facts.machine)
    price = None if cloud is None else prices(cloud).undiscounted.get((facts.machine, facts.region, CapacityType.ON_DEMAND))
    return None if price is None else Fraction(price.usd_per_hour) + fee


def _with_fee(
    usd_per_hour: Fraction, facts: NodeFacts, prices: Callable[[Vendor], PriceBook], sources: dict[str, Source]
) -> Fraction | None:
    """Return the price with the fee of EKS Auto Mode. None if the fee is not known, so that no sum is too low without a message."""
    cloud = cloud_of(facts.machine)
    found = None if cloud is None else prices(cloud).node_fee(facts.machine, facts.region)
    if cloud is None or found is None:
        return None
    fee, usd = found
    sources[fee.source] = prices(cloud).source_of(fee)
    return usd_per_hour + Fraction(usd)


AUTO_MODE = "eks-auto-mode"
"""Replaces the capacity type for the fee of EKS Auto Mode, which is a separate line of a bill."""


@dataclass(frozen=True)
class NodeGroup:
    """Nodes of one machine type, bought in one way."""

    cloud: str
    region: str
    machine: str
    capacity_type: str
    nodes: int
    """Number of nodes."""

    node_seconds: Seconds
    unpriced_seconds: Seconds
    """The part of `node_seconds` without a known price."""

    unused_seconds: Seconds
    """Seconds of commitments without a node. They are not part of `node_seconds`."""

    usd: Decimal
    """Cost of everything above, in cents."""


@dataclass
class _CostSums:
    nodes: int = 0
    seconds: int = 0
    unpriced: int = 0
    unused: int = 0
    usd: Fraction = field(default_factory=Fraction)


_Key = tuple[str, str, str, str]


def node_groups(books: Books, costs: NodeCosts) -> tuple[NodeGroup, ...]:
    """Group the costs of all nodes, and of commitments that no node used. The cents sum to the whole cost, rounded once."""
    found: dict[_Key, _CostSums] = {}
    known: set[tuple[str, NodeFacts]] = set()
    for key, book in books.nodes.items():
        sums = found.setdefault(_key(key.facts), _CostSums())
        usd, fee = costs.usd.get(key), costs.fees.get(key)
        # A node whose price changed has several entries. It counts once.
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
        # A plan has no region and no machine: its name identifies it.
        found.setdefault((use.plan.kind.cloud.value, UNKNOWN, use.plan.name, SPEND), _CostSums()).usd += use.unused
    rounded = to_cents({key: sums.usd for key, sums in found.items()})
    return tuple(NodeGroup(*key, sums.nodes, sums.seconds, sums.unpriced, sums.unused, rounded[key]) for key, sums in sorted(found.items()))


def _key(facts: NodeFacts) -> _Key:
    cloud = cloud_of(facts.machine)
    return (UNKNOWN if cloud is None else cloud.value, facts.region, facts.machine, facts.bought_as)
