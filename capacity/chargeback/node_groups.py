"""The nodes of a report by what a cloud's bill tells apart, and how the books add up to them, so that the two can be compared."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from capacity.chargeback.charges import SPEND
from capacity.chargeback.nodes import UNKNOWN, cloud_of
from capacity.values.rounding import to_cents

if TYPE_CHECKING:
    from decimal import Decimal

    from capacity.chargeback.gpu_use import Books
    from capacity.chargeback.node_costs import NodeCosts
    from capacity.chargeback.nodes import NodeFacts
    from capacity.chargeback.samples import Seconds


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
class _Sums:
    nodes: int = 0
    seconds: int = 0
    unpriced: int = 0
    unused: int = 0
    usd: Fraction = field(default_factory=Fraction)


_Key = tuple[str, str, str, str]


def node_groups(books: Books, costs: NodeCosts) -> tuple[NodeGroup, ...]:
    """All nodes of the books and what was committed to and not there; their cents sum to those of the whole cost, rounded once."""
    found: dict[_Key, _Sums] = {}
    known: set[tuple[str, NodeFacts]] = set()
    for key, book in books.nodes.items():
        sums = found.setdefault(_key(key.facts), _Sums())
        usd, fee = costs.usd.get(key), costs.fees.get(key)
        # Cuts are of prices: the node went on.
        new = (key.node, key.facts) not in known
        known.add((key.node, key.facts))
        sums.nodes += new
        sums.seconds += book.seconds
        sums.unpriced += book.seconds if usd is None else 0
        sums.usd += (usd or Fraction(0)) - (fee or Fraction(0))
        if fee is not None:
            fees = found.setdefault((*_key(key.facts)[:3], AUTO_MODE), _Sums())
            fees.nodes += new
            fees.seconds += book.seconds
            fees.usd += fee
    for kept, usd in costs.unused:
        sums = found.setdefault(_key(kept.facts), _Sums())
        sums.unused += kept.unused
        sums.usd += usd
    for use in costs.plans:
        # It is of no region and no machine: its name says which it is.
        found.setdefault((use.plan.kind.cloud.value, UNKNOWN, use.plan.name, SPEND), _Sums()).usd += use.unused
    rounded = to_cents({key: sums.usd for key, sums in found.items()})
    return tuple(NodeGroup(*key, sums.nodes, sums.seconds, sums.unpriced, sums.unused, rounded[key]) for key, sums in sorted(found.items()))


def _key(facts: NodeFacts) -> _Key:
    cloud = cloud_of(facts.machine)
    return (UNKNOWN if cloud is None else cloud.value, facts.region, facts.machine, facts.bought_as)
