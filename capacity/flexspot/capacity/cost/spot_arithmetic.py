"""Effects of interruptions on a run on Spot: expected billed hours, lost work, best checkpoint interval, and the risk of being late."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace
from decimal import Decimal

from flexspot.capacity.values.quantities import exact

_LARGEST_EXPONENT = 700.0
"""e to more than this is no float any more."""

_NEGLIGIBLE, _LARGE = 1e-12, 100.0
"""Bounds beyond which an expression equals its limit in floating point."""

HOPELESS = 1000
"""A run whose expected billed hours exceed this multiple of its work is reported as never ending."""


@dataclass(frozen=True)
class SpotConditions:
    """Conditions of a run on Spot. Durations are hours, rates are per hour.

    `interruptions_per_node_hour` is the rate of one node; `nodes` run as a gang, so that losing one interrupts all. `share_taken` is the
    share of the gang that an interruption takes (see gang_interruptions_per_hour); 0: nodes are lost one by one. `checkpoint_hours` is the
    pause for a checkpoint. `restart_hours` is the billed time of a new start (boot, image, restoring). `wait_hours` is the unbilled time
    without capacity after an interruption. `saved_share` is the share of interruptions before which the grace period suffices to save.
    Raises ValueError for impossible values.
    """

    interruptions_per_node_hour: float
    nodes: int = 1
    checkpoint_hours: float = 0.0
    restart_hours: float = 0.0
    wait_hours: float = 0.0
    saved_share: float = 0.0
    share_taken: float = 0.0

    def __post_init__(self) -> None:
        durations = (self.interruptions_per_node_hour, self.checkpoint_hours, self.restart_hours, self.wait_hours)
        if self.nodes < 1 or any(not (each >= 0 and math.isfinite(each)) for each in durations):
            raise ValueError(f"nodes must be 1 or more, rates and durations finite and not negative: {self}")
        if not 0 <= self.saved_share <= 1:
            raise ValueError(f"saved_share is {self.saved_share}; it is a share between 0 and 1")
        if not 0 <= self.share_taken <= 1:
            raise ValueError(f"share_taken is {self.share_taken}; it is a share between 0 and 1")

    @property
    def interruptions_per_hour(self) -> float:
        """Rate of interruptions of the whole gang."""
        return gang_interruptions_per_hour(self.interruptions_per_node_hour, self.nodes, self.share_taken)


@dataclass(frozen=True)
class SpotRun:
    """Expected values of a run, in hours except for `interruptions`.

    `billed_hours` = work + checkpoints + lost + restarts; `wall_hours` adds the waiting. `lost_hours` is all repeated work, including
    incomplete checkpoints. All are infinite for a run that will practically never end.
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
        """False for a run with so many interruptions that it will practically never end."""
        return math.isfinite(self.billed_hours)

    @property
    def overhead_share(self) -> float:
        """Billed hours beyond the work, as a share of the work."""
        return self.billed_hours / self.work_hours - 1


def _segment_hours(length_hours: float, conditions: SpotConditions) -> float:
    """Return the expected billed hours of a segment, from its start to its last durable moment."""
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
    """Return the expected values of a run with a checkpoint after every `interval_hours` of work, and none after the last.

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
    # Interruptions have the same rate in every billed hour, whatever is done in it.
    interruptions = rate * billed
    restart = interruptions * (-math.expm1(-rate * conditions.restart_hours) / rate) if rate else 0.0
    saving = checkpoints * conditions.checkpoint_hours
    waiting = interruptions * conditions.wait_hours
    lost = max(0.0, billed - work_hours - saving - restart)
    return SpotRun(work_hours, billed, billed + waiting, interruptions, saving, lost, restart, waiting)


_GOLDEN = (math.sqrt(5) - 1) / 2
_INTERVAL_STEPS = 120


def daly_interval_hours(checkpoint_hours: float, interruptions_per_hour: float) -> float:
    """Return Daly's higher-order interval, or the mean time between interruptions if a checkpoint takes at least twice that."""
    between = 1 / interruptions_per_hour
    if checkpoint_hours >= 2 * between:
        return between
    root = math.sqrt(checkpoint_hours / (2 * between))
    return math.sqrt(2 * checkpoint_hours * between) * (1 + root / 3 + root * root / 9) - checkpoint_hours


