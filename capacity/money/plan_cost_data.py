"""A plan's cost and its comparison as plain data for JSON. Money is text, so that no program rounds it; what has no known price is null."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from capacity.money.budgets import BudgetCheck
    from capacity.money.figures import Figures
    from capacity.money.plan_comparison import PlanComparison
    from capacity.money.plan_cost import CostLine, PlanCost, PriceUsed, TeamCost


def plan_cost_data(cost: PlanCost) -> dict[str, Any]:
    """The whole of it. `at_least` says that prices are missing, and that every sum is the least."""
    return {
        "cloud": cost.cloud,
        "environment": cost.environment,
        "region": cost.region,
        "at_least": bool(cost.unknown),
        "unknown_prices": list(cost.unknown),
        **figures_data(cost.total),
        "budget_usd": _text(cost.budget),
        "unallocated": figures_data(cost.unallocated),
        "platform": figures_data(cost.platform),
        "teams": [_team(each) for each in cost.teams],
        "lines": [_line(each) for each in cost.lines],
    }


def comparison_data(found: PlanComparison) -> dict[str, Any]:
    """The difference in all, then each line and team that is not the same."""
    return {
        "difference": figures_data(found.difference),
        "before": figures_data(found.before.total),
        "lines": [
            {
                "section": each.line.section.value,
                "name": each.line.name,
                "before": None if each.before is None else _line(each.before),
                "after": None if each.after is None else _line(each.after),
                "difference": None if each.difference is None else figures_data(each.difference),
            }
            for each in found.lines
        ],
        "teams": [{"name": each.name, "difference": figures_data(each.difference)} for each in found.teams],
    }


def budgets_data(checks: Sequence[BudgetCheck]) -> list[dict[str, str]]:
    """Each budget, the amount held against it, and how it stands."""
    return [
        {"owner": each.owner, "budget_usd": str(each.budget_usd), "spent_usd": str(each.spent_usd), "standing": each.standing.value}
        for each in checks
    ]


def figures_data(figures: Figures) -> dict[str, str]:
    """The three figures as text."""
    return {
        "worst_case_usd": str(figures.worst_usd),
        "expected_usd": str(figures.expected_usd),
        "idle_floor_usd": str(figures.floor_usd),
    }


def _team(team: TeamCost) -> dict[str, Any]:
    told = {"name": team.name, "gpus": team.gpus, **figures_data(team.figures)}
    return {**told, "budget_usd": _text(team.budget), "unknown_prices": list(team.unknown)}


def _line(line: CostLine) -> dict[str, Any]:
    names = ("worst_case_usd", "expected_usd", "idle_floor_usd")
    figures: dict[str, str | None] = dict.fromkeys(names) if line.figures is None else {**figures_data(line.figures)}
    return {
        "section": line.section.value,
        "name": line.name,
        "quantity": line.quantity,
        **figures,
        "prices": [_price(each) for each in line.prices],
        "unknown_prices": list(line.unknown),
    }


def _price(price: PriceUsed) -> dict[str, Any]:
    return {
        "what": price.what,
        "usd": str(price.usd),
        "per": price.per,
        "source": price.source,
        "as_of": price.as_of.isoformat(),
        "verified": price.verified,
    }


def _text(amount: int | None) -> str | None:
    return None if amount is None else str(amount)
