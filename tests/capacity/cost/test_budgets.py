"""How what is spent stands to a budget, and whose budgets are looked at."""

from __future__ import annotations

from decimal import Decimal

import pytest
from costed_plans import plan, pool, round_prices

from capacity.cost.costed_plan import shipped_use
from capacity.cost.plan_comparison import BudgetCheck, Standing, budget_checks
from capacity.cost.figures import Scenario
from capacity.cost.plan_cost import plan_cost


@pytest.mark.parametrize(
    "spent,unknown,standing",
    [
        ("79.99", (), Standing.WITHIN),
        ("80.00", (), Standing.NEAR),
        ("100.00", (), Standing.NEAR),
        ("100.01", (), Standing.EXCEEDED),
        ("0.00", ("spot price of x",), Standing.UNKNOWN),
        ("80.00", ("spot price of x",), Standing.NEAR),
        ("100.01", ("spot price of x",), Standing.EXCEEDED),
    ],
)
def test_a_budget_of_a_hundred_is(spent: str, unknown: tuple[str, ...], standing: Standing) -> None:
    assert BudgetCheck("dev", Decimal(100), Decimal(spent), unknown).standing is standing


def test_from_when_on_a_budget_is_nearly_used_may_be_said() -> None:
    assert BudgetCheck("dev", Decimal(100), Decimal(50), (), near_percent=50).standing is Standing.NEAR


def test_the_environment_and_each_team_with_a_budget_are_held_to_their_own_part_of_the_month_asked_for() -> None:
    made = plan(pool("l4", max_nodes=4), teams={"red": 1000, "blue": None}, shares=[("red", "l4", 1)], budget_usd=2000)
    cost = plan_cost(made, round_prices(), shipped_use())

    expected, worst = (budget_checks(cost, each) for each in (Scenario.EXPECTED, Scenario.WORST))

    assert [(each.owner, each.spent_usd, each.standing) for each in expected] == [
        ("test", Decimal("1752.00"), Standing.NEAR),
        ("red", Decimal("438.00"), Standing.WITHIN),
    ]
    assert [(each.owner, each.spent_usd, each.standing) for each in worst] == [
        ("test", Decimal("2920.00"), Standing.EXCEEDED),
        ("red", Decimal("730.00"), Standing.WITHIN),
    ]


def test_nobody_is_held_to_a_budget_that_nobody_has_set() -> None:
    assert budget_checks(plan_cost(plan(pool("l4")), round_prices(), shipped_use()), Scenario.EXPECTED) == []
