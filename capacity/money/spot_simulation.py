"""Plays runs on Spot with random interruptions: the check of the closed forms, and the chance to be late, which has none."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capacity.money.spot_arithmetic import SpotConditions

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
