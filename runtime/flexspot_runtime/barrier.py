"""Waiting for the other ranks through the storage, no longer than until the deadline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from flexspot_runtime.checksummed import TornRecordError
from flexspot_runtime.marker import Marker, Shard
from flexspot_runtime.names import failure_name, marker_name, shard_name
from flexspot_runtime.storage import is_there, read_whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexspot_runtime.clock import Clock
    from flexspot_runtime.storage import Storage

_FIRST_PAUSE_SECONDS = 0.01
_LONGEST_PAUSE_SECONDS = 1.0
"""Each look costs a request to a bucket."""

T = TypeVar("T")


class CheckpointFailedError(OSError):
    """A save that does not count. The checkpoints of before are untouched."""


@dataclass(frozen=True)
class Barrier:
    """One save's. `deadline` is asked again at every look: a warning may come while one waits."""

    storage: Storage
    group: str
    world_size: int
    clock: Clock
    deadline: Callable[[], float]

    def shards(self) -> tuple[Shard, ...]:
        """All ranks' shards, in order, once they are there. Raises CheckpointFailedError."""
        return tuple(
            self._wait(shard_name(self.group, rank), Shard.decode, [failure_name(self.group, rank)], f"rank {rank}")
            for rank in range(self.world_size)
        )

    def marker(self) -> Marker:
        """The marker, once rank 0 has written it. Raises CheckpointFailedError."""
        name = marker_name(self.group)
        failures = [failure_name(self.group, rank) for rank in range(self.world_size)]
        return self._wait(name, lambda record: Marker.decode(name, record), failures, "rank 0's marker")

    def _wait(self, name: str, decode: Callable[[bytes], T], failures: list[str], what: str) -> T:
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                return decode(read_whole(self.storage, name))
            except (FileNotFoundError, TornRecordError):
                # Torn: on a plain folder it is seen while it is being written.
                pass
            for failure in failures:
                if is_there(self.storage, failure):
                    raise CheckpointFailedError(f"checkpoint {self.group} does not count: {failure} says that a rank could not write")
            if self.clock.monotonic() + pause > self.deadline():
                raise CheckpointFailedError(f"checkpoint {self.group} does not count: {what} was not there in time")
            self.clock.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
