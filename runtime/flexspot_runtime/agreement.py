"""When ranks ask each other what to do: at the same steps, and not at every one."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flexspot_runtime.group import Group
    from flexspot_runtime.schedule import Clock


class Action(IntEnum):
    """What to do between two steps. The largest that any rank wants is what all do."""

    GO_ON = 0
    SAVE = 1
    STOP = 2


_MOST_STEPS = (1 << 16) - 1
"""Two numbers travel as one: an action, and below it so many steps, counted down so that the fewest win."""


class Agreement:
    """Asks all ranks once in `every_seconds` at most, in one collective operation that also says after how many steps to ask again.

    Asking after every step would cost a collective and, on a GPU, a wait of the host for it, each time. The ranks' clocks differ, so what
    they agree on is a number of steps: what fits into the time by the slowest step since they last asked, and at most twice as many as the
    last time. A rank that gets a warning tells the others so much later, at most, as long as steps take what they took.

    One process alone asks itself after every step.
    """

    def __init__(self, group: Group, clock: Clock, every_seconds: float) -> None:
        if every_seconds < 0:
            raise ValueError(f"agree_seconds is {every_seconds}; it is at most so long between two agreements of all ranks, at least 0")
        self._group = group
        self._clock = clock
        self._every_seconds = every_seconds
        self._next_step = 0
        self._steps = 1
        self._slowest_seconds = 0.0
        self._last_step_at: float | None = None

    def action(self, done: int, wanted: Action, steps_to_due: int | None) -> Action:
        """What all ranks do now that so many steps are done. `steps_to_due`: how many further steps a schedule allows without a save."""
        if self._group.world_size == 1:
            return wanted
        now = self._clock.monotonic()
        if self._last_step_at is not None:
            self._slowest_seconds = max(self._slowest_seconds, now - self._last_step_at)
        self._last_step_at = now
        if done < self._next_step:
            return Action.GO_ON
        steps = min(self._fitting(), _MOST_STEPS, steps_to_due or _MOST_STEPS)
        agreed = self._group.agree((wanted << _MOST_STEPS.bit_length()) + _MOST_STEPS - steps)
        action, steps = Action(agreed >> _MOST_STEPS.bit_length()), _MOST_STEPS - (agreed & _MOST_STEPS)
        self._steps, self._slowest_seconds = steps, 0.0
        # After a save all ask again before the next step: a warning may have come meanwhile.
        self._next_step = done + steps if action is Action.GO_ON else done
        # The time that ranks wait for each other, or save, is none of a step.
        self._last_step_at = self._clock.monotonic() if action is Action.GO_ON else None
        return action

    def _fitting(self) -> int:
        if not self._slowest_seconds:
            return 1
        return max(1, min(int(self._every_seconds / self._slowest_seconds), 2 * self._steps))
