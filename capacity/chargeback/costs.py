"""What nodes cost by machine, region and capacity type, and what storage and traffic cost by the clouds' bills."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from capacity.catalog.data_files import Record, read_records
from capacity.catalog.price_book import priced_as
from capacity.chargeback.labels import NONE
from capacity.chargeback.nodes import UNKNOWN, cloud_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from capacity.catalog.data_files import Source
    from capacity.catalog.machines import Cloud
    from capacity.catalog.price_book import PriceBook
    from capacity.chargeback.books import Books, NodeKey
    from capacity.chargeback.nodes import NodeFacts
    from capacity.chargeback.samples import Seconds


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


class ExtraKind(StrEnum):
    """STORAGE is data that is kept, in buckets or on disks; EGRESS is data that leaves a zone, a region or the cloud."""

    STORAGE = "storage"
    EGRESS = "egress"


class ExtraCost(Record):
    """What a team is billed for one of these in the period, in US dollars and cents; `what` says what it is, such as a bucket's name."""

    team: Annotated[str, Field(min_length=1)]
    kind: ExtraKind
    usd: Annotated[Decimal, Field(ge=0, decimal_places=2)]
    project: str = NONE
    what: str = ""


class ExtraCostFile(Record):
    """The file: a list `costs`."""

    costs: list[ExtraCost]


def read_extra_costs(path: Path) -> tuple[ExtraCost, ...]:
    """What the file says. Raises DataFileError with every problem at once."""
    return tuple(read_records(path, ExtraCostFile).costs)
