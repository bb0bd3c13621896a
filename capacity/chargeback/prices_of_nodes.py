"""What each node cost: its seconds at the price of its machine, region and capacity type, to the last fraction of a cent."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from capacity.chargeback.nodes import UNKNOWN, cloud_of
from capacity.price_book import priced_as

if TYPE_CHECKING:
    from collections.abc import Callable

    from capacity.chargeback.books import Books, NodeKey
    from capacity.chargeback.nodes import NodeFacts
    from capacity.chargeback.samples import Seconds
    from capacity.machines import Cloud
    from capacity.price_book import PriceBook
    from capacity.records import Source

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
    """The exact cost of each node whose price is known; of the others, for how long they ran. `sources` are those of the prices."""

    usd: dict[NodeKey, Fraction] = field(default_factory=dict["NodeKey", Fraction])
    unknown: dict[UnknownPrice, Seconds] = field(default_factory=dict["UnknownPrice", "Seconds"])
    sources: dict[str, Source] = field(default_factory=dict[str, "Source"])


def cost_nodes(books: Books, prices: Callable[[Cloud], PriceBook]) -> NodeCosts:
    """Prices every node of the books."""
    costs = NodeCosts()
    for (name, facts), book in books.nodes.items():
        usd_per_hour = _usd_per_hour(facts, prices, costs.sources)
        if usd_per_hour is None:
            unknown = UnknownPrice(facts.machine, facts.region, facts.bought_as)
            costs.unknown[unknown] = costs.unknown.get(unknown, 0) + book.seconds
        else:
            costs.usd[name, facts] = usd_per_hour * book.seconds / _HOUR
    return costs


def _usd_per_hour(facts: NodeFacts, prices: Callable[[Cloud], PriceBook], sources: dict[str, Source]) -> Fraction | None:
    cloud = cloud_of(facts.machine)
    if cloud is None or facts.capacity_type is None or UNKNOWN in {facts.machine, facts.region}:
        return None
    book = prices(cloud)
    price = book.find(facts.machine, facts.region, priced_as(facts.capacity_type))
    if price is None:
        return None
    sources[price.source] = book.source_of(price)
    return Fraction(price.usd_per_hour)
