"""Comparison of two plans, line by line, and of their cost with a budget."""

from __future__ import annotations

from decimal import Decimal

import pytest
from costed_plans import plan, pool, round_prices

from flexspot.capacity.cost.costed_plan import BudgetCheck, BudgetStanding, shipped_use
from flexspot.capacity.cost.figures import Scenario
from flexspot.capacity.cost.plan_comparison import PlanComparison, budget_checks, compared, comparison_data
from flexspot.capacity.cost.plan_cost import plan_cost

OLD = plan(pool("same"), pool("grown", max_nodes=2), pool("gone", max_nodes=1), teams={"red": None}, shares=[("red", "grown", 1)])
NEW = plan(
    pool("same"), pool("grown", max_nodes=4), pool("new", max_nodes=3), teams={"red": None, "blue": None}, shares=[("red", "grown", 1)]
)


def found_between() -> PlanComparison:
    return compared(*(plan_cost(each, round_prices(), shipped_use()) for each in (OLD, NEW)))


def test_lines_are_new_gone_or_changed_and_unchanged_ones_are_not_listed() -> None:
    found = found_between()

    assert [
        (each.line.name, each.before is None, each.after is None, str(each.difference and each.difference.worst_usd))
        for each in found.lines
    ] == [
        ("grown", False, False, "1488.00"),
        ("new", True, False, "2232.00"),
        ("gone", False, True, "-744.00"),
    ]
    assert found.difference.worst_usd == Decimal("2976.00")


NONE = {"worst_case_usd": "0.00", "expected_usd": "0.00", "expected_at_most_usd": "0.00", "idle_floor_usd": "0.00"}


def test_a_line_without_any_price_or_bound_has_no_difference_and_adds_none() -> None:
    unknown = {"machines": ["g6.16xlarge"]}
    before, after = (plan_cost(plan(pool("l4", "spot", nodes, **unknown)), round_prices(), shipped_use()) for nodes in (2, 4))

    found = compared(before, after)

    assert [each.difference for each in found.lines] == [None]
    assert comparison_data(found)["lines"][0]["difference"] is None
    assert comparison_data(found)["difference"] == NONE


def test_a_line_that_has_a_bound_alone_differs_at_worst_and_in_what_is_expected_at_most() -> None:
    """Two more nodes at two dollars on demand: 2 * 2 * 744 at worst, 60 % of them for 730 hours expected."""
    before, after = (plan_cost(plan(pool("l4", "flex-start", nodes)), round_prices(), shipped_use()) for nodes in (2, 4))

    [line] = comparison_data(compared(before, after))["lines"]

    assert line["difference"] == {
        "worst_case_usd": "2976.00",
        "expected_usd": None,
        "expected_at_most_usd": "1752.00",
        "idle_floor_usd": None,
    }


@pytest.mark.parametrize(
    "spent,unknown,standing",
    [
        ("79.99", (), BudgetStanding.WITHIN),
        ("80.00", (), BudgetStanding.NEAR),
        ("100.00", (), BudgetStanding.NEAR),
        ("100.01", (), BudgetStanding.EXCEEDED),
        ("0.00", ("spot price of x",), BudgetStanding.UNKNOWN),
        ("80.00", ("spot price of x",), BudgetStanding.UNKNOWN),
        ("100.01", ("spot price of x",), BudgetStanding.EXCEEDED),
    ],
)
def test_a_budget_of_a_hundred_is(spent: str, unknown: tuple[str, ...], standing: BudgetStanding) -> None:
    assert BudgetCheck("dev", Decimal(100), Decimal(spent), unknown).standing is standing


@pytest.mark.parametrize(
    "spent,at_most,standing",
    [
        ("10.00", "79.99", BudgetStanding.WITHIN),
        ("10.00", "80.00", BudgetStanding.NEAR),
        ("10.00", "100.00", BudgetStanding.NEAR),
        ("10.00", "100.01", BudgetStanding.UNKNOWN),
        ("100.01", "200.00", BudgetStanding.EXCEEDED),
    ],
)
def test_a_missing_price_that_has_a_bound_leaves_open_only_what_the_bound_does(spent: str, at_most: str, standing: BudgetStanding) -> None:
    assert BudgetCheck("dev", Decimal(100), Decimal(spent), ("spot price of x",), at_most_usd=Decimal(at_most)).standing is standing


def test_a_month_is_compared_with_its_budget_with_missing_prices_at_on_demand() -> None:
    """Four flex-start nodes at two dollars on demand: 4 * 60 % * 2 * 730 at most expected; 4 * 2 * 744 at worst."""
    made = plan(pool("l4", "flex-start", 4), budget_usd=4000)
    cost = plan_cost(made, round_prices(), shipped_use())

    [expected], [worst] = (budget_checks(cost, each) for each in (Scenario.EXPECTED, Scenario.WORST))

    assert (expected.spent_usd, expected.at_most_usd, expected.standing) == (Decimal("0.00"), Decimal("3504.00"), BudgetStanding.NEAR)
    assert (worst.spent_usd, worst.unknown, worst.standing) == (Decimal("5952.00"), (), BudgetStanding.EXCEEDED)


def test_a_teams_worst_case_includes_what_it_may_borrow() -> None:
    made = plan(pool("l4", max_nodes=4), teams={"red": 1000}, shares=[("red", "l4", 1)])
    made = made.model_copy(update={"teams": tuple(each.model_copy(update={"max_gpus": 3}) for each in made.teams)})

    [check] = budget_checks(plan_cost(made, round_prices(), shipped_use()), Scenario.WORST)

    assert (check.spent_usd, check.standing) == (Decimal("2232.00"), BudgetStanding.EXCEEDED)


def test_the_environment_and_each_team_with_a_budget_are_compared_with_their_part_of_the_requested_month() -> None:
    made = plan(pool("l4", max_nodes=4), teams={"red": 1000, "blue": None}, shares=[("red", "l4", 1)], budget_usd=2000)
    cost = plan_cost(made, round_prices(), shipped_use())

    expected, worst = (budget_checks(cost, each) for each in (Scenario.EXPECTED, Scenario.WORST))

    assert [(each.owner, each.spent_usd, each.standing) for each in expected] == [
        ("test", Decimal("1752.00"), BudgetStanding.NEAR),
        ("red", Decimal("438.00"), BudgetStanding.WITHIN),
    ]
    assert [(each.owner, each.spent_usd, each.standing) for each in worst] == [
        ("test", Decimal("2976.00"), BudgetStanding.EXCEEDED),
        ("red", Decimal("744.00"), BudgetStanding.WITHIN),
    ]