def best_interval_hours(work_hours: float, conditions: SpotConditions) -> float:
    """Return the interval with the fewest expected billed hours, up to the whole work at once, which means no checkpoint.

    It is Daly's interval if no interruption is saved by its warning. Otherwise it is searched, because each save makes checkpoints less
    needed.
    """
    rate = conditions.interruptions_per_hour
    if rate == 0 or conditions.saved_share == 1:
        return work_hours
    if conditions.checkpoint_hours == 0:
        # Free checkpoints pay at any rate. A minute is the shortest interval of a training loop.
        return min(work_hours, 1 / 60)
    interval = daly_interval_hours(conditions.checkpoint_hours, rate)
    if conditions.saved_share > 0:
        interval = _searched(interval, conditions)
    with_checkpoints = spot_run(work_hours, min(interval, work_hours), conditions).billed_hours
    without = spot_run(work_hours, work_hours, conditions).billed_hours
    return min(interval, work_hours) if with_checkpoints < without else work_hours


def _searched(start_hours: float, conditions: SpotConditions) -> float:
    """Return the interval with the least overhead of a long run, by golden section: the overhead has one minimum over the logarithm."""
    # With saves the best interval is never below that without.
    low, high = math.log(start_hours / 2), math.log(max(start_hours, 1 / conditions.interruptions_per_hour) * 1000)
    for _ in range(_INTERVAL_STEPS):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        if _cost_of(math.exp(left), conditions) <= _cost_of(math.exp(right), conditions):
            high = right
        else:
            low = left
    return math.exp((low + high) / 2)


def _cost_of(interval_hours: float, conditions: SpotConditions) -> float:
    """Return the billed hours per hour of work of a run that never ends: one segment with its checkpoint, over its work."""
    segment = replace(conditions, checkpoint_hours=0.0)
    length = interval_hours + conditions.checkpoint_hours
    return spot_run(length, length, segment).billed_hours / interval_hours


def best_spot_run(work_hours: float, conditions: SpotConditions) -> tuple[float, SpotRun]:
    """Return the best interval in hours, and the expected run with it."""
    interval = best_interval_hours(work_hours, conditions)
    return interval, spot_run(work_hours, interval, conditions)


_BREAK_EVEN_STEPS = 200
_MOST_INTERRUPTIONS_PER_HOUR = 3600.0
"""One each second: no machine would ever get to work."""


def usd_per_useful_hour(usd_per_hour: Decimal, run: SpotRun) -> Decimal | None:
    """Return the effective price: the cost of an hour of work including overhead. None for a run that never ends."""
    return usd_per_hour * exact(run.billed_hours) / exact(run.work_hours) if run.ends else None


def break_even_usd_per_hour(other_usd_per_hour: Decimal, run: SpotRun) -> Decimal:
    """Return the Spot price at which the run costs as much as without interruptions at the other price. 0 for a run that never ends."""
    return other_usd_per_hour * exact(run.work_hours) / exact(run.billed_hours) if run.ends else Decimal(0)


