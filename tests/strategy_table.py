"""Strategies over records of Spot: the job that is played, what each strategy costs against the bound, and the guide's table of it.

Prices are those of p4d.24xlarge in the course (62 % off on Spot), flex-start at 53 % off after 8 hours; the job works for 48 hours, or for
half of a record that is shorter than 96, within a deadline that leaves a quarter more. It saves every half hour in a minute and starts in
ten, and it saves on notice, 90 seconds before an interruption, as EKS gives it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from capacity.catalog.capacity_type import CapacityType, facts_of
from capacity.cost.comparison import Comparison, compare
from capacity.cost.replay import Job, Rates, Trace

if TYPE_CHECKING:
    from collections.abc import Sequence

RATES = Rates(Decimal("12.50"), Decimal("32.77"), Decimal("32.77") * Decimal("0.47"), flex_start_wait_seconds=8 * 3600)
WORK_HOURS = 48
SLACK = 1.25
STARTS = 10
NOTICE_SECONDS = facts_of("eks")[CapacityType.SPOT].notice_seconds or 0


def job_for(zones: Sequence[Trace], *, notice_seconds: int = NOTICE_SECONDS) -> Job:
    """As many nodes as the record ever had."""
    work = round(min(WORK_HOURS, zones[0].hours / 2) * 3600)
    nodes = max(1, *(max(each.available) for each in zones))
    return Job(work, round(work * SLACK), 1800, nodes, checkpoint_seconds=60, restart_seconds=600, notice_seconds=notice_seconds)


@dataclass(frozen=True)
class Ratios:
    """One record: means over all starts, as multiples of what the one who knows the future pays. `greedy` is Spot, then on-demand."""

    comparison: Comparison
    on_demand: Decimal
    greedy: Decimal
    paced: Decimal
    adaptive: Decimal

    @property
    def over_the_better(self) -> Decimal:
        """The adaptive one against the cheaper of on-demand and greedy."""
        return self.adaptive / min(self.on_demand, self.greedy)


def ratios_of(zones: Sequence[Trace], *, notice_seconds: int = NOTICE_SECONDS, starts: int = STARTS) -> Ratios:
    """All strategies over a record."""
    found = compare(zones, job_for(zones, notice_seconds=notice_seconds), replace(RATES, flex_start_usd_per_hour=None), starts=starts)
    usd = {each.strategy: each.mean_usd / found.bound_usd for each in found.results}
    greedy = "Spot in any zone, then on-demand" if len(zones) > 1 else "Spot, then on-demand"
    return Ratios(found, usd["on-demand"], usd[greedy], usd["paced"], usd["adaptive"])


HEAD = "| record | Spot there | bound, USD | on-demand | Spot, then on-demand | paced | adaptive |"


def row(found: Ratios) -> str:
    """A line of the guide's table."""
    share = f"{found.comparison.available_share * 100:.0f} %"
    times = " | ".join(f"{each:.3f}" for each in (found.on_demand, found.greedy, found.paced, found.adaptive))
    return f"| {found.comparison.name} | {share} | {found.comparison.bound_usd:,.0f} | {times} |"


def mean_row(found: Sequence[Ratios]) -> str:
    """Its last line."""
    means = [sum(each) / len(found) for each in zip(*((r.on_demand, r.greedy, r.paced, r.adaptive) for r in found), strict=True)]
    return f"| mean of {len(found)} | | | {' | '.join(f'{each:.3f}' for each in means)} |"
