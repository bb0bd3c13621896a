"""Comparison of two plans (new, removed and changed lines), and checks of the spend against budgets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flexspot.capacity.cost.costed_plan import NEAR_PERCENT, BudgetCheck
from flexspot.capacity.cost.figures import NOTHING, Figures, Scenario, price_data
from flexspot.capacity.cost.plan_cost import PlanCost

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from decimal import Decimal

    from flexspot.capacity.cost.figures import CostLine
    from flexspot.capacity.cost.plan_cost import TeamCost


def budget_checks(cost: PlanCost, scenario: Scenario, near_percent: int = NEAR_PERCENT) -> list[BudgetCheck]:
    """Return the checks of the environment's budget, then of the teams' against their parts of the month. Omits those without a budget.

    A team's worst case is that of the most GPUs that it may hold, including borrowed ones.
    """
    return list(_checks(cost, scenario, near_percent))


def _checks(cost: PlanCost, scenario: Scenario, near_percent: int) -> Iterator[BudgetCheck]:
    for part in (cost, *cost.teams):
        if part.budget is None:
            continue
        owner, figures = (part.environment, part.total) if isinstance(part, PlanCost) else (part.name, part.figures)
        if scenario is Scenario.WORST:
            spent = figures.worst_usd if isinstance(part, PlanCost) else part.worst_usd
            yield BudgetCheck(owner, part.budget, spent, part.unbounded, near_percent)
        else:
            at_most = None if part.unbounded else figures.expected_at_most_usd
            yield BudgetCheck(owner, part.budget, figures.of(scenario), part.unknown, near_percent, at_most)


@dataclass(frozen=True)
class LineChange:
    """A line that differs between the plans; None where a plan lacks it."""

    before: CostLine | None
    after: CostLine | None

    @property
    def line(self) -> CostLine:
        """The line of either plan, preferably the later one."""
        line = self.after or self.before
        assert line is not None, "a change is of a line that one of the plans has"  # noqa: S101 -- a defect of this module
        return line

    @property
    def priced(self) -> bool:
        """True if each side that has the line has a known price. Otherwise the expected difference is unknown."""
        return all(each.priced for each in (self.before, self.after) if each is not None)

    @property
    def difference(self) -> Figures | None:
        """Additional cost of this line in the later plan. None if a side that has the line has no known price."""
        sides = [each for each in (self.before, self.after) if each is not None]
        if any(each.figures is None for each in sides):
            return None
        return _figures(self.after) - _figures(self.before)


@dataclass(frozen=True)
class TeamChange:
    """A team whose part differs between the plans, by name; None where a plan lacks it."""

    name: str
    before: TeamCost | None
    after: TeamCost | None

    @property
    def difference(self) -> Figures:
        """Additional cost of the team's part in the later plan, as far as prices are known."""
        return _figures(self.after) - _figures(self.before)


@dataclass(frozen=True)
class PlanComparison:
    """Two plans, calculated with the same prices and expectations, with their differences in the order of the later plan."""

    before: PlanCost
    after: PlanCost
    lines: tuple[LineChange, ...]
    teams: tuple[TeamChange, ...]

    @property
    def difference(self) -> Figures:
        """Additional cost of the later plan in all, as far as prices are known."""
        return self.after.total - self.before.total


def compared(before: PlanCost, after: PlanCost) -> PlanComparison:
    """Return the differences between two plans; none for a plan and itself."""
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
    """Return a plan's cost as data.

    `at_least` marks missing prices: the expected and idle amounts are lower bounds. `worst_case_at_least` marks one without a bound: the
    worst case is a lower bound too. If only the worst case of a line is known, its expected and idle amounts are null.
    """
    return {
        "cloud": cost.cloud,
        "environment": cost.environment,
        "region": cost.region,
        "at_least": bool(cost.unknown),
        "unknown_prices": list(cost.unknown),
        "worst_case_at_least": bool(cost.unbounded),
        "unbounded_prices": list(cost.unbounded),
        "complete": cost.complete,
        "notes": list(cost.notes),
        **figures_data(cost.total),
        "budget_usd": _text(cost.budget),
        "unallocated": figures_data(cost.unallocated),
        "platform": figures_data(cost.platform),
        "teams": [_team(each) for each in cost.teams],
        "lines": [_line(each) for each in cost.lines],
    }


_ONLY_PRICED = ("expected_usd", "idle_floor_usd")
"""Figures of a line that are unknown if none of its prices is known."""


def comparison_data(found: PlanComparison) -> dict[str, Any]:
    """Return the difference in all, then each line and team that differs."""
    return {
        "difference": figures_data(found.difference),
        "before": figures_data(found.before.total),
        "lines": [
            {
                "section": each.line.section.value,
                "name": each.line.name,
                "before": None if each.before is None else _line(each.before),
                "after": None if each.after is None else _line(each.after),
                "difference": _difference(each),
            }
            for each in found.lines
        ],
        "teams": [{"name": each.name, "difference": figures_data(each.difference)} for each in found.teams],
    }


def _difference(change: LineChange) -> dict[str, str | None] | None:
    if change.difference is None:
        return None
    figures: dict[str, str | None] = {**figures_data(change.difference)}
    return figures if change.priced else figures | dict.fromkeys(_ONLY_PRICED)


def budgets_data(checks: Sequence[BudgetCheck]) -> list[dict[str, str | None]]:
    """Return each budget, the amount compared with it, and the result."""
    return [
        {
            "owner": each.owner,
            "budget_usd": str(each.budget_usd),
            "spent_usd": str(each.spent_usd),
            "at_most_usd": None if each.unknown and each.at_most_usd is None else str(each.at_most_usd or each.spent_usd),
            "standing": each.standing.value,
        }
        for each in checks
    ]


def figures_data(figures: Figures) -> dict[str, str]:
    """Return the figures as text."""
    return {
        "worst_case_usd": str(figures.worst_usd),
        "expected_usd": str(figures.expected_usd),
        "expected_at_most_usd": str(figures.expected_at_most_usd),
        "idle_floor_usd": str(figures.floor_usd),
    }


def _team(team: TeamCost) -> dict[str, Any]:
    fields = {"name": team.name, "gpus": team.gpus, **figures_data(team.figures)}
    most = None if team.most_usd is None else str(team.most_usd)
    return {
        **fields,
        "worst_case_with_borrowing_usd": most,
        "budget_usd": _text(team.budget),
        "unknown_prices": list(team.unknown),
        "unbounded_prices": list(team.unbounded),
    }


def _line(line: CostLine) -> dict[str, Any]:
    figures: dict[str, str | None] = {**figures_data(line.figures or NOTHING)}
    if line.figures is None:
        figures = dict.fromkeys(figures)
    elif not line.priced:
        figures |= dict.fromkeys(_ONLY_PRICED)
    return {
        "section": line.section.value,
        "name": line.name,
        "quantity": line.quantity,
        **figures,
        "prices": [price_data(each) for each in line.prices],
        "unknown_prices": list(line.unknown),
        "unbounded_prices": list(line.unbounded),
    }


def _text(amount: Decimal | None) -> str | None:
    return None if amount is None else str(amount)
