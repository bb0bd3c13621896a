"""Where Spot stops paying: against on-demand, against flex-start, and against the value of time."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from capacity.money.checkpoint_interval import best_spot_run
from capacity.money.usd import exact

if TYPE_CHECKING:
    from capacity.money.spot_arithmetic import SpotConditions, SpotRun

_STEPS = 200
_MOST_INTERRUPTIONS_PER_HOUR = 3600.0
"""One each second: no machine would ever get to work."""


def usd_per_useful_hour(usd_per_hour: Decimal, run: SpotRun) -> Decimal | None:
    """The effective price: what an hour of work costs once overhead is paid for. None for a run that never ends."""
    return usd_per_hour * exact(run.billed_hours) / exact(run.work_hours) if run.ends else None


def break_even_usd_per_hour(other_usd_per_hour: Decimal, run: SpotRun) -> Decimal:
    """The Spot price at which the run costs as much as without interruptions at the other price; 0 for a run that never ends."""
    return other_usd_per_hour * exact(run.work_hours) / exact(run.billed_hours) if run.ends else Decimal(0)


def break_even_interruptions_per_node_hour(
    work_hours: float, conditions: SpotConditions, spot_usd_per_hour: Decimal, other_usd_per_hour: Decimal
) -> float:
    """How often a node may be interrupted before Spot, at its best interval, costs more than the other price without interruptions.

    0 when Spot is no cheaper to begin with.
    """
    if spot_usd_per_hour >= other_usd_per_hour:
        return 0.0

    def pays(rate: float) -> bool:
        _, run = best_spot_run(work_hours, replace(conditions, interruptions_per_node_hour=rate))
        effective = usd_per_useful_hour(spot_usd_per_hour, run)
        return effective is not None and effective <= other_usd_per_hour

    low, high = 0.0, _MOST_INTERRUPTIONS_PER_HOUR / conditions.nodes
    if pays(high):
        return high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if pays(middle) else (low, middle)
    return low


def value_of_an_hour_sooner(cheap_usd: Decimal, dear_usd: Decimal, later_hours: float) -> Decimal | None:
    """What an hour must be worth for the dear way, which ends `later_hours` sooner, to be the better one. None when it ends no sooner."""
    return (dear_usd - cheap_usd) / exact(later_hours) if later_hours > 0 else None