def break_even_interruptions_per_node_hour(
    work_hours: float, conditions: SpotConditions, spot_usd_per_hour: Decimal, other_usd_per_hour: Decimal
) -> float:
    """Return the rate of interruptions above which Spot, at its best interval, costs more than the other price without interruptions.

    0 if Spot is no cheaper to begin with.
    """
    if spot_usd_per_hour >= other_usd_per_hour:
        return 0.0

    def pays(rate: float) -> bool:
        _, run = best_spot_run(work_hours, replace(conditions, interruptions_per_node_hour=rate))
        effective = usd_per_useful_hour(spot_usd_per_hour, run)
        return effective is not None and effective <= other_usd_per_hour

    low, high = 0.0, _MOST_INTERRUPTIONS_PER_HOUR / gang_interruptions_per_hour(1, conditions.nodes, conditions.share_taken)
    if pays(high):
        return high
    for _ in range(_BREAK_EVEN_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if pays(middle) else (low, middle)
    return low


def value_of_an_hour_sooner(cheap_usd: Decimal, dear_usd: Decimal, later_hours: float) -> Decimal | None:
    """Return the value of an hour above which the dear way is better, as it ends `later_hours` sooner. None if it ends no sooner."""
    return (dear_usd - cheap_usd) / exact(later_hours) if later_hours > 0 else None


_SEED = 20261121

_MOST_INTERRUPTIONS = 100_000
"""A run with this many interruptions counts as one that never ends."""


@dataclass(frozen=True)
class PlayedRun:
    """One simulated run, in hours. `on_demand_hours` are those after a change to on-demand, 0 without one."""

    spot_hours: float
    on_demand_hours: float
    wall_hours: float
    interruptions: int


def played_runs(
    work_hours: float, interval_hours: float, conditions: SpotConditions, *, runs: int, deadline_hours: float | None = None
) -> list[PlayedRun]:
    """Return simulated runs, the same every time.

    With `deadline_hours` a run changes to on-demand at the last moment from which on-demand is sure to end in time. It knows nothing else
    in advance.
    """
    chance = random.Random(_SEED)  # noqa: S311 -- a simulation must be repeatable, not secret
    return [_play(work_hours, interval_hours, conditions, chance, deadline_hours) for _ in range(runs)]


def on_demand_hours(work_hours: float, interval_hours: float, conditions: SpotConditions) -> float:
    """Return the hours of the rest of a run on capacity that stays, from a restart on, with its usual checkpoints."""
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
    """Return the next segment with its checkpoint; the last has none."""
    return work if work <= interval * (1 + 1e-9) else interval + conditions.checkpoint_hours


_RUNS = 2000
"""Enough runs for a risk within about two percentage points, 19 times in 20."""
_SEGMENTS = 500_000
"""Most segments that one estimate may simulate: fewer runs if a run has very many segments."""


def late_share(work_hours: float, interval_hours: float, conditions: SpotConditions, deadline_hours: float) -> float:
    """Return the share of runs that end after the deadline on Spot, of up to 2,000 simulated ones; the same every time."""
    expected = spot_run(work_hours, interval_hours, conditions)
    if not expected.ends:
        return 1.0
    count = runs_worth_playing(expected, interval_hours, _RUNS)
    runs = played_runs(work_hours, interval_hours, conditions, runs=count)
    return sum(run.wall_hours > deadline_hours for run in runs) / len(runs)


def runs_worth_playing(expected: SpotRun, interval_hours: float, most: int) -> int:
    """Return the number of runs to simulate, for an estimate that takes about a second, and at least a few."""
    events = expected.billed_hours / min(interval_hours, expected.work_hours) + expected.interruptions
    return max(20, min(most, int(_SEGMENTS / events)))


def late_share_at_most(work_hours: float, interval_hours: float, conditions: SpotConditions, deadline_hours: float) -> float:
    """Return a closed-form upper bound on the share of late runs.

    An interruption costs at most a segment, a restart and a wait. So a run survives k interruptions if k such losses fit between the
    undisturbed run and the deadline. A late run had more than k within the billed time that this takes.
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
    """Return the probability of more than `count` events if `mean` are expected."""
    if mean == 0:
        return 0.0
    logarithms = [each * math.log(mean) - mean - math.lgamma(each + 1) for each in range(count + 1)]
    return min(1.0, max(0.0, 1.0 - math.fsum(math.exp(each) for each in logarithms)))


_ONE_BY_ONE = 1e-12
"""Below it a share is 0, as far as floats can tell."""


def gang_interruptions_per_hour(node_interruptions_per_hour: float, nodes: int, share_taken: float) -> float:
    """Return how often a gang of `nodes` that are needed at once is interrupted.

    `share_taken` is that of the model, from 0 (one by one) to 1 (always together).

    The binomial failure rate model of common-cause failures (W. E. Vesely, "Estimating Common Cause Failure Probabilities in Reliability
    and Risk Analyses", 1977; C. L. Atwood, "The Binomial Failure Rate Common Cause Model", Technometrics 28, 1986), without its independent
    part: the cloud takes capacity back in strikes, and each strike takes each node with the chance `share_taken`. A node that is
    interrupted `r` times an hour then sees `r / share_taken` strikes, and a gang of `n` nodes meets those that take any of its nodes:

        r / share_taken * (1 - (1 - share_taken) ** n)

    With a share near 0 that is `n * r`, nodes that are lost one by one; with 1 it is `r`, nodes that are always lost together. A gang of
    any size meets `r / share_taken` at most.
    """
    if share_taken < _ONE_BY_ONE:
        return node_interruptions_per_hour * nodes
    met = 1.0 if share_taken == 1 else -math.expm1(nodes * math.log1p(-share_taken))
    return node_interruptions_per_hour * met / share_taken
