"""When the next checkpoint is due, by a clock that tests may set."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class History:
    """Carried in every marker. What ran after the last marker of a start is not in it, so the rate comes out a little high."""

    starts: int = 1
    running_seconds: float = 0.0

    @property
    def interruptions(self) -> int:
        """Every start but the first followed one."""
        return self.starts - 1

    def started_again(self) -> History:
        """At a resumption."""
        return replace(self, starts=self.starts + 1)

    def ran(self, seconds: float) -> History:
        """After having run so long since the start."""
        return replace(self, running_seconds=self.running_seconds + seconds)


_HOUR_SECONDS = 3600.0


def young_seconds(checkpoint_seconds: float, seconds_between_interruptions: float) -> float:
    """J. W. Young's first-order optimum: the square root of twice the product. Good while a checkpoint is short beside the time between."""
    return math.sqrt(2.0 * checkpoint_seconds * seconds_between_interruptions)


def daly_seconds(checkpoint_seconds: float, seconds_between_interruptions: float) -> float:
    """J. T. Daly's higher-order estimate of the training time between two checkpoints that wastes least.

    Future Generation Computer Systems 22 (2006), equation 37: interruptions come at random at a constant rate, and also during checkpoints.
    Where a checkpoint takes twice as long as the machine lives there is no good interval, and it is that life.
    """
    ratio = checkpoint_seconds / (2.0 * seconds_between_interruptions)
    if ratio >= 1.0:
        return seconds_between_interruptions
    correction = 1.0 + math.sqrt(ratio) / 3.0 + ratio / 9.0
    return young_seconds(checkpoint_seconds, seconds_between_interruptions) * correction - checkpoint_seconds


@dataclass(frozen=True)
class InterruptionRate:
    """What is believed of the rate before anything was seen, and how firmly: as if `per_hour` had been seen for `weight_hours`.

    The mean of a gamma distribution that is updated by what happens, so a first lucky day changes little and a bad one is believed soon.
    The default, once in 4 hours, is the course's "average for GPU Spot on AWS", within the 0.00 to 1.39 an hour of public records, and the
    figure that `flexspot advise` assumes. It errs towards saving too often, which is the cheaper error: with a checkpoint of a minute,
    assuming 0.25 where 0.05 is true wastes 5.5 % instead of 4.1 %, and the other way round 12.2 % instead of 9.1 %.
    """

    per_hour: float = 0.25
    weight_hours: float = 10.0

    def __post_init__(self) -> None:
        if not (self.per_hour > 0 and self.weight_hours > 0):
            raise ValueError(f"per_hour is {self.per_hour} and weight_hours {self.weight_hours}; both must be above 0")

    def seconds_between(self, history: History) -> float:
        """The mean time between two interruptions, in seconds, after what has happened."""
        seen_hours = self.weight_hours + history.running_seconds / _HOUR_SECONDS
        return _HOUR_SECONDS * seen_hours / (self.per_hour * self.weight_hours + history.interruptions)


class Interval(Protocol):
    """How long to train from one checkpoint to the next."""

    def seconds(self, checkpoint_seconds: float | None, history: History) -> float:
        """Asked again after every checkpoint. `checkpoint_seconds` is the cost of one; None before the first."""
        ...


@dataclass(frozen=True)
class EverySeconds:
    """The same for all of the run."""

    interval_seconds: float

    def __post_init__(self) -> None:
        if not self.interval_seconds > 0:
            raise ValueError(f"interval_seconds is {self.interval_seconds}; it must be above 0")

    def seconds(self, checkpoint_seconds: float | None, history: History) -> float:
        """See Interval."""
        del checkpoint_seconds, history
        return self.interval_seconds


@dataclass(frozen=True)
class LeastWaste:
    """Daly's interval for the cost and the rate as they are known by now, within limits that a person chose."""

    rate: InterruptionRate = InterruptionRate()
    least_seconds: float = 30.0
    most_seconds: float = 1800.0
    """No more than this is ever lost, whatever the formula says: the rate is an estimate."""

    assumed_checkpoint_seconds: float = 10.0
    """What a checkpoint is taken to cost before one was made."""

    def __post_init__(self) -> None:
        if not 0 < self.least_seconds <= self.most_seconds:
            raise ValueError(f"least_seconds is {self.least_seconds} and most_seconds {self.most_seconds}; 0 < least <= most is needed")

    def seconds(self, checkpoint_seconds: float | None, history: History) -> float:
        """See Interval."""
        cost = self.assumed_checkpoint_seconds if checkpoint_seconds is None else checkpoint_seconds
        return min(max(daly_seconds(cost, self.rate.seconds_between(history)), self.least_seconds), self.most_seconds)


class Clock(Protocol):
    """What the library asks a clock. Ages and intervals are of `monotonic` alone: `wall` may jump and is only ever shown to people."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary start; never less than before."""
        ...

    def wall(self) -> float:
        """Seconds since 1970 as the machine believes them."""
        ...

    def sleep(self, seconds: float) -> None:
        """Waits."""
        ...


