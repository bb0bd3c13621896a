"""Two plans beside each other: which lines are new, gone or changed; and whether what is to be spent keeps to a budget."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from capacity.cost.plan_cost import NOTHING, Figures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from capacity.cost.plan_cost import CostLine, PlanCost, PriceUsed, Scenario, TeamCost


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
    environment = (cost.environment, cost.budget, cost.total, cost.unknown)
    teams = [(each.name, each.budget, each.figures, each.unknown) for each in cost.teams]
    return [
        BudgetCheck(owner, Decimal(budget), figures.of(scenario), unknown, near_percent)
        for owner, budget, figures, unknown in (environment, *teams)
        if budget is not None
    ]


@dataclass(frozen=True)
class LineChange:
    """A line that is not the same in both; None where a plan does not have it."""

    before: CostLine | None
    after: CostLine | None

    @property
    def line(self) -> CostLine:
        """The line in whichever plan has it, the later one first."""
        line = self.after or self.before
        assert line is not None, "a change is of a line that one of the plans has"  # noqa: S101 -- a defect of this module
        return line

    @property
    def difference(self) -> Figures | None:
        """How much more the later plan costs by this line. None where no price is known on one of the sides that have it."""
        sides = [each for each in (self.before, self.after) if each is not None]
        if any(each.figures is None for each in sides):
            return None
        return _figures(self.after) - _figures(self.before)


@dataclass(frozen=True)
class TeamChange:
    """A team whose part is not the same in both, by name; None where a plan does not have it."""

    name: str
    before: TeamCost | None
    after: TeamCost | None

    @property
    def difference(self) -> Figures:
        """How much more its part costs in the later plan, as far as prices are known."""
        return _figures(self.after) - _figures(self.before)


@dataclass(frozen=True)
class PlanComparison:
    """`before` and `after`, worked out with the same prices and expectations, and what differs, in the order of the later plan."""

    before: PlanCost
    after: PlanCost
    lines: tuple[LineChange, ...]
    teams: tuple[TeamChange, ...]

    @property
    def difference(self) -> Figures:
        """How much more the later plan costs in all, as far as prices are known."""
        return self.after.total - self.before.total


def compared(before: PlanCost, after: PlanCost) -> PlanComparison:
    """What differs between two plans; nothing for a plan and itself."""
    old, new = {each.key: each for each in before.lines}, {each.key: each for each in after.lines}
    teams_before, teams_after = {each.name: each for each in before.teams}, {each.name: each for each in after.teams}
    return PlanComparison(
        before,
        after,
        tuple(LineChange(old.get(key), new.get(key)) for key in dict.fromkeys([*new, *old]) if old.get(key) != new.get(key)),
        tuple(
            TeamChange(name, teams_before.get(name), teams_after.get(name))
            for name in dict.fromkeys([*teams_after, *teams_before])
            if teams_before.get(name) != teams_after.get(name)
        ),
    )


def _figures(part: CostLine | TeamCost | None) -> Figures:
    return NOTHING if part is None or part.figures is None else part.figures


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
    """Each budget, the amount compared with it, and the result."""
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
