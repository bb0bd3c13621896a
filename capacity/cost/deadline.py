"""The risk of being late on Spot, played with random interruptions, and the last moment to change to capacity that stays."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from capacity.cost.spot_arithmetic import SpotConditions, SpotRun, spot_run

_SEED = 20261121

_MOST_INTERRUPTIONS = 100_000
"""A run that has been interrupted so often is taken to never end."""


@dataclass(frozen=True)
class PlayedRun:
    """One run as it went, in hours. `on_demand_hours` are those after a change to on-demand, 0 without one."""

    spot_hours: float
    on_demand_hours: float
    wall_hours: float
    interruptions: int


def played_runs(
    work_hours: float, interval_hours: float, conditions: SpotConditions, *, runs: int, deadline_hours: float | None = None
) -> list[PlayedRun]:
    """So many runs, the same every time.

    With `deadline_hours` a run changes to on-demand at the last moment from which on-demand is sure to end in time; nothing else is known
    to it beforehand.
    """
    chance = random.Random(_SEED)  # noqa: S311 -- a simulation must be repeatable, not secret
    return [_play(work_hours, interval_hours, conditions, chance, deadline_hours) for _ in range(runs)]


def on_demand_hours(work_hours: float, interval_hours: float, conditions: SpotConditions) -> float:
    """How long the rest of a run takes on capacity that stays, from a restart on, with the checkpoints of its routine."""
    checkpoints = max(0, math.ceil(work_hours / interval_hours - 1e-9) - 1)
    return conditions.restart_hours + work_hours + checkpoints * conditions.checkpoint_hours


def _play(work: float, interval: float, conditions: SpotConditions, chance: random.Random, deadline: float | None) -> PlayedRun:
    rate = conditions.interruptions_per_hour
    billed, wall, interruptions, restarting = 0.0, 0.0, 0, 0.0
    done = 0.0  # Work behind the last checkpoint.
    ahead = _segment(work, interval, conditions)  # Of the segment, what is not durable yet.
    struck_in = chance.expovariate(rate) if rate else math.inf
    while True:
        step = restarting + ahead
        left = on_demand_hours(work - done, interval, conditions)
        # The worst that can happen to the next step is an interruption at its very end.
        if deadline is not None and wall + step + left > deadline:
            return PlayedRun(billed, left, wall + left, interruptions)
        if struck_in >= step:
            struck_in -= step
            billed, wall, restarting = billed + step, wall + step, 0.0
            done = min(done + interval, work)
            if done >= work:
                return PlayedRun(billed, 0.0, wall, interruptions)
            ahead = _segment(work - done, interval, conditions)
            continue
        interruptions += 1
        if interruptions > _MOST_INTERRUPTIONS:
            return PlayedRun(math.inf, 0.0, math.inf, interruptions)
        if conditions.saved_share and chance.random() < conditions.saved_share:
            ahead -= max(0.0, struck_in - restarting)
        billed, wall, restarting = billed + struck_in, wall + struck_in, conditions.restart_hours
        if deadline is not None and wall + conditions.wait_hours + restarting + ahead + left > deadline:
            return PlayedRun(billed, left, wall + left, interruptions)
        wall += conditions.wait_hours
        struck_in = chance.expovariate(rate)


def _segment(work: float, interval: float, conditions: SpotConditions) -> float:
    """The next segment with its checkpoint; the last has none."""
    return work if work <= interval * (1 + 1e-9) else interval + conditions.checkpoint_hours


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
