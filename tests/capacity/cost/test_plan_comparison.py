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
    """Two nodes more at two dollars on demand: 2 * 2 * 744 at worst, 60 % of them for 730 hours."""
    before, after = (plan_cost(plan(pool("l4", "flex-start", nodes)), round_prices(), shipped_use()) for nodes in (2, 4))

    [line] = comparison_data(compared(before, after))["lines"]

    assert line["difference"] == {
        "worst_case_usd": "2976.00",
        "expected_usd": None,
        "expected_at_most_usd": "1752.00",
        "idle_floor_usd": None,
    }
