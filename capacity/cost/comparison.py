"""Strategies side by side, over many starts in many records."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from capacity.cost.replay import replay
from capacity.cost.strategies import STRATEGIES, omniscient_usd
from capacity.values.quantities import SECONDS_OF_AN_HOUR, saved_percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from capacity.cost.replay import Job, Outcome, Rates, Trace


@dataclass(frozen=True)
class StrategyResult:
    """A strategy over all starts in one record: how many ends were after the deadline, and means."""

    missed: int
    mean_usd: Decimal
    saved_percent: Decimal
    """Against on-demand."""
    mean_finish_hours: float
    mean_interruptions: float


@dataclass(frozen=True)
class Comparison:
    """The strategies in one record, by their names."""

    name: str
    zones: int
    available_share: float
    """Of the first zone."""
    starts: int
    bound_usd: Decimal
    """Mean of the lowest possible cost, with the future known, of ending by the deadline, or with on-demand where that is late."""
    results: dict[str, StrategyResult]


def start_ticks(zones: Sequence[Trace], job: Job, starts: int) -> list[int]:
    """Evenly spread ticks from which the record reaches to the deadline; the begin alone where it is too short for that."""
    latest = len(zones[0].available) - -(-job.deadline_seconds // zones[0].gap_seconds)
    if latest <= 0 or starts == 1:
        return [0]
    return sorted({latest * each // (starts - 1) for each in range(starts)})


def compare(zones: Sequence[Trace], job: Job, rates: Rates, *, starts: int) -> Comparison:
    """All strategies from so many starts in the traces, which are zones of the same time."""
    begun = [[each.since(tick) for each in zones] for tick in start_ticks(zones, job, starts)]
    end = max(job.deadline_seconds, job.on_demand_seconds)
    bounds = [omniscient_usd(each, job, rates, end) for each in begun]
    outcomes = {name: [replay(each, job, rates, strategy) for each in begun] for name, strategy in STRATEGIES.items()}
    on_demand_usd = outcomes["on-demand"][0].usd
    results = {name: _result(each, job, on_demand_usd) for name, each in outcomes.items()}
    name = zones[0].name if len(zones) == 1 else f"{zones[0].name} and {len(zones) - 1} more"
    return Comparison(name, len(zones), zones[0].available_share(job.nodes), len(begun), _mean(bounds), results)


def _result(found: list[Outcome], job: Job, on_demand_usd: Decimal) -> StrategyResult:
    usd = _mean([each.usd for each in found])
    return StrategyResult(
        missed=sum(each.finish_seconds > job.deadline_seconds for each in found),
        mean_usd=usd,
        saved_percent=saved_percent(usd, on_demand_usd),
        mean_finish_hours=sum(each.finish_seconds for each in found) / len(found) / SECONDS_OF_AN_HOUR,
        mean_interruptions=sum(each.interruptions for each in found) / len(found),
    )


def _mean(amounts: list[Decimal]) -> Decimal:
    return sum(amounts, start=Decimal(0)) / len(amounts)
