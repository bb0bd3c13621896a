"""Allocates each node's cost to the teams that used its GPUs, to the cent. The idle policy decides who pays for the rest."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from flexspot.capacity.chargeback.charges import (
    SPEND,
    ChargeKind,
    LineCharge,
    LineKey,
    Rate,
    Supply,
    apply_credits,
    moments_of,
    supply_of,
    supply_of_plan,
)
from flexspot.capacity.chargeback.node_costs import node_groups
from flexspot.capacity.chargeback.queries import CENTRAL, NONE, PLATFORM, Owner
from flexspot.capacity.chargeback.report import (
    HOUR,
    IdlePolicy,
    Line,
    OpenCostFigure,
    Report,
    SpentPlan,
    Totals,
    UnusedCommitment,
    WorkAmounts,
    totals_of,
)
from flexspot.capacity.values.quantities import cents, to_cents

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from flexspot.capacity.catalog.contract import SpendCommitment
    from flexspot.capacity.chargeback.charges import Credit
    from flexspot.capacity.chargeback.commitments import Kept, PlanUse
    from flexspot.capacity.chargeback.gpu_use import Books, NodeBook, NodeKey, Use
    from flexspot.capacity.chargeback.node_costs import NodeCosts
    from flexspot.capacity.chargeback.nodes import NodeFacts
    from flexspot.capacity.chargeback.report import ExtraCost
    from flexspot.capacity.chargeback.samples import Period, Seconds


@dataclass
class _Amount:
    """An exact amount: US dollars, and the machine and GPU seconds that they pay for."""

    usd: Fraction = Fraction(0)
    machine_seconds: Fraction = Fraction(0)
    gpu_seconds: Fraction = Fraction(0)

    def add(self, more: _Amount, part: Fraction = Fraction(1)) -> None:
        self.usd += more.usd * part
        self.machine_seconds += more.machine_seconds * part
        self.gpu_seconds += more.gpu_seconds * part


_What = tuple[ChargeKind, Supply]
_Part = tuple[str, "LineKey"]
"""A figure of a line: the sum of charges of several kinds and supplies."""


class _Charges:
    """Exact amounts by figure of a line, kind and supply. `idle_of` has the amounts of idle GPUs until they are allocated to lines."""

    def __init__(self, granted: Iterable[Credit] = ()) -> None:
        self._granted = tuple(granted)
        self.of_part: defaultdict[_Part, defaultdict[_What, _Amount]] = defaultdict(_amounts)
        self.idle_of: defaultdict[NodeFacts, defaultdict[_What, _Amount]] = defaultdict(_amounts)
        self.unused_plans: defaultdict[Supply, _Amount] = defaultdict(_Amount)
        self.saved: defaultdict[LineKey, Fraction] = defaultdict(Fraction)
        self.uses: dict[LineKey, Totals] = {}
        self.work = WorkAmounts()

    def usd(self, figure: str) -> dict[LineKey, Fraction]:
        """Return what each line pays of a figure."""
        return {line: _sum(amounts) for (of, line), amounts in self.of_part.items() if of == figure}

    def add_node(self, key: NodeKey, book: NodeBook, costs: NodeCosts) -> None:
        facts, uses, usd, saved = key.facts, book.uses, costs.usd.get(key), costs.saved.get(key, Fraction(0))
        for owner, use in uses.items():
            line = _line(owner, facts)
            self.uses[line] = self.uses.get(line, Totals()) + totals_of(use, priced=usd is not None)
        for work, use in book.work.items():
            self.work.add_use(_line(work.owner, facts), work, use, priced=usd is not None)
        if usd is None:
            return
        allocated = book.allocated
        # A pod can be seen for longer than its node: then its GPUs are all that the node had.
        whole = max(book.gpu_seconds, allocated)
        credits_for = self._credits_for(facts, key.since)
        for priced in costs.priced[key]:
            seconds = book.seconds * priced.part
            node = _Amount(priced.rate.paid * seconds / HOUR, seconds, whole * priced.part)
            self._divide(facts, supply_of(facts, priced.rate, priced.plan, credits_for), node, uses, whole)
        if whole == 0:
            self.saved[_line(Owner(team=PLATFORM), facts)] += saved
            return
        for work, use in book.work.items():
            self.work.add_usd(_line(work.owner, facts), work, usd * use.allocated / whole)
        for owner, use in uses.items():
            self.saved[_line(owner, facts)] += saved * use.allocated / whole

    def _divide(self, facts: NodeFacts, supply: Supply, node: _Amount, uses: Mapping[Owner, Use], whole: Fraction) -> None:
        """Divide a part of a node among the owners that had GPUs of it, and keep the idle rest for later."""
        if whole == 0:
            self.of_part["platform", _line(Owner(team=PLATFORM), facts)][ChargeKind.PLATFORM, supply].add(node)
            return
        left = Fraction(1)
        for owner, use in uses.items():
            part = use.allocated / whole
            left -= part
            self.of_part["allocated", _line(owner, facts)][ChargeKind.ALLOCATED, supply].add(node, part)
        self.idle_of[facts][ChargeKind.IDLE, supply].add(node, left)

    def _credits_for(self, facts: NodeFacts, moment: Seconds) -> tuple[str, ...]:
        return tuple(each.name for each in self._granted if each.is_for(facts, moment))

    def add_unused(self, kept: Kept, since: Seconds, rate: Rate, seconds: Seconds) -> None:
        """Add the cost of committed nodes that did not exist: idle GPUs, or nodes of the platform."""
        facts = kept.facts
        what = (ChargeKind.UNUSED, supply_of(facts, rate, credits_for=self._credits_for(facts, since)))
        amount = _Amount(rate.paid * seconds / HOUR, Fraction(seconds))
        if facts.catalogued is not None and facts.catalogued.gpu is None:
            self.of_part["platform", _line(Owner(team=PLATFORM), facts)][what].add(amount)
        else:
            self.idle_of[facts][what].add(amount)

    def add_plan(self, use: PlanUse) -> None:
        """Add the unused part of a commitment of US dollars an hour, as hours of it."""
        if use.unused:
            hours = use.unused / Fraction(use.plan.usd_per_hour)
            self.unused_plans[supply_of_plan(use.plan)].add(_Amount(use.unused, hours * HOUR))

    def charge_idle(self, policy: IdlePolicy) -> None:
        """Allocate every idle dollar to a line."""
        # Amounts added below must not increase the share of later ones.
        had = {key: usd for key, usd in self.usd("allocated").items() if usd}
        for facts, idle in self.idle_of.items():
            if policy is IdlePolicy.OWNER and facts.owner:
                self._give(idle, _line(Owner(team=facts.owner), facts))
            elif policy is IdlePolicy.PROPORTIONAL and had:
                pool = {key: each for key, each in had.items() if (key.pool, key.capacity_type) == (facts.pool, facts.bought_as)} or had
                whole = sum(pool.values(), Fraction(0))
                for key, each in pool.items():
                    self._give(idle, key, each / whole)
            else:
                self._give(idle, _line(Owner(team=CENTRAL), facts))

        for supply, amount in self.unused_plans.items():
            self._give_plan({(ChargeKind.UNUSED, supply): amount}, supply.plan, policy, had)

    def _give_plan(
        self, unused: Mapping[_What, _Amount], plan: SpendCommitment | None, policy: IdlePolicy, had: Mapping[LineKey, Fraction]
    ) -> None:
        """Allocate the unused part of a commitment as with idle GPUs.

        Proportional means by the usage that the commitment paid for, or by all usage. No node is labelled with a commitment.
        """
        paid = {
            line: usd
            for (figure, line), amounts in self.of_part.items()
            if figure == "allocated" and (usd := _sum({what: each for what, each in amounts.items() if what[1].plan == plan}))
        } or had
        if policy is IdlePolicy.PROPORTIONAL and paid:
            whole = sum(paid.values(), Fraction(0))
            for line, usd in paid.items():
                self._give(unused, line, usd / whole)
        else:
            self._give(unused, LineKey(CENTRAL, NONE, NONE, NONE, SPEND, NONE, NONE))

    def _give(self, idle: Mapping[_What, _Amount], line: LineKey, part: Fraction = Fraction(1)) -> None:
        for what, amount in idle.items():
            self.of_part["idle", line][what].add(amount, part)

    def split(self, rounded: Mapping[_Part, Decimal]) -> Iterator[LineCharge]:
        """Yield each figure of a line as charges, which sum to it. Omit charges with zero usage."""
        for part in sorted(self.of_part):
            amounts = {what: amount for what, amount in self.of_part[part].items() if amount.machine_seconds}
            usd = to_cents({what: amount.usd for what, amount in amounts.items()}, rounded[part])
            for (kind, supply), amount in amounts.items():
                yield LineCharge(part[1], kind, supply, usd[kind, supply], amount.machine_seconds, amount.gpu_seconds)


def _sum(amounts: Mapping[_What, _Amount]) -> Fraction:
    return sum((each.usd for each in amounts.values()), Fraction(0))


def _amounts() -> defaultdict[_What, _Amount]:
    return defaultdict(_Amount)


def charge(  # noqa: PLR0913 -- the inputs of a report, given by name
    books: Books,
    costs: NodeCosts,
    *,
    idle: IdlePolicy,
    asked: Period,
    extra: Iterable[ExtraCost] = (),
    notes: Iterable[str] = (),
    granted: Sequence[Credit] = (),
) -> Report:
    """Return the report of the books. Its lines sum to the cost of all nodes whose price is known, rounded once, under every policy.

    `granted` are credits. Raises ValueError if one starts or ends within the period where the books have no cut.
    """
    if missing := {each for each in moments_of(granted) if books.period.start < each < books.period.end} - set(books.cuts):
        raise ValueError(f"the books are not cut where credits begin and end: {len(missing)} cuts are missing")
    charges = _Charges(granted)
    for key, book in books.nodes.items():
        charges.add_node(key, book, costs)
    for kept, rates in costs.unused_rates.items():
        for since, rate, seconds in rates:
            charges.add_unused(kept, since, rate, seconds)
    for use in costs.plans:
        charges.add_plan(use)
    charges.charge_idle(idle)
    parts = {(figure, key): usd for figure in ("allocated", "platform", "idle") for key, usd in charges.usd(figure).items()}
    # Rounded separately: savings are not part of what is paid.
    saved = to_cents(charges.saved)
    rounded = to_cents(parts)
    split_charges = tuple(charges.split(rounded))
    keys = sorted({key for _, key in parts} | set(charges.uses))
    lines = tuple(_totals(key, rounded, saved, charges.uses.get(key, Totals())) for key in keys)
    return Report(
        period=books.period,
        asked=asked,
        step=books.step,
        idle=idle,
        lines=lines,
        node_usd=sum(rounded.values(), Decimal(0)),
        idle_usd=sum((usd for (kind, _), usd in rounded.items() if kind == "idle"), Decimal(0)),
        platform_usd=sum((usd for (kind, _), usd in rounded.items() if kind == "platform"), Decimal(0)),
        node_seconds=sum(book.seconds for book in books.nodes.values()),
        gpu_seconds=float(sum((max(book.gpu_seconds, book.allocated) for book in books.nodes.values()), Fraction(0))),
        unknown=costs.unknown,
        sources=costs.sources,
        lost=books.lost,
        evictions=books.evictions,
        unmatched=books.unmatched,
        extra=tuple(extra),
        opencost=_opencost(books, costs),
        gaps=tuple(books.gaps),
        notes=(
            *books.notes,
            *notes,
            *(f"The {each} is not known: nothing is counted as saved there." for each in sorted(costs.unsaved, key=str)),
        ),
        commitments=tuple(
            UnusedCommitment(kept.commitment.what, kept.seconds, kept.unused, cents(Decimal(usd.numerator) / usd.denominator))
            for kept, usd in costs.unused
        ),
        uncommitted=costs.uncommitted,
        doubled=books.doubled,
        charges=split_charges,
        nodes=node_groups(books, costs),
        work=charges.work.lines({line: usd for (figure, line), usd in rounded.items() if figure == "allocated"}),
        price_changes=costs.changes,
        plans=tuple(map(_plan, costs.plans)),
        credits=apply_credits(granted, split_charges),
    )


def _plan(use: PlanUse) -> SpentPlan:
    usd = to_cents({"used": use.used, "unused": use.unused})
    return SpentPlan(use.plan, usd["used"] + usd["unused"], usd["used"], usd["unused"], use.utilisation, use.coverage)


def _totals(key: LineKey, rounded: dict[tuple[str, LineKey], Decimal], saved: dict[LineKey, Decimal], use: Totals) -> Line:
    nothing = Decimal("0.00")
    had = rounded.get(("allocated", key), nothing) + rounded.get(("platform", key), nothing)
    paid = Totals(allocated_usd=had, idle_usd=rounded.get(("idle", key), nothing), saved_usd=saved.get(key, nothing))
    return Line(key, paid + use)


def _line(owner: Owner, facts: NodeFacts) -> LineKey:
    environment = owner.environment if owner.environment != NONE else facts.environment or NONE
    return LineKey(owner.team, owner.project, owner.workload_type, environment, facts.bought_as, facts.pool, facts.gpu)


def _opencost(books: Books, costs: NodeCosts) -> OpenCostFigure | None:
    both: list[tuple[NodeKey, Decimal]] = [
        (key, book.opencost_usd) for key, book in books.nodes.items() if book.opencost_usd is not None and key in costs.usd
    ]
    if not both:
        return None
    ours = to_cents({key: costs.usd[key] for key, _ in both})
    return OpenCostFigure(
        len({key[:2] for key, _ in both}), cents(sum((usd for _, usd in both), Decimal(0))), sum(ours.values(), Decimal(0))
    )
