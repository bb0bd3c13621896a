"""The risk of being late on Spot, and the last moment to change to capacity that stays."""

from __future__ import annotations

import math

from capacity.money.spot_arithmetic import SpotConditions, SpotRun, spot_run
from capacity.money.spot_simulation import on_demand_hours, played_runs

_RUNS = 2000
"""Enough for a risk to be within about two percentage points, 19 times in 20."""
_SEGMENTS = 500_000
"""What one estimate may play: fewer runs where a run has very many segments."""


def late_share(work_hours: float, interval_hours: float, conditions: SpotConditions, deadline_hours: float) -> float:
    """The share of runs that end after the deadline when they stay on Spot, of up to 2,000 that were played; the same every time."""
    expected = spot_run(work_hours, interval_hours, conditions)
    if not expected.ends:
        return 1.0
    count = runs_worth_playing(expected, interval_hours, _RUNS)
    runs = played_runs(work_hours, interval_hours, conditions, runs=count)
    return sum(run.wall_hours > deadline_hours for run in runs) / len(runs)


def runs_worth_playing(expected: SpotRun, interval_hours: float, most: int) -> int:
    """How many runs to play so that the estimate takes about a second, and at least a few."""
    events = expected.billed_hours / min(interval_hours, expected.work_hours) + expected.interruptions
    return max(20, min(most, int(_SEGMENTS / events)))


def late_share_at_most(work_hours: float, interval_hours: float, conditions: SpotConditions, deadline_hours: float) -> float:
    """A closed form that the share of late runs never exceeds.

    Whatever it hits, an interruption costs at most a segment, a restart and a wait. So k of them are survived when k such losses fit
    between the undisturbed run and the deadline, and a late run was struck more than k times while it was billed for no longer than that
    takes.
    """
    undisturbed = on_demand_hours(work_hours, interval_hours, conditions) - conditions.restart_hours
    slack = deadline_hours - undisturbed
    if slack < 0:
        return 1.0
    billed_loss = min(interval_hours, work_hours) + conditions.checkpoint_hours + conditions.restart_hours
    loss = billed_loss + conditions.wait_hours
    survived = math.floor(slack / loss)
    return _poisson_above(survived, conditions.interruptions_per_hour * (undisturbed + survived * billed_loss))


def _poisson_above(count: int, mean: float) -> float:
    """The chance of more than `count` events where `mean` are expected."""
    if mean == 0:
        return 0.0
    logarithms = [each * math.log(mean) - mean - math.lgamma(each + 1) for each in range(count + 1)]
    return min(1.0, max(0.0, 1.0 - math.fsum(math.exp(each) for each in logarithms)))


def latest_change_hours(work_left_hours: float, interval_hours: float, conditions: SpotConditions, deadline_hours: float) -> float:
    """Hours from the start at which a run with so much work left must be on on-demand to be sure to end in time; negative: too late
    already.
    """
    return deadline_hours - on_demand_hours(work_left_hours, interval_hours, conditions)
