"""When the next checkpoint is due. Tests may set the clock."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class History:
    """Starts and running time of a program, saved in every marker.

    Time that ran after the last marker of a start is missing, so the interruption rate is slightly overestimated.
    """

    starts: int = 1
    running_seconds: float = 0.0

    @property
    def interruptions(self) -> int:
        """Number of interruptions: one before every start but the first."""
        return self.starts - 1

    def started_again(self) -> History:
        """Return the history after another start."""
        return replace(self, starts=self.starts + 1)

    def ran(self, seconds: float) -> History:
        """Return the history with `seconds` of running time added."""
        return replace(self, running_seconds=self.running_seconds + seconds)


_HOUR_SECONDS = 3600.0


def young_seconds(checkpoint_seconds: float, seconds_between_interruptions: float) -> float:
    """Return J. W. Young's first-order optimum, good while a checkpoint is short compared to the time between interruptions.

    It is the square root of twice the product.
    """
    return math.sqrt(2.0 * checkpoint_seconds * seconds_between_interruptions)


def daly_seconds(checkpoint_seconds: float, seconds_between_interruptions: float) -> float:
    """Return J. T. Daly's higher-order estimate of the training time between two checkpoints that wastes least.

    Future Generation Computer Systems 22 (2006), equation 37: interruptions come at random at a constant rate, and also during checkpoints.
    If a checkpoint takes at least twice as long as the time between interruptions, no interval is good, and that time is returned.
    """
    ratio = checkpoint_seconds / (2.0 * seconds_between_interruptions)
    if ratio >= 1.0:
        return seconds_between_interruptions
    correction = 1.0 + math.sqrt(ratio) / 3.0 + ratio / 9.0
    return young_seconds(checkpoint_seconds, seconds_between_interruptions) * correction - checkpoint_seconds


@dataclass(frozen=True)
class InterruptionRate:
    """The assumed rate of interruptions, updated by those observed: the mean of a gamma distribution.

    A lucky first day changes little, and a bad one has effect soon.

    The default, once in 4 hours, is the course's "average for GPU Spot on AWS". It is within the 0.00 to 1.39 per hour of public records,
    and `flexspot advise` assumes it, too. It errs towards saving too often, which is the cheaper error. With a checkpoint of a minute,
    assuming 0.25 where 0.05 is true wastes 5.5 % instead of 4.1 %, and the other way round 12.2 % instead of 9.1 %.
    """

    per_hour: float = 0.25
    weight_hours: float = 10.0
    """Weight of `per_hour` against observations, as if it had been observed for this many hours."""

    def __post_init__(self) -> None:
        if not (self.per_hour > 0 and self.weight_hours > 0):
            raise ValueError(f"per_hour is {self.per_hour} and weight_hours {self.weight_hours}; both must be above 0")

    def seconds_between(self, history: History) -> float:
        """Return the mean seconds between two interruptions, given the observed history."""
        seen_hours = self.weight_hours + history.running_seconds / _HOUR_SECONDS
        return _HOUR_SECONDS * seen_hours / (self.per_hour * self.weight_hours + history.interruptions)


class Interval(Protocol):
    """Training time from one checkpoint to the next."""

    def seconds(self, checkpoint_seconds: float | None, history: History) -> float:
        """Return the interval; called after every checkpoint. `checkpoint_seconds` is the duration of one, or None before the first."""
        ...


@dataclass(frozen=True)
class EverySeconds:
    """A constant interval."""

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
    """Daly's interval for the latest estimates of checkpoint duration and interruption rate, within limits that the user sets."""

    rate: InterruptionRate = InterruptionRate()
    least_seconds: float = 30.0
    most_seconds: float = 1800.0
    """Upper limit of the lost work, whatever the formula returns: the rate is an estimate."""

    assumed_checkpoint_seconds: float = 10.0
    """Duration of a checkpoint, until the first was saved."""

    def __post_init__(self) -> None:
        if not 0 < self.least_seconds <= self.most_seconds:
            raise ValueError(f"least_seconds is {self.least_seconds} and most_seconds {self.most_seconds}; 0 < least <= most is needed")

    def seconds(self, checkpoint_seconds: float | None, history: History) -> float:
        """See Interval."""
        cost = self.assumed_checkpoint_seconds if checkpoint_seconds is None else checkpoint_seconds
        return min(max(daly_seconds(cost, self.rate.seconds_between(history)), self.least_seconds), self.most_seconds)


class Clock(Protocol):
    """Clock methods that the library uses. Ages and intervals use `monotonic` only: `wall` may jump and is only shown to people."""

    def monotonic(self) -> float:
        """Return the seconds since an arbitrary start. Never decreases."""
        ...

    def wall(self) -> float:
        """Return the seconds since 1970 by the machine's clock."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait for this many seconds."""
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
"""Weight of the newest duration in the mean. A growing checkpoint has effect at once, and one slow write does not change everything."""


class Schedule(Protocol):
    """Decides after every step whether to save, and is notified of every save. Times are a clock's `monotonic`."""

    @property
    def interval_seconds(self) -> float | None:
        """Current training time from one checkpoint to the next; None for a schedule that counts steps."""
        ...

    @property
    def checkpoint_seconds(self) -> float | None:
        """Expected duration of a checkpoint; None before the first."""
        ...

    def begin(self, step: int, now: float, history: Callable[[], History]) -> None:
        """Start or continue training at this step."""
        ...

    def due(self, step: int, now: float) -> bool:
        """Return whether to save now, after `step` steps."""
        ...

    def steps_to_due(self, step: int) -> int | None:
        """Return the number of steps until a save is due, or None if that depends on time."""
        ...

    def saved(self, step: int, now: float, cost_seconds: float) -> None:
        """Note that a checkpoint was saved, or handed to the background. `cost_seconds`: time during which training was paused."""
        ...

    def failed(self, now: float) -> None:
        """Note that a save failed."""
        ...


class CostMeter:
    """Running mean of checkpoint durations."""

    def __init__(self) -> None:
        self.seconds: float | None = None

    def add(self, cost_seconds: float) -> None:
        """Add a duration."""
        self.seconds = cost_seconds if self.seconds is None else self.seconds + _NEWEST_WEIGHT * (cost_seconds - self.seconds)


class EverySteps:
    """Saves at every multiple of a number of steps, also after a failed save. Raises ValueError for less than 1."""

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
    """Saves after an interval of training, estimated again at every save.

    The next step is expected to take as long as the last one. So work never waits longer than the interval for its checkpoint, unless a
    single step takes longer. After a failed save the next attempt comes sooner, then at doubling intervals.
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
