"""Ways to place a job that can wait and resume. None of them knows the future; `omniscient` says what knowing it would be worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity.capacity_type import CapacityType
from capacity.money.replay import FLEX_START, ON_DEMAND

if TYPE_CHECKING:
    from capacity.money.replay import Place, Rates, Strategy, View


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
    ]
    if zones > 1:
        found += [Spot("Spot in any zone", any_zone=True), Spot("Spot in any zone, then on-demand", any_zone=True, falls_back=True)]
    return [*found, FlexStart()] if rates.flex_start_usd_per_hour is not None else found


DEADLINE_AWARE = ("Spot, then on-demand", "Spot in any zone, then on-demand", "paced")
"""The strategies that meet every deadline which on-demand can meet."""