class SystemClock:
    """The machine's clocks."""

    def monotonic(self) -> float:
        """See Clock."""
        return time.monotonic()

    def wall(self) -> float:
        """See Clock."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """See Clock."""
        time.sleep(seconds)


SYSTEM_CLOCK = SystemClock()


_FIRST_RETRY_SECONDS = 15.0
_NEWEST_WEIGHT = 0.5
"""Of the newest cost in the mean: a checkpoint that grows is noticed at once, one slow write does not change all."""


class Schedule(Protocol):
    """Asked once after every step; told of every save. Times are of a clock's `monotonic`."""

    @property
    def interval_seconds(self) -> float | None:
        """The training time from one checkpoint to the next as of now; None when it is not counted in time."""
        ...

    @property
    def checkpoint_seconds(self) -> float | None:
        """What a checkpoint is expected to cost; None before the first."""
        ...

    def begin(self, step: int, now: float, history: Callable[[], History]) -> None:
        """Training continues from this step."""
        ...

    def due(self, step: int, now: float) -> bool:
        """Whether to save now that so many steps are done."""
        ...

    def steps_to_due(self, step: int) -> int | None:
        """In how many steps from here a save is due, where that is certain; None where it goes by time."""
        ...

    def saved(self, step: int, now: float, cost_seconds: float) -> None:
        """A checkpoint was made, or handed to the background, and training goes on now. `cost_seconds`: so long it stood still."""
        ...

    def failed(self, now: float) -> None:
        """One could not be made."""
        ...


class CostMeter:
    """The running mean of what checkpoints cost."""

    def __init__(self) -> None:
        self.seconds: float | None = None

    def add(self, cost_seconds: float) -> None:
        """One more."""
        self.seconds = cost_seconds if self.seconds is None else self.seconds + _NEWEST_WEIGHT * (cost_seconds - self.seconds)


class EverySteps:
    """At every multiple of a number of steps, also after a failed save. Raises ValueError for less than 1."""

    def __init__(self, steps: int) -> None:
        if steps < 1:
            raise ValueError(f"steps is {steps}; it must be at least 1")
        self.steps = steps
        self._saved_step = 0
        self._cost = CostMeter()

    @property
    def interval_seconds(self) -> float | None:
        """See Schedule."""
        return None

    @property
    def checkpoint_seconds(self) -> float | None:
        """See Schedule."""
        return self._cost.seconds

    def begin(self, step: int, now: float, history: Callable[[], History]) -> None:
        """See Schedule."""
        del now, history
        self._saved_step = step

    def due(self, step: int, now: float) -> bool:
        """See Schedule."""
        del now
        return step > self._saved_step and step % self.steps == 0

    def steps_to_due(self, step: int) -> int | None:
        """See Schedule."""
        return self.steps - step % self.steps

    def saved(self, step: int, now: float, cost_seconds: float) -> None:
        """See Schedule."""
        del now
        self._saved_step = step
        self._cost.add(cost_seconds)

    def failed(self, now: float) -> None:
        """See Schedule."""


class Timed:
    """After an interval of training, estimated anew at every save.

    The step to come is counted in advance, as if it took as long as the last one, so that work never waits longer than the interval for its
    checkpoint unless a single step takes longer. After a failed save the next try comes sooner, then at doubling distances.
    """

    def __init__(self, interval: Interval | None = None) -> None:
        self.interval = interval or LeastWaste()
        self._cost = CostMeter()
        self._history: Callable[[], History] = History
        self._interval_seconds = math.inf
        self._due_at = math.inf
        self._asked_at = 0.0
        self._retry_seconds = _FIRST_RETRY_SECONDS

    @property
    def interval_seconds(self) -> float | None:
        """See Schedule."""
        return self._interval_seconds

    @property
    def checkpoint_seconds(self) -> float | None:
        """See Schedule."""
        return self._cost.seconds

    def begin(self, step: int, now: float, history: Callable[[], History]) -> None:
        """See Schedule."""
        del step
        self._history = history
        self._wait_anew(now)

    def due(self, step: int, now: float) -> bool:
        """See Schedule."""
        del step
        step_seconds, self._asked_at = now - self._asked_at, now
        return now + step_seconds > self._due_at

    def steps_to_due(self, step: int) -> int | None:
        """See Schedule."""
        del step

    def saved(self, step: int, now: float, cost_seconds: float) -> None:
        """See Schedule."""
        del step
        self._cost.add(cost_seconds)
        self._retry_seconds = _FIRST_RETRY_SECONDS
        self._wait_anew(now)

    def failed(self, now: float) -> None:
        """See Schedule."""
        self._asked_at = now
        self._due_at = now + min(self._retry_seconds, self._interval_seconds)
        self._retry_seconds *= 2

    def _wait_anew(self, now: float) -> None:
        self._interval_seconds = self.interval.seconds(self._cost.seconds, self._history())
        self._due_at = now + self._interval_seconds
        self._asked_at = now
