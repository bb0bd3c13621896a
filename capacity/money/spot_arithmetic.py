"""What interruptions make of a run on Spot: expected billed hours, lost work, waiting, and the price of a useful hour.

The model: interruptions strike while nodes are billed, at random and independently of the past (exponential gaps). Work is done in segments
of `interval` hours, each followed by a checkpoint; an interruption throws the run back to the last durable state, after an unbilled wait
for new capacity and a billed restart, which can itself be interrupted. A share of the interruptions leaves time to save in the grace
period; those lose nothing. Without such saves this is the complete model of J. T. Daly, "A higher order estimate of the optimum checkpoint
interval for restart dumps", Future Generation Computer Systems 22 (2006), 303-312.

With the share p of saved interruptions, the expected time f(x) to do the last x hours of a segment obeys
f'(x) = e^(rR) / (p + (1 - p) e^(-rx)), which integrates to e^(rR) / (r p) * ln(1 + p (e^(rx) - 1)); p = 0 gives Daly's formula, p = 1 gives
x e^(rR). `spot_simulation` plays the same rules and must agree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_LARGEST_EXPONENT = 700.0
"""e to more than this is no float any more."""

_NEGLIGIBLE, _LARGE = 1e-12, 100.0
"""Below the one and above the other an expression is its limit, as far as floats can tell."""

HOPELESS = 1000
"""A run that is expected to be billed for so many times its work is told as one that never ends."""


@dataclass(frozen=True)
class SpotConditions:
    """What a run on Spot meets. Durations are hours, rates are per hour.

    `interruptions_per_node_hour` is of one node; `nodes` run as a gang, so that losing one interrupts all. `checkpoint_hours` is how long
    the work stands still for one checkpoint, `restart_hours` what a new start takes while it is billed (boot, image, restoring),
    `wait_hours` how long there is no capacity after an interruption, unbilled. `saved_share` is the share of interruptions before which the
    grace period suffices to save. Raises ValueError for what cannot be.
    """

    interruptions_per_node_hour: float
    nodes: int = 1
    checkpoint_hours: float = 0.0
    restart_hours: float = 0.0
    wait_hours: float = 0.0
    saved_share: float = 0.0

    def __post_init__(self) -> None:
        durations = (self.interruptions_per_node_hour, self.checkpoint_hours, self.restart_hours, self.wait_hours)
        if self.nodes < 1 or any(not (each >= 0 and math.isfinite(each)) for each in durations):
            raise ValueError(f"nodes must be 1 or more, rates and durations finite and not negative: {self}")
        if not 0 <= self.saved_share <= 1:
            raise ValueError(f"saved_share is {self.saved_share}; it is a share between 0 and 1")

    @property
    def interruptions_per_hour(self) -> float:
        """Of the whole gang."""
        return self.interruptions_per_node_hour * self.nodes


@dataclass(frozen=True)
class SpotRun:
    """What is to be expected of a run; all in hours but `interruptions`.

    `billed_hours` = work + checkpoints + lost + restarts; `wall_hours` adds the waiting. `lost_hours` is everything that was done twice,
    checkpoints that did not complete included. All are infinite for a run that will practically never end.
    """

    work_hours: float
    billed_hours: float
    wall_hours: float
    interruptions: float
    checkpoint_hours: float
    lost_hours: float
    restart_hours: float
    wait_hours: float

    @property
    def ends(self) -> bool:
        """False for a run that is interrupted so often that it will practically never end."""
        return math.isfinite(self.billed_hours)

    @property
    def overhead_share(self) -> float:
        """Billed hours beyond the work, as a share of the work."""
        return self.billed_hours / self.work_hours - 1


def _segment_hours(length_hours: float, conditions: SpotConditions) -> float:
    """Expected billed hours to get through a segment, from its begin to its last durable moment."""
    rate, saved = conditions.interruptions_per_hour, conditions.saved_share
    exponent, restart_exponent = rate * length_hours, rate * conditions.restart_hours
    if max(restart_exponent, 0.0 if saved > _NEGLIGIBLE else exponent) > _LARGEST_EXPONENT:
        return math.inf
    restarts = math.exp(restart_exponent)
    if exponent < _NEGLIGIBLE:
        return restarts * length_hours
    if saved <= _NEGLIGIBLE:
        return restarts * math.expm1(exponent) / rate
    # ln(1 + p (e^x - 1)), which for large x is x + ln p to the last digit of a float.
    logarithm = exponent + math.log(saved) if exponent > _LARGE else math.log1p(saved * math.expm1(exponent))
    return restarts * logarithm / (rate * saved)


def spot_run(work_hours: float, interval_hours: float, conditions: SpotConditions) -> SpotRun:
    """What a run of `work_hours` comes to with a checkpoint after every `interval_hours` of work, and none after the last.

    An interval as long as the work is a run without checkpoints. Raises ValueError unless both are above 0.
    """
    if not (work_hours > 0 and interval_hours > 0):
        raise ValueError(f"work_hours {work_hours} and interval_hours {interval_hours} must be above 0")
    checkpoints = max(0, math.ceil(work_hours / interval_hours - 1e-9) - 1)
    last = work_hours - checkpoints * interval_hours
    billed = _segment_hours(last, conditions)
    if checkpoints:
        billed += checkpoints * _segment_hours(interval_hours + conditions.checkpoint_hours, conditions)
    if billed > HOPELESS * work_hours:
        return SpotRun(work_hours, math.inf, math.inf, math.inf, math.inf, math.inf, math.inf, math.inf)
    rate = conditions.interruptions_per_hour
    # Each billed hour is struck at the same rate, whatever is done in it.
    interruptions = rate * billed
    restart = interruptions * (-math.expm1(-rate * conditions.restart_hours) / rate) if rate else 0.0
    saving = checkpoints * conditions.checkpoint_hours
    waiting = interruptions * conditions.wait_hours
    lost = max(0.0, billed - work_hours - saving - restart)
    return SpotRun(work_hours, billed, billed + waiting, interruptions, saving, lost, restart, waiting)


def lost_hours_an_interruption(interval_hours: float, interruptions_per_hour: float) -> float:
    """How much work an interruption within an interval loses on average: a little under half of it, as early ones are likelier."""
    exponent = interval_hours * interruptions_per_hour
    if exponent < 1e-6:  # noqa: PLR2004 -- below it the difference of the two terms is rounding alone, and the limit is exact enough
        return interval_hours / 2
    return 1 / interruptions_per_hour - interval_hours / math.expm1(exponent)
