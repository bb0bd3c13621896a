"""Whether what is to be spent keeps to a budget."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decimal import Decimal

NEAR_PERCENT = 80
"""The percentage of a budget from which a warning is sent; a budget may set its own."""


class BudgetStanding(StrEnum):
    """How an amount stands to a budget.

    EXCEEDED: above it, whatever has no known price. UNKNOWN: within it as far as prices are known, but what has none could take it above,
    at on-demand or at a price that has no bound. NEAR: within it whatever missing prices are, in its last part. WITHIN: below that.
    """

    EXCEEDED = "exceeded"
    UNKNOWN = "unknown"
    NEAR = "near"
    WITHIN = "within"


@dataclass(frozen=True)
class BudgetCheck:
    """One budget of `owner` (the environment's or a team's name), the amount held against it, and the prices missing in that.

    `at_most_usd` is what it may come to with those prices; None where one of them has no bound.
    """

    owner: str
    budget_usd: Decimal
    spent_usd: Decimal
    unknown: tuple[str, ...] = ()
    near_percent: int = NEAR_PERCENT
    at_most_usd: Decimal | None = None

    @property
    def spent_percent(self) -> Decimal:
        """How much of the budget that is."""
        return self.spent_usd * 100 / self.budget_usd

    @property
    def uncertain(self) -> bool:
        """Whether missing prices decide if the budget is kept."""
        return bool(self.unknown) and (self.at_most_usd is None or self.at_most_usd > self.budget_usd) and self.spent_usd <= self.budget_usd

    @property
    def near(self) -> bool:
        """Whether at least `near_percent` of the budget may be spent, or more than all of it."""
        return max(self.spent_usd, self.at_most_usd or self.spent_usd) * 100 >= self.budget_usd * self.near_percent

    @property
    def standing(self) -> BudgetStanding:
        """See Standing; a budget that is spent to the last cent is kept."""
        if self.spent_usd > self.budget_usd:
            return BudgetStanding.EXCEEDED
        if self.uncertain:
            return BudgetStanding.UNKNOWN
        return BudgetStanding.NEAR if self.near else BudgetStanding.WITHIN
