"""Strategies side by side, over many starts in many records: what they cost, when they end, how often too late."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from capacity.catalog.capacity_type import CapacityType
from capacity.cost.replay import Outcome, replay
from capacity.cost.strategies import omniscient_usd, strategies
from capacity.values.usd import SECONDS_OF_AN_HOUR, saved_percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from capacity.cost.replay import Job, Rates
    from capacity.cost.traces import Trace


@dataclass(frozen=True)
class Trial:
    """One outcome beside what the same work cost at least, in the time that it was given or took."""

    outcome: Outcome
    bound_usd: Decimal


@dataclass(frozen=True)
class StrategyResult:
    """A strategy over all starts in one record. Means are over all starts; `mean_finish_hours` over those that ended (None: none did).

    `below_bound` counts trials that cost less than can be, of which there must be none. `saved_percent` is against on-demand, of finished
    runs alone: what has not ended has not earned its savings.
    """

    strategy: str
    starts: int
    finished: int
    missed: int
    below_bound: int
    mean_usd: Decimal
    mean_bound_usd: Decimal
    saved_percent: Decimal | None
    mean_finish_hours: float | None
    mean_interruptions: float


@dataclass(frozen=True)
class Comparison:
    """The strategies in one record. `available_share` is that of the first zone; `bound_usd` what the one who knows the future pays at
    least to end in time on Spot and on-demand.
    """

    name: str
    zones: int
    available_share: float
    job: Job
    bound_usd: Decimal
    results: tuple[StrategyResult, ...]


def trials(zones: Sequence[Trace], job: Job, rates: Rates) -> list[Trial]:
    """Every strategy from the begin of the traces on, each with its bound: the same work by the deadline, or by its end if later."""
    found: list[Trial] = []
    bounds: dict[tuple[int, int, bool], Decimal] = {}
    for strategy in strategies(rates, len(zones)):
        outcome = replay(zones, job, rates, strategy)
        # Each against the one who knows the future and has the same kinds of capacity: cheap flex-start would make all others look poor.
        used = rates if CapacityType.FLEX_START in outcome.billed_seconds else without_flex_start(rates)
        key = (outcome.work_seconds, max(job.deadline_seconds, outcome.played_seconds), used is rates)
        if key not in bounds:
            bounds[key] = omniscient_usd(zones, job, used, work_seconds=key[0], finish_seconds=key[1])
        found.append(Trial(outcome, bounds[key]))
    return found


def without_flex_start(rates: Rates) -> Rates:
    """The same prices of Spot and on-demand alone."""
    return replace(rates, flex_start_usd_per_hour=None)


def start_ticks(zones: Sequence[Trace], job: Job, starts: int) -> list[int]:
    """Evenly spread ticks from which the record reaches to the deadline; the begin alone where it is too short for that."""
    latest = len(zones[0].available) - -(-job.deadline_seconds // zones[0].gap_seconds)
    if latest <= 0 or starts == 1:
        return [0]
    return sorted({latest * each // (starts - 1) for each in range(starts)})


def compare(zones: Sequence[Trace], job: Job, rates: Rates, *, starts: int) -> Comparison:
    """All strategies from so many starts in the traces, which are zones of the same time."""
    by_strategy: dict[str, list[Trial]] = {}
    bounds: list[Decimal] = []
    for tick in start_ticks(zones, job, starts):
        later = [each.since(tick) for each in zones]
        for trial in trials(later, job, rates):
            by_strategy.setdefault(trial.outcome.strategy, []).append(trial)
        spot_and_on_demand = without_flex_start(rates)
        bounds.append(omniscient_usd(later, job, spot_and_on_demand, work_seconds=job.work_seconds, finish_seconds=job.deadline_seconds))
    on_demand = by_strategy["on-demand"][0].outcome.usd
    results = tuple(_result(name, each, job, on_demand) for name, each in by_strategy.items())
    name = zones[0].name if len(zones) == 1 else f"{zones[0].name} and {len(zones) - 1} more"
    return Comparison(name, len(zones), zones[0].available_share(job.nodes), job, _mean(bounds), results)


def _result(name: str, found: list[Trial], job: Job, on_demand_usd: Decimal) -> StrategyResult:
    ended = [each.outcome for each in found if each.outcome.finish_seconds is not None]
    finishes = [each.finish_seconds for each in ended if each.finish_seconds is not None]
    return StrategyResult(
        strategy=name,
        starts=len(found),
        finished=len(ended),
        missed=sum(not each.outcome.meets(job.deadline_seconds) for each in found),
        below_bound=sum(each.outcome.usd < each.bound_usd for each in found),
        mean_usd=_mean([each.outcome.usd for each in found]),
        mean_bound_usd=_mean([each.bound_usd for each in found]),
        saved_percent=saved_percent(_mean([each.usd for each in ended]), on_demand_usd) if ended else None,
        mean_finish_hours=sum(finishes) / len(finishes) / SECONDS_OF_AN_HOUR if finishes else None,
        mean_interruptions=sum(each.outcome.interruptions for each in found) / len(found),
    )


def _mean(amounts: list[Decimal]) -> Decimal:
    return sum(amounts, start=Decimal(0)) / len(amounts)
