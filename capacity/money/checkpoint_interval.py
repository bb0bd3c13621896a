"""How often to checkpoint on Spot.

`flexspot_runtime` has the same published formula once more, because what runs in a user's container may import nothing of this.
Young: J. W. Young, "A first order approximation to the optimum checkpoint interval", Communications of the ACM 17 (1974), 530-531.
Daly: J. T. Daly, Future Generation Computer Systems 22 (2006), 303-312, equation 37.
"""

from __future__ import annotations

import math
from dataclasses import replace

from capacity.money.spot_arithmetic import SpotConditions, SpotRun, spot_run

_GOLDEN = (math.sqrt(5) - 1) / 2
_STEPS = 120


def young_interval_hours(checkpoint_hours: float, interruptions_per_hour: float) -> float:
    """Young's interval of work between checkpoints: the root of two checkpoint times by the mean time between interruptions."""
    return math.sqrt(2 * checkpoint_hours / interruptions_per_hour)


def daly_interval_hours(checkpoint_hours: float, interruptions_per_hour: float) -> float:
    """Daly's higher-order interval; the mean time between interruptions itself where a checkpoint takes twice that or more."""
    between = 1 / interruptions_per_hour
    if checkpoint_hours >= 2 * between:
        return between
    root = math.sqrt(checkpoint_hours / (2 * between))
    return math.sqrt(2 * checkpoint_hours * between) * (1 + root / 3 + root * root / 9) - checkpoint_hours


def best_interval_hours(work_hours: float, conditions: SpotConditions) -> float:
    """The interval with the fewest expected billed hours, up to the whole work at once, which is no checkpoint at all.

    Daly's interval where no interruption is saved by its warning; searched otherwise, because each save makes checkpoints less needed.
    """
    rate = conditions.interruptions_per_hour
    if rate == 0 or conditions.saved_share == 1:
        return work_hours
    if conditions.checkpoint_hours == 0:
        # Free checkpoints pay at any rate; a minute is as often as a training loop can.
        return min(work_hours, 1 / 60)
    interval = daly_interval_hours(conditions.checkpoint_hours, rate)
    if conditions.saved_share > 0:
        interval = _searched(interval, conditions)
    with_checkpoints = spot_run(work_hours, min(interval, work_hours), conditions).billed_hours
    without = spot_run(work_hours, work_hours, conditions).billed_hours
    return min(interval, work_hours) if with_checkpoints < without else work_hours


def _searched(start_hours: float, conditions: SpotConditions) -> float:
    """The interval with the least overhead of a long run, by golden section: that overhead has one valley in the interval's logarithm."""
    # With saves the best interval is never below that without.
    low, high = math.log(start_hours / 2), math.log(max(start_hours, 1 / conditions.interruptions_per_hour) * 1000)
    for _ in range(_STEPS):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        if _cost_of(math.exp(left), conditions) <= _cost_of(math.exp(right), conditions):
            high = right
        else:
            low = left
    return math.exp((low + high) / 2)


def _cost_of(interval_hours: float, conditions: SpotConditions) -> float:
    """Billed hours for an hour of work of a run that never ends: one segment with its checkpoint, over its work."""
    segment = replace(conditions, checkpoint_hours=0.0)
    length = interval_hours + conditions.checkpoint_hours
    return spot_run(length, length, segment).billed_hours / interval_hours


def best_spot_run(work_hours: float, conditions: SpotConditions) -> tuple[float, SpotRun]:
    """The best interval in hours, and what the run comes to with it."""
    interval = best_interval_hours(work_hours, conditions)
    return interval, spot_run(work_hours, interval, conditions)
