"""Whether what is to be spent in a month keeps to a budget; the policies and `flexspot cost` say the same."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capacity.cost.figures import Scenario
    from capacity.cost.plan_cost import PlanCost

NEAR_PERCENT = 80
"""The percentage of a budget from which a warning is sent; a budget may set its own."""


class Standing(StrEnum):
    """How an amount stands to a budget.

    EXCEEDED: above it, whatever has no known price. NEAR: as far as it is known within it, in its last part. UNKNOWN: as far as it is
    known below that, but prices are missing. WITHIN: all of it is known, and it is below.
    """

    EXCEEDED = "exceeded"
    UNKNOWN = "unknown"
    NEAR = "near"
    WITHIN = "within"


@dataclass(frozen=True)
class BudgetCheck:
    """One budget of `owner` (the environment's or a team's name), the amount held against it, and the prices missing in that."""

    owner: str
    budget_usd: Decimal
    spent_usd: Decimal
    unknown: tuple[str, ...] = ()
    near_percent: int = NEAR_PERCENT

    @property
    def near(self) -> bool:
        """Whether at least `near_percent` of the budget is spent, or more than all of it."""
        return self.spent_usd * 100 >= self.budget_usd * self.near_percent

    @property
    def standing(self) -> Standing:
        """See Standing; a budget that is spent to the last cent is kept."""
        if self.spent_usd > self.budget_usd:
            return Standing.EXCEEDED
        if self.near:
            return Standing.NEAR
        return Standing.UNKNOWN if self.unknown else Standing.WITHIN


def budget_checks(cost: PlanCost, scenario: Scenario, near_percent: int = NEAR_PERCENT) -> list[BudgetCheck]:
    """The environment's budget, then the teams', each against its part of that month; nothing for whom there is none."""
    environment = [] if cost.budget is None else [(cost.environment, cost.budget, cost.total, cost.unknown)]
    teams = [(each.name, each.budget, each.figures, each.unknown) for each in cost.teams if each.budget is not None]
    return [
        BudgetCheck(owner, Decimal(budget), figures.of(scenario), unknown, near_percent)
        for owner, budget, figures, unknown in (*environment, *teams)
    ]
