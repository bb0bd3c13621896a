"""When the next checkpoint is due, by a clock that tests may set."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Protocol

from flexspot_runtime.interval import History, Interval, LeastWaste

if TYPE_CHECKING:
    from collections.abc import Callable


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
