"""The processes that train together: how they agree, how often they do, and how they wait for each other through the storage."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, TypeVar

from flexspot_runtime.marker import Marker, Shard, TornRecordError
from flexspot_runtime.names import failure_name, marker_name, shard_name
from flexspot_runtime.storage import is_there, read_whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexspot_runtime.schedule import Clock
    from flexspot_runtime.storage import Storage


@dataclass(frozen=True)
class Group:
    """The processes that train together. By default one process.

    Processes that train together save at the same step and resume from the same checkpoint, so they must agree on both. Trainers have the
    means: with torch.distributed `largest` is an all_reduce with MAX of a one-element tensor, and `broadcast` is broadcast_object_list from
    rank 0. All ranks call `largest` once after every step.

    Raises ValueError for a rank outside the group, and for several ranks without both functions.
    """

    rank: int = 0
    world_size: int = 1
    largest: Callable[[int], int] | None = None
    """Takes this rank's number and returns the largest of all ranks. Default, for one process: the number itself."""

    broadcast: Callable[[str], str] | None = None
    """Takes any text and returns rank 0's. Default, for one process: the text itself."""

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.world_size:
            raise ValueError(f"rank {self.rank} is outside of a group of {self.world_size}: ranks go from 0 to {self.world_size - 1}")
        if self.world_size > 1 and not (self.largest and self.broadcast):
            raise ValueError(
                f"a group of {self.world_size} processes must agree on when to save and what to resume from: give `largest` (an all-reduce "
                "of the maximum) and `broadcast` (from rank 0), both of which your trainer's library has"
            )

    def agree(self, wanted: int) -> int:
        """Return the largest number that any rank wants."""
        return self.largest(wanted) if self.largest else wanted

    def text_of_rank_0(self, text: str) -> str:
        """Return rank 0's text."""
        return self.broadcast(text) if self.broadcast else text


ALONE = Group()


_FIRST_PAUSE_SECONDS = 0.01
_LONGEST_PAUSE_SECONDS = 1.0
"""Each poll costs a request to a bucket."""

T = TypeVar("T")


class CheckpointFailedError(OSError):
    """A save that does not count. Earlier checkpoints are untouched."""


@dataclass(frozen=True)
class Barrier:
    """Barrier of one save."""

    storage: Storage
    group: str
    world_size: int
    clock: Clock
    deadline: Callable[[], float]
    """When the process is killed. Called again at every poll, because a warning may come during the wait."""

    def shards(self) -> tuple[Shard, ...]:
        """Return all ranks' shards, in order, once they exist. Raises CheckpointFailedError."""
        return tuple(
            self._wait(shard_name(self.group, rank), Shard.decode, [failure_name(self.group, rank)], f"rank {rank}")
            for rank in range(self.world_size)
        )

    def marker(self) -> Marker:
        """Return the marker, once rank 0 has written it. Raises CheckpointFailedError."""
        name = marker_name(self.group)
        failures = [failure_name(self.group, rank) for rank in range(self.world_size)]
        return self._wait(name, lambda record: Marker.decode(name, record), failures, "rank 0's marker")

    def _wait(self, name: str, decode: Callable[[bytes], T], failures: list[str], what: str) -> T:
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                return decode(read_whole(self.storage, name))
            except (FileNotFoundError, TornRecordError):
                # Torn: in a plain folder a record is visible while it is being written.
                pass
            for failure in failures:
                if is_there(self.storage, failure):
                    raise CheckpointFailedError(
                        f"checkpoint {self.group} is incomplete and is not used: a rank could not write its part (see {failure})"
                    )
            if self.clock.monotonic() + pause > self.deadline():
                raise CheckpointFailedError(f"checkpoint {self.group} is incomplete and is not used: {what} was not there in time")
            self.clock.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


class Action(IntEnum):
    """Action between two steps. All ranks take the largest that any of them requests."""

    GO_ON = 0
    SAVE = 1
    STOP = 2


_MOST_STEPS = (1 << 16) - 1
"""Two numbers travel as one: an action, and below it a number of steps, negated so that the fewest win."""


class Agreement:
    """Asks all ranks, at most once in `every_seconds`, in one collective operation that also decides when to ask again.

    Asking after every step would cost a collective each time and, on a GPU, the host would wait for it. The ranks' clocks differ, so they
    agree on a number of steps. It is the number that fits into the time by the slowest step since they last asked, and at most twice the
    last number. A rank that gets a warning reports it at most `every_seconds` later, as long as the steps' duration does not change.

    A single process decides after every step.
    """

    def __init__(self, group: Group, clock: Clock, every_seconds: float) -> None:
        if every_seconds < 0:
            raise ValueError(f"agree_seconds must be 0 or more, got {every_seconds}")
        self._group = group
        self._clock = clock
        self._every_seconds = every_seconds
        self._next_step = 0
        self._steps = 1
        self._slowest_seconds = 0.0
        self._last_step_at: float | None = None

    def action(self, done: int, wanted: Action, steps_to_due: int | None) -> Action:
        """Return what all ranks do after `done` steps. `steps_to_due`: further steps that the schedule allows without a save."""
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
        # After a save all ask again before the next step: a warning may have come in the meantime.
        self._next_step = done + steps if action is Action.GO_ON else done
        # Waiting for other ranks, or saving, is not part of a step's time.
        self._last_step_at = self._clock.monotonic() if action is Action.GO_ON else None
        return action

    def _fitting(self) -> int:
        if not self._slowest_seconds:
            return 1
        return max(1, min(int(self._every_seconds / self._slowest_seconds), 2 * self._steps))
