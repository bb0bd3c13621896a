"""What is committed is billed whether its nodes are there or not: how much of it was not there, and which nodes nobody has committed to."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from capacity.catalog.capacity_type import CapacityType
from capacity.chargeback.nodes import UNKNOWN, NodeFacts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from capacity.catalog.contract import Commitment
    from capacity.chargeback.gpu_use import Books
    from capacity.chargeback.samples import Seconds


@dataclass(frozen=True)
class Kept:
    """A commitment in a period: for how many node seconds it was billed, and for how many of them no node was there.

    `unused_since` are these by the last cut of the books before them, or the period's start, as far as there are any.
    """

    commitment: Commitment
    facts: NodeFacts
    seconds: Seconds
    unused_since: tuple[tuple[Seconds, Seconds], ...]

    @property
    def unused(self) -> Seconds:
        """All of them."""
        return sum(seconds for _, seconds in self.unused_since)


@dataclass(frozen=True)
class Uncommitted:
    """Reserved nodes beyond what anybody has said to be committed: what of their reservation was not there is not known."""

    machine: str
    region: str
    pool: str

    def __str__(self) -> str:
        return f"reserved {self.machine} in {self.region} (pool {self.pool})"


@dataclass
class Committed:
    """The commitments of a period, and the node seconds of reserved nodes that are of none of them."""

    kept: list[Kept] = field(default_factory=list[Kept])
    uncommitted: dict[Uncommitted, Seconds] = field(default_factory=dict[Uncommitted, "Seconds"])


Span = tuple[int, int]
"""From a moment until before another."""


def commitments_of(books: Books, commitments: Iterable[Commitment], cuts: Iterable[Seconds] = ()) -> Committed:
    """What the books show of each commitment. Those of a pool get its nodes first, then those of any pool in their order.

    `cuts` are moments within the period at which prices may change.
    """
    by_place: defaultdict[tuple[str, str], list[Commitment]] = defaultdict(list)
    for each in commitments:
        by_place[each.machine, each.region].append(each)
    spans: defaultdict[tuple[str, str], dict[NodeFacts, list[Span]]] = defaultdict(dict)
    for (_, facts, _), book in books.nodes.items():
        if facts.capacity_type is CapacityType.RESERVED:
            spans[facts.machine, facts.region].setdefault(facts, []).extend(book.spans)
    found, since = Committed(), (books.period.start, *cuts)
    for place in sorted({*by_place, *spans}):
        wanted = sorted(by_place[place], key=lambda each: each.pool is None)
        _Place(wanted, spans[place], (books.period.start, books.period.end), since).add_to(found, books.step)
    return found


class _Place:
    """The commitments for one machine in one region, and its reserved nodes."""

    def __init__(self, wanted: Sequence[Commitment], spans: dict[NodeFacts, list[Span]], period: Span, since: Sequence[Seconds]) -> None:
        self._spans, self._since = spans, since
        self._wanted = [(each, each.seconds(*period)) for each in wanted]

    def add_to(self, found: Committed, step: Seconds) -> None:
        unused: defaultdict[int, Counter[Seconds]] = defaultdict(Counter)
        over: defaultdict[NodeFacts, list[tuple[int, int, int]]] = defaultdict(list)
        for first, last, there in self._stretches():
            for number, nodes in self._given(first, there):
                unused[number][self._since[bisect_right(self._since, first) - 1]] += nodes * (last - first)
            for facts, nodes in there.items():
                if nodes:
                    over[facts].append((first, last, nodes))
        for number, (commitment, (first, last)) in enumerate(self._wanted):
            if last > first:
                facts = _facts_of(commitment, self._spans)
                missing = tuple((since, seconds) for since, seconds in sorted(unused[number].items()) if seconds)
                found.kept.append(Kept(commitment, facts, commitment.nodes * (last - first), missing))
        for facts, stretches in over.items():
            # A node that takes another's place is seen beside it for up to a step.
            if seconds := sum((last - first) * nodes for first, last, nodes in _joined(stretches) if last - first > 2 * step):
                kind = Uncommitted(facts.machine, facts.region, facts.pool)
                found.uncommitted[kind] = found.uncommitted.get(kind, 0) + seconds

    def _stretches(self) -> Iterator[tuple[int, int, dict[NodeFacts, int]]]:
        """Between two moments the same nodes are there, so many of each kind, and the same commitments hold."""
        changes: defaultdict[int, Counter[NodeFacts]] = defaultdict(Counter)
        for moment in self._since:
            changes[moment].update()
        for _, span in self._wanted:
            for moment in span:
                changes[moment].update()
        for facts, spans in self._spans.items():
            for first, last in spans:
                changes[first][facts] += 1
                changes[last][facts] -= 1
        there: Counter[NodeFacts] = Counter()
        for first, last in pairwise(sorted(changes)):
            there.update(changes[first])
            yield first, last, dict(there)

    def _given(self, moment: int, there: dict[NodeFacts, int]) -> Iterator[tuple[int, int]]:
        """Takes from the nodes that are there those of each commitment; yields how many of its are missing."""
        for number, (commitment, (first, last)) in enumerate(self._wanted):
            if first <= moment < last:
                missing = commitment.nodes
                for facts, nodes in there.items():
                    taken = min(missing, nodes) if commitment.is_of(facts.machine, facts.region, facts.pool) else 0
                    there[facts] = nodes - taken
                    missing -= taken
                yield number, missing


def _joined(stretches: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Stretches that touch and have as many nodes, as one."""
    joined: list[tuple[int, int, int]] = []
    for first, last, nodes in stretches:
        if joined and (joined[-1][1], joined[-1][2]) == (first, nodes):
            joined[-1] = (joined[-1][0], last, nodes)
        else:
            joined.append((first, last, nodes))
    return joined


def _facts_of(commitment: Commitment, spans: Iterable[NodeFacts]) -> NodeFacts:
    """Whose and where it is, as far as its nodes, or those of its machine, all say the same."""
    nodes = [each for each in spans if commitment.is_of(each.machine, each.region, each.pool)]

    def one(values: set[str], otherwise: str) -> str:
        return values.pop() if len(values) == 1 else otherwise

    return NodeFacts(
        machine=commitment.machine,
        region=commitment.region,
        capacity_type=CapacityType.RESERVED,
        pool=commitment.pool or one({each.pool for each in nodes}, UNKNOWN),
        environment=one({each.environment for each in nodes}, ""),
        owner=one({each.owner for each in nodes}, ""),
    )
