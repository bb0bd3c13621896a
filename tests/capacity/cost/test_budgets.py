"""How what is spent stands to a budget, and whose budgets are looked at."""

from __future__ import annotations

from decimal import Decimal

import pytest
from costed_plans import plan, pool, round_prices

from capacity.cost.budget_checks import BudgetCheck, Standing
from capacity.cost.costed_plan import shipped_use
from capacity.cost.figures import Scenario
from capacity.cost.plan_comparison import budget_checks
from capacity.cost.plan_cost import plan_cost


@pytest.mark.parametrize(
    "spent,unknown,standing",
    [
        ("79.99", (), Standing.WITHIN),
        ("80.00", (), Standing.NEAR),
        ("100.00", (), Standing.NEAR),
        ("100.01", (), Standing.EXCEEDED),
        ("0.00", ("spot price of x",), Standing.UNKNOWN),
        ("80.00", ("spot price of x",), Standing.UNKNOWN),
        ("100.01", ("spot price of x",), Standing.EXCEEDED),
    ],
)
def test_a_budget_of_a_hundred_is(spent: str, unknown: tuple[str, ...], standing: Standing) -> None:
    assert BudgetCheck("dev", Decimal(100), Decimal(spent), unknown).standing is standing


@pytest.mark.parametrize(
    "spent,at_most,standing",
    [
        ("10.00", "79.99", Standing.WITHIN),
        ("10.00", "80.00", Standing.NEAR),
        ("10.00", "100.00", Standing.NEAR),
        ("10.00", "100.01", Standing.UNKNOWN),
        ("100.01", "200.00", Standing.EXCEEDED),
    ],
)
def test_a_missing_price_that_has_a_bound_leaves_open_only_what_the_bound_does(spent: str, at_most: str, standing: Standing) -> None:
    assert BudgetCheck("dev", Decimal(100), Decimal(spent), ("spot price of x",), at_most_usd=Decimal(at_most)).standing is standing


def test_a_month_is_held_to_a_budget_with_what_is_missing_at_on_demand() -> None:
    """Four flex-start nodes at two dollars on demand: 4 * 60 % * 2 * 730 at most, as expected; 4 * 2 * 744 at worst."""
    made = plan(pool("l4", "flex-start", 4), budget_usd=4000)
    cost = plan_cost(made, round_prices(), shipped_use())

    [expected], [worst] = (budget_checks(cost, each) for each in (Scenario.EXPECTED, Scenario.WORST))

    assert (expected.spent_usd, expected.at_most_usd, expected.standing) == (Decimal("0.00"), Decimal("3504.00"), Standing.NEAR)
    assert (worst.spent_usd, worst.unknown, worst.standing) == (Decimal("5952.00"), (), Standing.EXCEEDED)


def test_a_team_is_held_at_worst_to_what_it_may_borrow() -> None:
    made = plan(pool("l4", max_nodes=4), teams={"red": 1000}, shares=[("red", "l4", 1)])
    made = made.model_copy(update={"teams": tuple(each.model_copy(update={"max_gpus": 3}) for each in made.teams)})

    [check] = budget_checks(plan_cost(made, round_prices(), shipped_use()), Scenario.WORST)

    assert (check.spent_usd, check.standing) == (Decimal("2232.00"), Standing.EXCEEDED)


def test_the_environment_and_each_team_with_a_budget_are_held_to_their_own_part_of_the_month_asked_for() -> None:
    made = plan(pool("l4", max_nodes=4), teams={"red": 1000, "blue": None}, shares=[("red", "l4", 1)], budget_usd=2000)
    cost = plan_cost(made, round_prices(), shipped_use())

    expected, worst = (budget_checks(cost, each) for each in (Scenario.EXPECTED, Scenario.WORST))

    assert [(each.owner, each.spent_usd, each.standing) for each in expected] == [
        ("test", Decimal("1752.00"), Standing.NEAR),
        ("red", Decimal("438.00"), Standing.WITHIN),
    ]
    assert [(each.owner, each.spent_usd, each.standing) for each in worst] == [
        ("test", Decimal("2976.00"), Standing.EXCEEDED),
        ("red", Decimal("744.00"), Standing.WITHIN),
    ]
