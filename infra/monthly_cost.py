"""The plan's cost as a resource of the stack, so that previews show it and policies hold it to the budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.cost.costed_plan import costed
from capacity.cost.expected_use import shipped_use
from capacity.cost.plan_comparison import figures_data
from capacity.cost.plan_cost_lines import plan_cost
from components.spending.monthly_cost import MonthlyCost, SpendingArgs

if TYPE_CHECKING:
    from capacity.catalog.price_book import PriceBook
    from capacity.cost.figures import Figures
    from capacity.plan.model import Plan


def declare_monthly_cost(plan: Plan, prices: PriceBook) -> None:
    """Registers it, worked out at `prices` and with what is expected of a month where nobody says otherwise."""
    cost = plan_cost(costed(plan), prices, shipped_use())
    MonthlyCost(
        "monthly-cost",
        {
            "environment": _spending(cost.environment, cost.total, cost.budget, cost.unknown),
            "teams": [_spending(each.name, each.figures, each.budget, each.unknown) for each in cost.teams if each.budget is not None],
        },
    )


def _spending(owner: str, figures: Figures, budget: int | None, unknown: tuple[str, ...]) -> SpendingArgs:
    told = figures_data(figures)
    spending: SpendingArgs = {
        "owner": owner,
        "expected_usd": told["expected_usd"],
        "worst_case_usd": told["worst_case_usd"],
        "idle_floor_usd": told["idle_floor_usd"],
        "unknown_prices": list(unknown),
    }
    if budget is not None:
        spending["budget_usd"] = str(budget)
    return spending
