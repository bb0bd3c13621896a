"""What a plan costs in a month: line by line, by team, in all; what has no known price is named and never counted as nothing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from capacity.cost.figures import NOTHING, Figures, divided, total

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date
    from decimal import Decimal

    from capacity.cost.costed_plan import CostedPlan


class Section(StrEnum):
    """What a line is about.

    POOL and DISK are shared out to the teams whose GPUs they are. SYSTEM, OTHER_WORK, SERVICE and USAGE are the platform's: nodes of
    controllers, nodes without GPUs, what the cloud bills for being there, and what somebody said will be used.
    """

    POOL = "pool"
    DISK = "pool-disk"
    SYSTEM = "system-nodes"
    OTHER_WORK = "other-work"
    SERVICE = "service"
    USAGE = "usage"

    @property
    def of_pools(self) -> bool:
        """Whether teams share it."""
        return self in {Section.POOL, Section.DISK}


@dataclass(frozen=True)
class PriceUsed:
    """A price that a line was worked out with. `per` is the measure; `source` is the citation."""

    what: str
    usd: Decimal
    per: str
    source: str
    as_of: date
    verified: bool


@dataclass(frozen=True)
class CostLine:
    """One line. `quantity` says of how much; `figures` are None where no price is known, `unknown` names the prices that are missing.

    With both, the figures are the least: what has no price comes on top.
    """

    section: Section
    name: str
    quantity: str
    figures: Figures | None
    prices: tuple[PriceUsed, ...]
    unknown: tuple[str, ...]

    @property
    def key(self) -> tuple[Section, str]:
        """What makes it the same line in another plan."""
        return self.section, self.name


@dataclass(frozen=True)
class TeamCost:
    """The part of the pools that is a team's own, in GPUs and in money, as if it used nothing else. `budget` is in US dollars a month."""

    name: str
    gpus: int
    figures: Figures
    budget: int | None
    unknown: tuple[str, ...]


@dataclass(frozen=True)
class PlanCost:
    """A month of a plan.

    `unallocated` is the part of the pools that is no team's: a cohort's, or what anybody may borrow. `platform` is what all share. Teams,
    unallocated and platform sum to `total`, and so do the lines.
    """

    cloud: str
    environment: str
    region: str
    lines: tuple[CostLine, ...]
    teams: tuple[TeamCost, ...]
    unallocated: Figures
    platform: Figures
    total: Figures
    budget: int | None

    @property
    def unknown(self) -> tuple[str, ...]:
        """Every price that is missing, once; where there is one, all sums are the least."""
        return tuple(dict.fromkeys(each for line in self.lines for each in line.unknown))


def summed(plan: CostedPlan, lines: Sequence[CostLine]) -> PlanCost:
    """The lines of a plan with their sums, those of the pools shared out to the teams by their GPUs."""
    names = [team.name for team in plan.teams]
    of_teams: dict[str, list[Figures]] = {name: [] for name in names}
    missing: dict[str, list[str]] = {name: [] for name in names}
    gpus = dict.fromkeys(names, 0)
    unallocated = NOTHING
    shares: dict[str, dict[str, int]] = {}
    for share in plan.spending.shares:
        shares.setdefault(share.pool, {})[share.team] = share.gpus
        gpus[share.team] += share.gpus
    ceilings = {pool.name: pool.ceiling.gpus for pool in plan.pools}
    for line in lines:
        if not line.section.of_pools:
            continue
        owners = shares.get(line.name, {})
        for team in owners:
            missing[team] += line.unknown
        if line.figures is not None:
            *parts, rest = divided(line.figures, [*owners.values(), max(0, ceilings[line.name] - sum(owners.values()))])
            unallocated += rest
            for team, part in zip(owners, parts, strict=True):
                of_teams[team].append(part)
    teams = tuple(
        TeamCost(each.name, gpus[each.name], total(of_teams[each.name]), each.budget, tuple(dict.fromkeys(missing[each.name])))
        for each in plan.teams
    )
    return PlanCost(
        cloud=plan.cloud.value,
        environment=plan.environment,
        region=plan.region,
        lines=tuple(lines),
        teams=teams,
        unallocated=unallocated,
        platform=total(line.figures for line in lines if not line.section.of_pools),
        total=total(line.figures for line in lines),
        budget=plan.spending.budget_usd,
    )
