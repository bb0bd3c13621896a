"""Commitments of machines and of US dollars an hour: what each paid for, its unused part, and reserved nodes without a commitment.

Committed machines are billed whether their nodes exist or not.

Commitments of US dollars are applied hour by hour. The rule is AWS' (docs.aws.amazon.com/savingsplans/latest/userguide/sp-applying.html,
read 2026-11-27): each clock-hour, after reservations, EC2 Instance Savings Plans are applied before Compute ones. Within a kind, all plans
together go to the usage with the highest saving in percent of the on-demand price first, and among equals to the lowest rate. This
continues until the plans or the usage are used up. Usage beyond a plan costs the on-demand price, and the unused part of the plan is billed
all the same. Google (docs.cloud.google.com/docs/cuds-multiprice, read 2026-11-27) also applies its flexible discounts each hour, and bills
the excess and the unused part in the same way. It does not document the order of discounts, so the same order is used. Neither covers Spot;
here only machines on demand are covered.

Equal usages that exceed a commitment get equal parts of it: no team's bill says which of two like machines it paid for.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.contract import SpendCommitment, SpendKind
from flexspot.capacity.chargeback.nodes import UNKNOWN, NodeFacts
from flexspot.capacity.values.quantities import SECONDS_OF_AN_HOUR

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from flexspot.capacity.catalog.contract import Commitment
    from flexspot.capacity.chargeback.gpu_use import Books, NodeKey
    from flexspot.capacity.chargeback.samples import Period, Seconds


@dataclass(frozen=True)
class Kept:
    """A commitment in a period."""

    commitment: Commitment
    facts: NodeFacts
    seconds: Seconds
    """Node seconds for which it was billed."""

    unused_since: tuple[tuple[Seconds, Seconds], ...]
    """Node seconds without a node, by the last cut of the books before them or the period's start."""

    @property
    def unused(self) -> Seconds:
        """Node seconds without a node."""
        return sum(seconds for _, seconds in self.unused_since)


@dataclass(frozen=True)
class Uncommitted:
    """Reserved nodes in excess of the known commitments. The unused part of their reservation is not known."""

    machine: str
    region: str
    pool: str

    def __str__(self) -> str:
        return f"reserved {self.machine} in {self.region} (pool {self.pool})"


@dataclass
class Committed:
    """The commitments of a period, and the node seconds of reserved nodes that belong to none of them."""

    kept: list[Kept] = field(default_factory=list[Kept])
    uncommitted: dict[Uncommitted, Seconds] = field(default_factory=dict[Uncommitted, "Seconds"])


Span = tuple[int, int]
"""Start, and end (exclusive)."""


def commitments_of(books: Books, commitments: Iterable[Commitment], cuts: Iterable[Seconds] = ()) -> Committed:
    """Return the use of each commitment in the books. Commitments of a pool get its nodes first, then the others in their order.

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
        _CommitmentPlace(wanted, spans[place], (books.period.start, books.period.end), since).add_to(found, books.step)
    return found


class _CommitmentPlace:
    """The commitments for one machine in one region, and its reserved nodes."""

    def __init__(self, wanted: Sequence[Commitment], spans: dict[NodeFacts, list[Span]], period: Span, since: Sequence[Seconds]) -> None:
        self._spans, self._since = spans, since
        self._wanted = [(each, each.holds(*period)) for each in wanted]

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
            # A replaced node and its successor are both seen for up to a step.
            if seconds := sum((last - first) * nodes for first, last, nodes in _joined(stretches) if last - first > 2 * step):
                kind = Uncommitted(facts.machine, facts.region, facts.pool)
                found.uncommitted[kind] = found.uncommitted.get(kind, 0) + seconds

    def _stretches(self) -> Iterator[tuple[int, int, dict[NodeFacts, int]]]:
        """Yield the intervals in which the number of nodes of each kind and the valid commitments do not change."""
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
        """Assign nodes to the commitments, removing them from `there`. Yield the number of missing nodes of each commitment."""
        for number, (commitment, (first, last)) in enumerate(self._wanted):
            if first <= moment < last:
                missing = commitment.nodes
                for facts, nodes in there.items():
                    taken = min(missing, nodes) if commitment.is_of(facts.machine, facts.region, facts.pool) else 0
                    there[facts] = nodes - taken
                    missing -= taken
                yield number, missing


def _joined(stretches: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Join adjacent intervals with the same number of nodes."""
    joined: list[tuple[int, int, int]] = []
    for first, last, nodes in stretches:
        if joined and (joined[-1][1], joined[-1][2]) == (first, nodes):
            joined[-1] = (joined[-1][0], last, nodes)
        else:
            joined.append((first, last, nodes))
    return joined


def _facts_of(commitment: Commitment, spans: Iterable[NodeFacts]) -> NodeFacts:
    """Return the facts of a commitment's nodes, as far as they, or those of its machine, agree."""
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


@dataclass(frozen=True)
class Usage:
    """A machine on demand for some seconds of one clock-hour, and its hourly cost without any commitment."""

    key: NodeKey
    seconds: Seconds
    usd_per_hour: Fraction


@dataclass(frozen=True)
class Covered:
    """Seconds of a machine that `plan` pays for, at `usd_per_hour`."""

    plan: SpendCommitment
    seconds: Fraction
    usd_per_hour: Fraction


