"""Costs in another currency, made at random: sums as decimal has them, parts that sum to them, and each less than a cent off."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import date
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from currency_reports import RATES, euros, in_euros
from hypothesis import given
from hypothesis import strategies as st

from capacity.catalog.exchange_rates import ExchangeRate, ExchangeRateFile
from capacity.cost.costed_plan import costed, shipped_use
from capacity.cost.exchanged import (
    ExchangedLine,
    exchanged_checks,
    exchanged_comparison,
    exchanged_plan,
)
from capacity.cost.figures import NOTHING, CostLine, Figures, Scenario, Section, divided, total
from capacity.cost.plan_comparison import budget_checks, compared
from capacity.cost.plan_cost import PlanCost, TeamCost, plan_cost
from capacity.plan.build import plan_of_stack_file
from capacity.values.rounding import to_cents

if TYPE_CHECKING:
    from collections.abc import Iterable

CENT = Decimal("0.01")
AMOUNTS = [each.name for each in fields(Figures)]


def cents(most: int = 10**9) -> st.SearchStrategy[Decimal]:
    return st.integers(0, most).map(lambda each: Decimal(each).scaleb(-2))


@st.composite
def figures_of_a_month(draw: st.DrawFn) -> Figures:
    """In their order as a rule: what is idle is no more than what is expected, and that no more than the worst case."""
    close = st.integers(0, 200).map(lambda each: Decimal(each).scaleb(-2))
    least = draw(cents())
    rising = [least, *(least := least + draw(close | cents()) for _ in range(3))]
    floor, expected, at_most, worst = rising if draw(st.booleans()) else [least] * 4
    return Figures(worst, expected, floor, draw(st.sampled_from([expected, at_most])))


FIGURES = figures_of_a_month()
NAMES = st.sampled_from(["a", "b", "c", "d", "e"])


@st.composite
def lines(draw: st.DrawFn) -> tuple[CostLine, ...]:
    """Lines of any section; of some no price is known, of others only the worst case."""
    keys = draw(st.lists(st.tuples(st.sampled_from(Section), NAMES), unique=True, max_size=9))
    return tuple(
        CostLine(*key, "2", figures, (), () if figures is not None and priced else ("spot price of x",), priced=priced)
        for key in keys
        for figures, priced in [draw(st.tuples(st.none() | FIGURES, st.booleans()))]
    )


@st.composite
def costs(draw: st.DrawFn, of: tuple[CostLine, ...] | None = None) -> PlanCost:
    """A month of a plan, whose pools two teams and nobody share."""
    found = draw(lines()) if of is None else of
    pools = total(each.figures for each in found if each.section.of_pools)
    *parts, rest = divided(pools, [*draw(st.tuples(st.integers(0, 9), st.integers(0, 9))), draw(st.integers(1, 9))])
    budgets = st.none() | st.integers(1, 10**7).map(Decimal)
    teams = tuple(
        TeamCost(name, 2, part, draw(budgets), (), (), draw(st.none() | cents())) for name, part in zip(("red", "blue"), parts, strict=True)
    )
    platform = total(each.figures for each in found if not each.section.of_pools)
    return PlanCost("eks", "dev", "us-east-1", found, teams, rest, platform, total(each.figures for each in found), draw(budgets))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[PlanCost, PlanCost]:
    """Two plans that have some lines in common."""
    first, second = draw(costs()), draw(lines())
    known = {each.key for each in second}
    kept = tuple(each for each in first.lines if each.key not in known and draw(st.booleans()))
    return first, draw(costs(kept + second))


def is_within_a_cent(told: Decimal, usd: Decimal, rate: Decimal) -> bool:
    with localcontext(prec=60):
        return abs(told - usd * rate) < CENT


def assert_parts(told: Iterable[Figures], was: Iterable[Figures], whole: Figures, rate: Decimal) -> None:
    told, was = list(told), list(was)
    assert total(told) == whole
    for now, before in zip(told, was, strict=True):
        for name in AMOUNTS:
            assert is_within_a_cent(getattr(now, name), getattr(before, name), rate), name


def figures_of(line: CostLine | None) -> Figures:
    return NOTHING if line is None or line.figures is None else line.figures


def assert_order(told: Figures, usd: Figures) -> None:
    """What is no more than another amount is told to be no more."""
    for less, more in pairwise(("floor_usd", "expected_usd", "expected_at_most_usd", "worst_usd")):
        if getattr(usd, less) <= getattr(usd, more):
            assert getattr(told, less) <= getattr(told, more), (less, more)


@pytest.mark.parametrize("stack", ["dev-eks", "dev-gke", "prod-eks", "prod-gke"])
@pytest.mark.parametrize("rate", ["0.8655", "7.1193"])
def test_what_costs_the_same_whatever_runs_is_told_the_same(stack: str, rate: str) -> None:
    """Such as a key: a cent that a sum has left over would make it dearer as expected than at worst."""
    found = plan_of_stack_file(Path(__file__).parents[3] / "stacks" / f"Pulumi.{stack}.yaml")
    before = plan_cost(costed(found.plan), found.prices, shipped_use())
    after = exchanged_plan(before, euros(rate))

    for now, was in zip(after.lines, before.lines, strict=True):
        assert_order(figures_of(now), figures_of(was))
    for now, was in zip(after.teams, before.teams, strict=True):
        assert_order(now.figures, was.figures)


def test_a_cent_that_is_left_over_goes_first_to_what_was_told_as_so_much_before() -> None:
    amounts = {"a": Fraction(8, 1000), "b": Fraction(7, 1000), "c": Fraction(1, 100)}

    assert to_cents(amounts, Decimal("0.02")) == {"a": CENT, "b": 0, "c": CENT}
    assert to_cents(amounts, Decimal("0.02"), {"b": CENT}) == {"a": 0, "b": CENT, "c": CENT}
    assert to_cents(amounts, Decimal("0.02"), {"c": 2 * CENT}) == {"a": CENT, "b": 0, "c": CENT}, "none is a whole cent off"


@pytest.mark.slow
@given(costs(), RATES)
def test_lines_and_teams_sum_to_the_converted_total_and_each_is_within_a_cent(before: PlanCost, rate: Decimal) -> None:
    after = exchanged_plan(before, euros(rate))

    for name in AMOUNTS:
        assert getattr(after.total, name) == in_euros(getattr(before.total, name), rate)
    priced = [each for each in zip(before.lines, after.lines, strict=True) if each[0].figures is not None]
    assert_parts((now.figures for _, now in priced if now.figures), (was.figures for was, _ in priced if was.figures), after.total, rate)
    now, was = ([*(each.figures for each in cost.teams), cost.unallocated, cost.platform] for cost in (after, before))
    assert_parts(now, was, after.total, rate)
    assert after.platform == total(each.figures for each in after.lines if not each.section.of_pools)
    assert [replace(each, figures=None) for each in after.lines] == [replace(each, figures=None) for each in before.lines]
    assert after.unknown == before.unknown
    for told, usd in zip((after, *after.teams), (before, *before.teams), strict=True):
        assert told.budget == (None if usd.budget is None else in_euros(usd.budget, rate))


@pytest.mark.slow
@given(pairs(), RATES)
def test_differences_sum_to_what_both_totals_differ_by_at_the_one_rate(pair: tuple[PlanCost, PlanCost], rate: Decimal) -> None:
    found = compared(*pair)
    told = exchanged_comparison(found, exchanged_plan(found.after, euros(rate)), euros(rate))

    for name in AMOUNTS:
        base, now = (in_euros(getattr(each.total, name), rate) for each in pair)
        assert (getattr(told.before.total, name), getattr(told.after.total, name)) == (base, now)
        assert getattr(told.difference, name) == now - base
    sides = [
        [NOTHING if each is None or each.figures is None else each.figures for each in (line.before, line.after)] for line in found.lines
    ]
    parts = [each.part for each in told.lines if isinstance(each, ExchangedLine)]
    assert_parts(parts, (after - before for before, after in sides), told.difference, rate)
    assert [each.difference is None for each in told.lines] == [each.difference is None for each in found.lines]
    assert [(each.line.key, each.priced) for each in told.lines] == [(each.line.key, each.priced) for each in found.lines]
    for now, was in zip(told.teams, found.teams, strict=True):
        assert now.name == was.name
        assert all(is_within_a_cent(getattr(now.difference, name), getattr(was.difference, name), rate) for name in AMOUNTS)


@pytest.mark.slow
@given(costs(), RATES, st.sampled_from(Scenario))
def test_how_a_budget_stands_is_decided_in_us_dollars(before: PlanCost, rate: Decimal, scenario: Scenario) -> None:
    checks, after = budget_checks(before, scenario), exchanged_plan(before, euros(rate))
    told = exchanged_checks(checks, after, scenario)

    assert [(each.owner, each.standing, each.spent_percent) for each in told] == [
        (each.owner, each.standing, each.spent_percent) for each in checks
    ]
    for now, was in zip(told, checks, strict=True):
        assert now.budget_usd == in_euros(was.budget_usd, rate)
        assert is_within_a_cent(now.spent_usd, was.spent_usd, rate)
        assert (now.at_most_usd is None) == (was.at_most_usd is None)
        assert was.at_most_usd is None or now.at_most_usd is None or is_within_a_cent(now.at_most_usd, was.at_most_usd, rate)


def test_a_budget_that_a_cent_exceeds_is_exceeded_where_the_currency_shows_no_difference() -> None:
    line = CostLine(Section.SERVICE, "a", "1", Figures(*(Decimal("100.01"),) * 4), (), ())
    cost = PlanCost("eks", "dev", "here", (line,), (), total(()), total([line.figures]), total([line.figures]), Decimal(100))
    [told] = exchanged_checks(budget_checks(cost, Scenario.EXPECTED), exchanged_plan(cost, euros("0.1")), Scenario.EXPECTED)

    assert (told.spent_usd, told.budget_usd, told.standing.value) == (Decimal("10.00"), Decimal("10.00"), "exceeded")


@pytest.mark.parametrize(
    "rows,told",
    [
        ([("0.9", 1, None), ("0.8", 3, "2026-09"), ("0.7", 2, "2026-10")], "0.8"),
        ([("0.9", 3, "2026-10"), ("0.8", 3, None), ("0.7", 3, "2026-12")], "0.8"),
        ([("0.9", 3, "2026-10"), ("0.7", 3, "2026-12"), ("0.8", 3, "2026-11")], "0.7"),
    ],
    ids=["the latest day", "without a month", "the latest month"],
)
def test_a_month_to_come_has_the_newest_rate(rows: list[tuple[str, int, str | None]], told: str) -> None:
    rates = [ExchangeRate(per_usd=Decimal(per), as_of=date(2026, 10, day), source="the bank", month=month) for per, day, month in rows]

    assert ExchangeRateFile(currency="EUR", rates=rates).newest().rate.per_usd == Decimal(told)
