"""Strategies for a job that can wait and resume, side by side over many starts; and the bound of one that knows the future."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING

from flexspot.capacity.cost.replay import ON_DEMAND, replay
from flexspot.capacity.values.quantities import SECONDS_OF_AN_HOUR, saved_percent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from flexspot.capacity.cost.replay import Job, Rates, ReplayOutcome, Strategy, TickView, Trace


def greedy(view: TickView) -> int | None:
    """Use Spot while there is some and wait without it, until on-demand from now on only just ends in time; then stay on on-demand.

    A promise is kept at each tick: if all were lost now, on-demand would end before the deadline. So every deadline that on-demand can
    meet from the start is met.
    """
    place = view.spot_place
    return place if view.place != ON_DEMAND and view.is_safe(place) else ON_DEMAND


def uniform_progress(view: TickView) -> int | None:
    """Use Spot whenever there is some; without it use on-demand while behind an even pace to the deadline, else wait.

    The policy Uniform Progress of Z. Wu and others, "Can't Be Late", NSDI 2024, with the promise of `greedy`. On-demand is kept until the
    job is ahead of the pace by two restarts, so that it does not come and go.
    """
    place = view.spot_place
    if place is not None and view.is_safe(place):
        return place
    margin = 2 * view.job.restart_seconds if view.place == ON_DEMAND else 0
    due = view.job.work_seconds * (view.elapsed_seconds + margin)
    behind = view.progress.work_done_seconds(view.job) * view.job.deadline_seconds < due
    return ON_DEMAND if behind or not view.is_safe(None) else None


STRATEGIES: Mapping[str, Strategy] = {
    "on-demand": lambda _: ON_DEMAND,
    "Spot, then on-demand": greedy,
    "uniform progress": uniform_progress,
}
"""On-demand is always there in this model; the clouds do not promise that."""


_MILLION = 1_000_000


def omniscient_usd(zones: Sequence[Trace], job: Job, rates: Rates, finish_seconds: int) -> Decimal:
    """At most what any way to do the job's work in so much time costs, in any of the zones or on-demand."""
    gap, work_seconds = zones[0].gap_seconds, job.work_seconds
    places = _places(zones, job, rates, -(-finish_seconds // gap))
    # What it costs at least, for a second of work being worth so much, is concave in that worth and a straight line between the changes of
    # the path. So where the lines of a worth that is too low and of one that is too high meet is nearer than the middle between the two.
    low, high = 0, 4 * max(price for price, _ in places)
    below, above = _cheapest(places, low, gap, job.restart_seconds), _cheapest(places, high, gap, job.restart_seconds)
    best = max(net + value * work_seconds for value, (net, _) in ((low, below), (high, above)))
    while high - low > 1 and below[1] < work_seconds <= above[1]:
        value = min(max((above[0] + high * above[1] - below[0] - low * below[1]) // (above[1] - below[1]), low + 1), high - 1)
        found = _cheapest(places, value, gap, job.restart_seconds)
        best = max(best, found[0] + value * work_seconds)
        # The path does too little work: a second of it must be worth more.
        if found[1] < work_seconds:
            low, below = value, found
        else:
            high, above = value, found
    return Decimal(best) * job.nodes / (_MILLION * SECONDS_OF_AN_HOUR)


def _places(zones: Sequence[Trace], job: Job, rates: Rates, ticks: int) -> list[tuple[int, list[bool]]]:
    """Each place's price in millionths of a dollar an hour and node, and the ticks in which it can be used."""

    def millionths(usd_per_hour: Decimal) -> int:
        return int((usd_per_hour * _MILLION).to_integral_value(ROUND_FLOOR))

    known = min(ticks, len(zones[0].available))
    spot = millionths(rates.spot_usd_per_hour)
    places = [(spot, [each >= job.nodes for each in zone.available[:known]] + [False] * (ticks - known)) for zone in zones]
    places.append((millionths(rates.on_demand_usd_per_hour), [True] * ticks))
    return places


def _cheapest(places: list[tuple[int, list[bool]]], value: int, gap: int, restart: int) -> tuple[int, int]:
    """The least of cost less the value of the work done, over all paths, and the work of the path that has it."""
    # A run that ends within its first tick costs something between its restart alone and the whole tick; the net cost is a straight line
    # between the two, so that the ends are enough. Whoever does any work starts once, so that doing nothing at all is no path.
    touched: tuple[float, int] = (min(price for price, _ in places) * restart, 0)
    idle: tuple[float, int] = (math.inf, 0)
    running: list[tuple[float, int]] = [(math.inf, 0)] * len(places)
    start = value * restart
    for tick in range(len(places[0][1])):
        idle = min(idle, *running)
        begun = min((idle[0] + start, idle[1] - restart), (start, -restart))
        for number, (price, there) in enumerate(places):
            if not there[tick]:
                running[number] = (math.inf, 0)
                continue
            before = min(running[number], begun)
            running[number] = (before[0] + (price - value) * gap, before[1] + gap)
    net, work = min(touched, idle, *running)
    return int(net), work


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


def _result(found: list[ReplayOutcome], job: Job, on_demand_usd: Decimal) -> StrategyResult:
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