@dataclass
class PlanUse:
    """Use of a commitment in a period, in exact US dollars."""

    plan: SpendCommitment
    committed: Fraction = Fraction(0)
    """Billed amount."""

    used: Fraction = Fraction(0)
    """Amount used by machines."""

    instead_of: Fraction = Fraction(0)
    """On-demand cost of the machines it paid for."""

    eligible: Fraction = Fraction(0)
    """On-demand cost of all machines that it has a rate for, while it was valid."""

    @property
    def unused(self) -> Fraction:
        """Amount billed without use."""
        return self.committed - self.used

    @property
    def utilisation(self) -> Fraction | None:
        """Used share of the commitment. None if it was not valid in the period."""
        return self.used / self.committed if self.committed else None

    @property
    def coverage(self) -> Fraction | None:
        """Share of the eligible usage that it paid for, at on-demand prices. None if no usage was eligible."""
        return self.instead_of / self.eligible if self.eligible else None


@dataclass
class Applied:
    """Result of applying all commitments: what they paid for each node, and how each was used."""

    covered: dict[NodeKey, list[Covered]] = field(default_factory=dict["NodeKey", list[Covered]])
    plans: list[PlanUse] = field(default_factory=list[PlanUse])


def hours_of(plans: Iterable[SpendCommitment], period: Period) -> set[Seconds]:
    """Return the starts and ends of the clock-hours within a period in which a commitment is valid."""
    found: set[Seconds] = set()
    for plan in plans:
        first, last = plan.holds(period.start, period.end)
        if last > first:
            found.update(range(first + -first % SECONDS_OF_AN_HOUR, last + 1, SECONDS_OF_AN_HOUR))
    return {each for each in found if period.start < each < period.end}


def apply_plans(books: Books, on_demand: dict[NodeKey, Fraction], plans: Sequence[SpendCommitment]) -> Applied:
    """Apply the commitments to nodes on demand, whose hourly prices are `on_demand`.

    Raises ValueError if the books are not cut at each of the `hours_of` the commitments.
    """
    period = books.period
    if missing := hours_of(plans, period) - set(books.cuts):
        raise ValueError(f"the books are not cut by the hour, in which commitments are applied: {len(missing)} cuts are missing")
    by_hour: defaultdict[Seconds, list[Usage]] = defaultdict(list)
    for key, usd_per_hour in on_demand.items():
        if key.facts.capacity_type is CapacityType.ON_DEMAND:
            by_hour[key.since - key.since % SECONDS_OF_AN_HOUR].append(Usage(key, books.nodes[key].seconds, usd_per_hour))
    found = Applied(plans=[PlanUse(each) for each in plans])
    first, last = period.start - period.start % SECONDS_OF_AN_HOUR, period.end
    for hour in range(first, last, SECONDS_OF_AN_HOUR):
        until = min(hour + SECONDS_OF_AN_HOUR, last)
        spans = (each.plan.holds(max(hour, period.start), until) for each in found.plans)
        budgets = [
            (each, Fraction(each.plan.usd_per_hour) * (end - start) / SECONDS_OF_AN_HOUR)
            for each, (start, end) in zip(found.plans, spans, strict=True)
            if end > start
        ]
        if budgets:
            _Hour(by_hour.get(hour, []), found).apply(budgets)
    return found


@dataclass(frozen=True)
class _Pair:
    """A usage that a commitment can pay for. Pairs are taken in the order of `rank`."""

    use: PlanUse
    usage: Usage
    rate: Fraction

    @property
    def rank(self) -> tuple[Fraction, Fraction, str]:
        """Sort key: the highest saving first, among equals the lowest rate."""
        return self.rate / self.usage.usd_per_hour, self.rate, self.use.plan.name


class _Hour:
    """Applies commitments within one clock-hour."""

    def __init__(self, usages: list[Usage], into: Applied) -> None:
        self._usages, self._into = usages, into
        self._left = {each.key: Fraction(each.seconds) for each in usages}

    def apply(self, budgets: list[tuple[PlanUse, Fraction]]) -> None:
        """Apply the commitments, each up to its budget for this hour."""
        left = {use.plan.name: usd for use, usd in budgets}
        pairs: list[_Pair] = []
        for use, usd in budgets:
            use.committed += usd
            for usage in self._usages:
                rate = use.plan.rate_of(usage.key.facts.machine, usage.key.facts.region)
                if rate is not None:
                    use.eligible += usage.usd_per_hour * usage.seconds / SECONDS_OF_AN_HOUR
                    pairs.append(_Pair(use, usage, Fraction(rate)))
        order = list(SpendKind)
        pairs.sort(key=lambda pair: (order.index(pair.use.plan.kind), pair.rank))
        for _, equals in groupby(pairs, key=lambda pair: (order.index(pair.use.plan.kind), pair.rank)):
            self._pay(list(equals), left)

    def _pay(self, equals: list[_Pair], left: dict[str, Fraction]) -> None:
        """Pay for machines of one saving and one rate from their commitment. If it does not suffice, each gets an equal part."""
        name, rate = equals[0].use.plan.name, equals[0].rate
        wanted = sum((self._left[pair.usage.key] for pair in equals), Fraction(0)) * rate / SECONDS_OF_AN_HOUR
        if not wanted or not left[name]:
            return
        part = min(Fraction(1), left[name] / wanted)
        left[name] -= wanted * part
        for pair in equals:
            seconds = self._left[pair.usage.key] * part
            if seconds:
                self._left[pair.usage.key] -= seconds
                pair.use.used += seconds * rate / SECONDS_OF_AN_HOUR
                pair.use.instead_of += seconds * pair.usage.usd_per_hour / SECONDS_OF_AN_HOUR
                self._into.covered.setdefault(pair.usage.key, []).append(Covered(pair.use.plan, seconds, rate))
