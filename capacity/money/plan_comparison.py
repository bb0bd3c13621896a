"""Two plans beside each other: which lines are new, gone or changed, and what that does to the month."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity.money.figures import NOTHING, Figures

if TYPE_CHECKING:
    from capacity.money.plan_cost import CostLine, PlanCost, TeamCost


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
