"""A cost in another currency: every amount once, at the end, so that parts still sum to their wholes to the cent.

Each sum is converted first, and its parts share it by largest remainder, so that a part within a part is less than a cent off, too. What is
decided by an amount, such as how a budget stands, was decided in US dollars. What is a price stays in them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar

from capacity.cost.budget_checks import BudgetCheck
from capacity.cost.figures import NOTHING, Figures, total
from capacity.cost.plan_comparison import LineChange, PlanComparison, TeamChange, budget_checks
from capacity.cost.programs.program_cost import Change, ProgramCost

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from capacity.catalog.exchange_rates import InCurrency
    from capacity.cost.budget_checks import Standing
    from capacity.cost.figures import CostLine, Scenario, Section
    from capacity.cost.plan_cost import PlanCost
    from capacity.cost.programs.program_cost import ResourceCost

KeyT = TypeVar("KeyT", bound="Hashable")

_CENT = Decimal("0.01")


def exchanged_figures(figures: Figures, into: InCurrency, expected_usd: Decimal | None = None) -> Figures:
    """Four amounts, each by itself; or what is expected by its part `expected_usd` of a sum, and at most no less."""
    found = Figures(**{name: into.one(usd) for name, usd in _amounts(figures).items()})
    if expected_usd is None:
        return found
    known = figures.expected_at_most_usd == figures.expected_usd
    at_most = expected_usd if known else max(expected_usd, found.expected_at_most_usd)
    return replace(found, expected_usd=expected_usd, expected_at_most_usd=at_most)


def _amounts(figures: Figures) -> dict[str, Decimal]:
    return {each.name: getattr(figures, each.name) for each in fields(Figures)}


_FROM_THE_LEAST = ("floor_usd", "expected_usd", "expected_at_most_usd", "worst_usd")
"""The four amounts, each after those that it is above: a part is told within its bounds where the sums allow it."""


def _parts(figures: Mapping[KeyT, Figures], whole: Figures | None, into: InCurrency) -> dict[KeyT, Figures]:
    """Each of the four amounts in parts that sum to their converted sum, or to that of `whole`."""
    found: dict[str, dict[KeyT, Decimal]] = {}
    below: dict[KeyT, tuple[Decimal, Decimal]] = {}
    for name in _FROM_THE_LEAST:
        usd: dict[KeyT, Decimal] = {key: getattr(each, name) for key, each in figures.items()}
        at_least = {key: told for key, (less, told) in below.items() if usd[key] >= less}
        found[name] = into.parts(usd, None if whole is None else getattr(whole, name), at_least)
        below = {key: (usd[key], told) for key, told in found[name].items()}
    return {key: Figures(**{name: parts[key] for name, parts in found.items()}) for key in figures}


def _one(usd: Decimal | None, into: InCurrency) -> Decimal | None:
    return None if usd is None else into.one(usd)


def exchanged_plan(cost: PlanCost, into: InCurrency, whole: Figures | None = None) -> PlanCost:
    """A month of a plan. `whole` is what its total comes to, where that is a part of a sum over several plans."""
    whole = exchanged_figures(cost.total, into) if whole is None else whole
    pools = total(line.figures for line in cost.lines if line.section.of_pools)
    sums = _parts({True: pools, False: cost.platform}, whole, into)
    lines = list(cost.lines)
    for of_pools, of_them in sums.items():
        found = {
            number: line.figures for number, line in enumerate(lines) if line.section.of_pools is of_pools and line.figures is not None
        }
        for number, figures in _parts(found, of_them, into).items():
            lines[number] = replace(lines[number], figures=figures)
    *teams, unallocated = _parts(dict(enumerate([*(each.figures for each in cost.teams), cost.unallocated])), sums[True], into).values()
    return replace(
        cost,
        lines=tuple(lines),
        teams=tuple(
            replace(each, figures=figures, budget=_one(each.budget, into), most_usd=_one(each.most_usd, into))
            for each, figures in zip(cost.teams, teams, strict=True)
        ),
        unallocated=unallocated,
        platform=sums[False],
        total=whole,
        budget=_one(cost.budget, into),
    )


@dataclass(frozen=True, kw_only=True)
class ExchangedCheck(BudgetCheck):
    """A budget and what is held against it in another currency. How it stands, and by how many percent, is so in US dollars."""

    decided: BudgetCheck

    @property
    def standing(self) -> Standing:
        """Decided in US dollars."""
        return self.decided.standing

    @property
    def spent_percent(self) -> Decimal:
        """Likewise."""
        return self.decided.spent_percent


def exchanged_checks(checks: Sequence[BudgetCheck], cost: PlanCost, scenario: Scenario) -> list[ExchangedCheck]:
    """The `checks` of a plan with the amounts of its exchanged `cost`, which a report shows elsewhere, too."""
    told = budget_checks(cost, scenario)
    return [
        ExchangedCheck(now.owner, now.budget_usd, now.spent_usd, was.unknown, was.near_percent, now.at_most_usd, decided=was)
        for was, now in zip(checks, told, strict=True)
    ]


@dataclass(frozen=True, kw_only=True)
class ExchangedLine(LineChange):
    """A line that is not the same, whose difference is part of that of the whole."""

    part: Figures

    @property
    def difference(self) -> Figures | None:
        """None where no price is known on one of the sides that have it."""
        return None if super().difference is None else self.part


@dataclass(frozen=True, kw_only=True)
class ExchangedTeam(TeamChange):
    """Likewise of a team; it is part of no sum."""

    part: Figures

    @property
    def difference(self) -> Figures:
        """How much more it costs later."""
        return self.part


@dataclass(frozen=True, kw_only=True)
class ExchangedComparison(PlanComparison):
    """Two plans beside each other, whose lines differ by what the whole does."""

    whole: Figures

    @property
    def difference(self) -> Figures:
        """How much more the later plan costs in all."""
        return self.whole


def exchanged_comparison(found: PlanComparison, after: PlanCost, into: InCurrency, whole: Figures | None = None) -> ExchangedComparison:
    """The comparison, `after` being what its later plan was exchanged to; both sides at the one rate.

    `whole` is what they differ by, where that is a part of a sum over several plans; otherwise by what both totals do.
    """
    before = exchanged_plan(found.before, into)
    whole = after.total - before.total if whole is None else whole
    old, new = ({each.key: each for each in side.lines} for side in (before, after))
    parts = _parts({number: _difference(each) for number, each in enumerate(found.lines)}, whole, into)
    old_teams, new_teams = ({each.name: each for each in side.teams} for side in (before, after))
    return ExchangedComparison(
        before,
        after,
        tuple(
            ExchangedLine(_same(each.before, old), _same(each.after, new), part=parts[number]) for number, each in enumerate(found.lines)
        ),
        tuple(
            ExchangedTeam(
                each.name,
                None if each.before is None else old_teams[each.name],
                None if each.after is None else new_teams[each.name],
                part=exchanged_figures(each.difference, into),
            )
            for each in found.teams
        ),
        whole=whole,
    )


def _same(line: CostLine | None, lines: Mapping[tuple[Section, str], CostLine]) -> CostLine | None:
    return None if line is None else lines[line.key]


def _difference(change: LineChange) -> Figures:
    """What a line adds to the difference in all, where a price that nobody knows counts nothing."""
    before, after = (NOTHING if each is None or each.figures is None else each.figures for each in (change.before, change.after))
    return after - before


@dataclass(frozen=True, kw_only=True)
class ExchangedChange(Change):
    """A resource whose cost differs, by its part of the difference in all."""

    part: Figures

    @property
    def difference(self) -> Figures:
        """How much more it costs later."""
        return self.part


@dataclass(frozen=True, kw_only=True)
class ExchangedProgram(ProgramCost):
    """A month of a program. What changes, changes in US dollars, even if by less than a cent of the currency."""

    moved: tuple[ExchangedChange, ...]

    @property
    def changes(self) -> list[Change]:
        """Those that there are in US dollars."""
        return list(self.moved)


def exchanged_program(cost: ProgramCost, into: InCurrency) -> ExchangedProgram:
    """A month of a program, and what a change adds to it; both sides at the one rate."""
    lines, before = _resources(cost.lines, into), None if cost.before is None else _resources(cost.before, into)
    more = total(each.figures for each in lines) - total(each.figures for each in before or ())
    changes = cost.changes
    parts = _parts({number: each.difference for number, each in enumerate(changes)}, more, into)
    new, old = ({each.urn: each for each in side} for side in (lines, before or ()))
    return ExchangedProgram(
        **({each.name: getattr(cost, each.name) for each in fields(ProgramCost)} | {"lines": lines, "before": before}),
        moved=tuple(
            ExchangedChange(
                each.name,
                each.type,
                None if each.before is None else old[each.before.urn],
                None if each.after is None else new[each.after.urn],
                part=parts[number],
            )
            for number, each in enumerate(changes)
        ),
    )


def _resources(lines: Iterable[ResourceCost], into: InCurrency) -> tuple[ResourceCost, ...]:
    was = list(lines)
    found = _parts({number: each.figures for number, each in enumerate(was)}, None, into)
    return tuple(replace(each, figures=found[number]) for number, each in enumerate(was))


def exchanged_totals(
    totals: Mapping[KeyT, Decimal], changes: Mapping[KeyT, Decimal], into: InCurrency
) -> tuple[dict[KeyT, Decimal], dict[KeyT, Decimal]]:
    """What several plans cost and what each is changed by, so that both columns sum to what their sums come to.

    What is new is changed by all that it costs: it is the same amount in both.
    """
    new = {key: usd for key, usd in totals.items() if changes.get(key) == usd}
    rests = [{key: usd for key, usd in side.items() if key not in new} for side in (totals, changes)]
    wholes = [into.one(sum(side.values(), Decimal(0))) for side in (totals, changes)]
    # Each of the three sums rounded up or down, so that no part is a cent off: one of the two amounts that the new ones may have allows it.
    down = into.one(sum(new.values(), Decimal(0))) - _CENT
    shared = min(
        (down, down + _CENT, down + 2 * _CENT),
        key=lambda usd: max(
            _off(usd, new.values(), into),
            *(_off(whole - usd, rest.values(), into) for whole, rest in zip(wholes, rests, strict=True)),
        ),
    )
    same = into.parts(new, shared)
    costs, more = (same | into.parts(rest, whole - shared) for whole, rest in zip(wholes, rests, strict=True))
    return costs, more


def _off(told: Decimal, amounts: Iterable[Decimal], into: InCurrency) -> Fraction:
    """By how much a sum would be told wrong."""
    return abs(into.exact(sum(amounts, Decimal(0))) - Fraction(told))
