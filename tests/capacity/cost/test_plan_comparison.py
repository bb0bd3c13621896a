"""Two plans beside each other, line by line."""

from __future__ import annotations

from decimal import Decimal

from costed_plans import plan, pool, round_prices

from capacity.cost.costed_plan import shipped_use
from capacity.cost.plan_comparison import PlanComparison, compared, comparison_data
from capacity.cost.plan_cost import plan_cost

OLD = plan(pool("same"), pool("grown", max_nodes=2), pool("gone", max_nodes=1), teams={"red": None}, shares=[("red", "grown", 1)])
NEW = plan(
    pool("same"), pool("grown", max_nodes=4), pool("new", max_nodes=3), teams={"red": None, "blue": None}, shares=[("red", "grown", 1)]
)


def found_between() -> PlanComparison:
    return compared(*(plan_cost(each, round_prices(), shipped_use()) for each in (OLD, NEW)))


def test_lines_are_new_gone_or_changed_and_the_same_ones_are_not_told() -> None:
    found = found_between()

    assert [
        (each.line.name, each.before is None, each.after is None, str(each.difference and each.difference.worst_usd))
        for each in found.lines
    ] == [
        ("grown", False, False, "1460.00"),
        ("new", True, False, "2190.00"),
        ("gone", False, True, "-730.00"),
    ]
    assert found.difference.worst_usd == Decimal("2920.00")


def test_teams_whose_part_changed_are_told() -> None:
    # A GPU of four nodes costs what one of two does; blue is new, and has nothing.
    assert [each.name for each in found_between().teams] == ["blue"]


def test_a_line_whose_price_nobody_knows_has_no_difference_and_adds_none() -> None:
    before = plan_cost(plan(pool("l4", "flex-start", 2)), round_prices(), shipped_use())
    after = plan_cost(plan(pool("l4", "flex-start", 4)), round_prices(), shipped_use())

    found = compared(before, after)

    assert [each.difference for each in found.lines] == [None]
    assert comparison_data(found)["lines"][0]["difference"] is None
    assert comparison_data(found)["difference"] == {"worst_case_usd": "0.00", "expected_usd": "0.00", "idle_floor_usd": "0.00"}
