"""Strategies for a job that can wait and resume, by what has been seen until then; and the bound of who knows the future."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING

from capacity.catalog.capacity_type import CapacityType
from capacity.cost.replay import FLEX_START, ON_DEMAND
from capacity.values.quantities import SECONDS_OF_AN_HOUR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from capacity.cost.replay import Job, Place, Rates, Strategy, Trace, View


@dataclass(frozen=True)
class AlwaysOnDemand:
    """On-demand from the begin to the end."""

    name: str = "on-demand"

    def choose(self, view: View) -> Place | None:
        """On-demand, always there in this model; the clouds do not promise that."""
        del view
        return ON_DEMAND


@dataclass(frozen=True)
class FlexStart:
    """Waits its turn, runs undisturbed up to the limit, and asks again when that was not enough."""

    name: str = "flex-start"

    def choose(self, view: View) -> Place | None:
        """Waiting, or flex-start; both in whole ticks, the wait rounded up and the limit down."""
        wait = -(-view.rates.flex_start_wait_seconds // view.gap_seconds)
        limit = max(1, view.rates.flex_start_limit_seconds // view.gap_seconds)
        turn = view.elapsed_seconds // view.gap_seconds % (wait + limit)
        return FLEX_START if turn >= wait else None


@dataclass(frozen=True)
class Spot:
    """Spot whenever there is some, in the first zone or in any.

    With `falls_back` it is on on-demand from the last moment on from which that ends in time, and stays there. It keeps a promise at each
    tick: if all were lost now, on-demand would end before the deadline. What would break the promise is not done, and on-demand never
    does, so every deadline that on-demand can meet from the start is met.
    """

    name: str
    any_zone: bool = False
    falls_back: bool = False

    def choose(self, view: View) -> Place | None:
        """Spot where it is already, then any other, then waiting; on-demand where those are too late."""
        if view.place == ON_DEMAND:
            return ON_DEMAND
        place = spot_of(view, any_zone=self.any_zone)
        return ON_DEMAND if self.falls_back and not view.is_safe(place) else place


@dataclass(frozen=True)
class Paced:
    """Uniform progress: Spot whenever there is some; without it on-demand while behind an even pace to the deadline, else waiting.

    The idea of "Can't Be Late" (NSDI 2024); here with the promise of `Spot.falls_back`, in any zone. Where Spot is scarce it saves less at
    the end and is in less of a hurry there.
    """

    name: str = "paced"

    def choose(self, view: View) -> Place | None:
        """See the class; on-demand is kept until it is ahead of the pace by two restarts, so that it does not come and go."""
        place = spot_of(view, any_zone=True)
        if place is not None and view.is_safe(place):
            return place
        margin = 2 * view.job.restart_seconds if view.place == ON_DEMAND else 0
        due = view.job.work_seconds * (view.elapsed_seconds + margin)
        behind = view.progress.work_done_seconds(view.job) * view.job.deadline_seconds < due
        return ON_DEMAND if behind or not view.is_safe(None) else None


_PRIOR_PIECE_SECONDS, _PRIOR_OUTAGE_SECONDS = 2 * 3600, 3600
"""What counts as seen once before anything is: Spot for two hours, then none for one. Wrong guesses are worn off by the first outages."""

_EXCURSIONS_KEPT = 2
"""Time is kept for so many changes to Spot and back, whatever is expected."""


@dataclass(frozen=True)
class Adaptive:
    """Spot whenever it pays, and slack spent where it saves most, going by what the job has seen of Spot since it began.

    Slack, the time that on-demand does not need, buys two things. Waiting through an outage saves the on-demand hours of that outage; a
    change from on-demand to Spot and back saves the discount for as long as Spot stays, and takes two restarts, a save and what is lost.
    `Spot.falls_back` spends all on waiting, and cannot go back to Spot once nothing is left; `Paced` buys on-demand hours from the begin
    on, also where Spot alone would have done. This one waits, but keeps the slack that the changes of the remaining time need, as many as
    Spot is expected to come back, wherever a second of slack saves more on them than on waiting. Where Spot stays for so short a time
    that it does not pay for its restart, it is left alone. The promise is that of `Spot.falls_back`.
    """

    name: str = "adaptive"

    def choose(self, view: View) -> Place | None:
        """See the class."""
        outlook = _Outlook(view)
        place = spot_of(view, any_zone=True)
        saved = outlook.saved_by_change if view.place == ON_DEMAND else outlook.saved_by_spot
        if place is not None and view.is_safe(place) and (place == view.place or saved > 0):
            return place
        if view.place == ON_DEMAND:
            # It is left for Spot alone: to wait from there would pay for one more start.
            return ON_DEMAND
        return None if view.is_safe(None) and outlook.slack > outlook.kept else ON_DEMAND


class _Outlook:
    """What is to be expected of Spot from here on, in seconds; savings are in seconds of on-demand."""

    def __init__(self, view: View) -> None:
        job, seen = view.job, view.seen
        left = job.deadline_seconds - view.elapsed_seconds
        discount = 1 - float(view.rates.spot_usd_per_hour / view.rates.on_demand_usd_per_hour)
        stays = (seen.zone_seconds + _PRIOR_PIECE_SECONDS) / (seen.losses + 1)
        back = (seen.spot_seconds + _PRIOR_PIECE_SECONDS) / (seen.outages + 1)
        outage = (seen.outage_seconds + _PRIOR_OUTAGE_SECONDS) / (seen.returns + 1)
        lost = job.notice_seconds or job.checkpoint_interval_seconds / 2
        start = job.restart_seconds + lost
        change = start + job.restart_seconds + job.checkpoint_seconds
        self.slack = left - view.at(ON_DEMAND).to_finish_seconds(job)
        self.saved_by_spot = stays * discount - start
        self.saved_by_change = stays * discount - change
        changes = left / (back + outage)
        least = _EXCURSIONS_KEPT * (change + view.gap_seconds)
        if self.saved_by_change <= 0:
            self.kept = float(view.gap_seconds)
        elif self.saved_by_change * (outage + start) < self.saved_by_spot * change:
            self.kept = least
        else:
            # With several zones, Spot is lost more often than it is gone everywhere.
            moves = max(0.0, left * back / (back + outage) / stays - changes)
            self.kept = least + changes * change + moves * start


def spot_of(view: View, *, any_zone: bool) -> Place | None:
    """The Spot place to be at: where the job is already, else the first that has capacity; None when there is none."""
    places = view.spot if any_zone else tuple(each for each in view.spot if each.zone == 0)
    if view.place is not None and view.place.capacity_type is CapacityType.SPOT and view.place in places:
        return view.place
    return places[0] if places else None


def strategies(rates: Rates, zones: int) -> list[Strategy]:
    """Those that can be compared: with flex-start where it has a price, with several zones where there are several."""
    found: list[Strategy] = [
        AlwaysOnDemand(),
        Spot("Spot, restarted"),
        Spot("Spot, then on-demand", falls_back=True),
        Paced(),
        Adaptive(),
    ]
    if zones > 1:
        found += [Spot("Spot in any zone", any_zone=True), Spot("Spot in any zone, then on-demand", any_zone=True, falls_back=True)]
    return [*found, FlexStart()] if rates.flex_start_usd_per_hour is not None else found


DEADLINE_AWARE = ("Spot, then on-demand", "Spot in any zone, then on-demand", "paced", "adaptive")
"""The strategies that meet every deadline which on-demand can meet."""


_MILLION = 1_000_000


def omniscient_usd(zones: Sequence[Trace], job: Job, rates: Rates, *, work_seconds: int, finish_seconds: int) -> Decimal:
    """At most what any way to do so much of the job's work in so much time costs, in any of the zones, on-demand or on flex-start."""
    if work_seconds == 0:
        return Decimal(0)
    gap = zones[0].gap_seconds
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
    if rates.flex_start_usd_per_hour is not None:
        wait = -(-rates.flex_start_wait_seconds // zones[0].gap_seconds)
        places.append((millionths(rates.flex_start_usd_per_hour), [tick >= wait for tick in range(ticks)]))
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
