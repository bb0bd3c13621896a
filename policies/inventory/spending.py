"""What a month of a platform costs, as its program declares it beside the budgets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity.cost.budgets import NEAR_PERCENT, BudgetCheck
from policies.inventory.views import View
from policies.values.parameters import Parameter
from policies.values.unknown import UNKNOWN

if TYPE_CHECKING:
    from policies.values.field import Field
    from policies.values.parameters import Parameters

_FIGURES = {"expected": "expected_usd", "worst-case": "worst_case_usd"}

SCENARIO = Parameter(
    "scenario",
    "expected",
    "Which month is held against a budget: expected, or worst-case, in which every enforced ceiling is reached all month.",
)


@dataclass(frozen=True)
class MonthlyCost(View):
    """`spenders` are the environment and the teams that have a budget, each with its path."""

    spenders: tuple[tuple[str, Field], ...]


@dataclass(frozen=True)
class Held:
    """One budget, where it is written, and what is held against it. `check` is None where an amount is not known yet."""

    path: str
    owner: str
    check: BudgetCheck | None


def held(cost: MonthlyCost, parameters: Parameters, near_percent: int = NEAR_PERCENT) -> list[Held] | None:
    """Each budget of `cost`; None for a scenario that there is not."""
    figure = _FIGURES.get(parameters.text(SCENARIO.name))
    if figure is None:
        return None
    return [
        Held(f"{path}.budget_usd", _owner(each), _check(each, figure, near_percent))
        for path, each in cost.spenders
        if not each.at("budget_usd").absent
    ]


def _owner(spender: Field) -> str:
    owner = spender.at("owner").text()
    return owner if isinstance(owner, str) else "somebody"


def _check(spender: Field, figure: str, near_percent: int) -> BudgetCheck | None:
    budget, spent = spender.at("budget_usd").number(), spender.at(figure).number()
    if budget is UNKNOWN or spent is UNKNOWN or budget is None or spent is None:
        return None
    missing = tuple(str(each.value) for each in spender.at("unknown_prices").parts().fields)
    return BudgetCheck(_owner(spender), budget, spent, missing, near_percent)
