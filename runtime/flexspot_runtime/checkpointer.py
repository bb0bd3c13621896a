"""Saves checkpoints so that a kill at any moment leaves the last one whole, finds the newest that is, and deletes what nothing needs."""

from __future__ import annotations

import io
import logging
import math
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from flexspot_runtime.contents import CheckpointReader, CheckpointWriter
from flexspot_runtime.group import ALONE, Barrier, CheckpointFailedError, Group
from flexspot_runtime.marker import Marker, Shard
from flexspot_runtime.names import DATA, JOB_VARIABLE, MARKERS, failure_name, group_name, marker_name, new_attempt, shard_name, step_of
from flexspot_runtime.resumption import Kept, Resumption
from flexspot_runtime.schedule import SYSTEM_CLOCK, Clock, History

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from flexspot_runtime.storage import Storage


READ_AHEAD_BYTES = 2 << 30
"""For each rank: the shards of most jobs, and little beside what a state of that size takes when it is loaded."""


def _never() -> float:
    return math.inf


class Checkpointer:
    """Checkpoints of one program in one storage.

    A save writes the data under names that nothing else has, then, when all of it is durable, a small marker with the checksums. Without
    the marker, or with a torn one, a save does not exist. So nothing needs a rename, and the same holds on a disk, on GCS FUSE and on
    Mountpoint for S3. The newest checkpoint is the one with most steps done, never the one with the latest time.

    After a save the older ones than the newest `keep` go, marker first; only what this process wrote or verified counts among these.

    `group`: the processes that train together; all of them make a Checkpointer. `sharded`: whether each of them writes its part (a save
    counts when all parts are there) or rank 0 writes for all, the default. `barrier_seconds`: how long ranks wait for each other, at most.
    `job`: whose checkpoints these are, by default what FLEXSPOT_JOB says; those of another job are refused. `read_ahead_bytes`: how much
    of what is verified at a resumption may stay in memory until it is loaded, so that it is read once; what is more is read twice.

    To begin anew, or to go back to an earlier step, use another folder: a checkpoint that is further would be found first.
    Raises ValueError for a `keep` under 2.
    """

    def __init__(  # noqa: PLR0913 -- all but the storage have a default and are given by name
        self,
        storage: Storage,
        *,
        keep: int = 3,
        group: Group = ALONE,
        sharded: bool = False,
        barrier_seconds: float = 300.0,
        job: str | None = None,
        read_ahead_bytes: int = READ_AHEAD_BYTES,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        if keep < LEAST_KEPT:
            raise ValueError(f"keep is {keep}; keep at least {LEAST_KEPT} checkpoints, so that a damaged one is not the only one")
        self.storage = storage
        self.keep = keep
        self.group = group
        self.sharded = sharded
        self.barrier_seconds = barrier_seconds
        self.job = os.environ.get(JOB_VARIABLE, "") if job is None else job
        self.read_ahead_bytes = read_ahead_bytes
        self.clock = clock
        self.attempt = group.told_by_first(new_attempt())
        self._serial = 0
        self._good: set[str] = set()
        self._kept: tuple[str, Kept] = ("", {})

    def save(
        self,
        step: int,
        write: Callable[[CheckpointWriter], None],
        *,
        completed: bool = False,
        history: History = History(),  # noqa: B008 -- frozen
        deadline: Callable[[], float] = _never,
    ) -> Marker:
        """Saves what `write` writes; all ranks of a group call it, for the same step.

        All ranks call `write`, too, so it may hold collective operations; where rank 0 writes for all, what the others write goes nowhere.
        `step`: steps done. `deadline`: when the process is killed, of the clock's `monotonic`; an Interruption's `deadline`.
        Raises CheckpointFailedError when it could not be written, or not by all ranks in time; the program may go on. What `write` raises
        besides OSError is passed on, and so is io.UnsupportedOperation.
        """
        self._serial += 1
        group = group_name(step, self.attempt, self._serial)
        try:
            marker = self._save(group, step, write, completed=completed, history=history, deadline=deadline)
        except io.UnsupportedOperation:
            # An OSError, but one of the program's: it asks of a file what no file of a checkpoint does, and never would be saved.
            self._give_up(group)
            raise
        except OSError as error:
            self._give_up(group)
            if isinstance(error, CheckpointFailedError):
                raise
            raise CheckpointFailedError(f"checkpoint {group} could not be written: {error}") from error
        self._good.add(group)
        if self.group.rank == 0:
            _sweep(self.storage, self._good, self.keep)
        return marker

    def newest_valid(self) -> Marker | None:
        """The checkpoint to resume from, all of whose data was read and is right; None when none was ever completed.

        With a group all ranks call it: rank 0 chooses for all, and each reads and hashes its own part, several objects at a time.
        Raises CorruptCheckpointError when there are checkpoints and all are damaged, which is for a person to look at rather than to begin
        anew, ForeignCheckpointError when they are another job's, and OSError when the storage does not answer: a volume that is not
        mounted is no reason to begin anew, either. When one rank raises, all do.
        """
        resumption = Resumption(self.storage, self.group, self.job, self.read_ahead_bytes)
        marker = resumption.newest_valid()
        if marker:
            self._good.add(marker.group)
            self._kept = (marker.group, resumption.kept)
        return marker

    def reader(self, marker: Marker) -> CheckpointReader:
        """Reads this rank's part of a checkpoint, or rank 0's when that one writes for all."""
        # Given once: what stays in memory ends with its reader.
        group, kept = self._kept
        self._kept = ("", {})
        return CheckpointReader(self.storage, marker, self.group.rank if self.sharded else 0, kept if group == marker.group else None)

    def _save(  # noqa: PLR0913 -- what `save` takes
        self,
        group: str,
        step: int,
        write: Callable[[CheckpointWriter], None],
        *,
        completed: bool,
        history: History,
        deadline: Callable[[], float],
    ) -> Marker:
        rank, latest = self.group.rank, self.clock.monotonic() + self.barrier_seconds
        writers = self.group.world_size if self.sharded else 1
        barrier = Barrier(self.storage, group, writers, self.clock, lambda: min(latest, deadline()))
        shards: tuple[Shard, ...] = ()
        writer = CheckpointWriter(self.storage, group, rank, discards=rank >= writers)
        write(writer)
        if rank < writers:
            shards = (writer.shard(),)
            if writers > 1:
                self._put(shard_name(group, rank), shards[0].encode())
        if rank > 0:
            return barrier.marker()
        if writers > 1:
            shards = barrier.shards()
        marker = Marker(step, self.attempt, self._serial, shards, completed, history, self.clock.wall(), self.job)
        self._put(marker.name, marker.encode())
        return marker

    def _put(self, name: str, content: bytes) -> None:
        with self.storage.create(name) as sink:
            sink.write(content)

    def _give_up(self, group: str) -> None:
        if self.group.world_size == 1:
            _discard(self.storage, group)
            return
        # The other ranks' parts are swept with a later checkpoint.
        with suppress(OSError):
            self._put(failure_name(group, self.group.rank), b"")


LEAST_KEPT = 2
"""One to resume from, and one in case that one turns out to be damaged."""


def surplus(groups: Sequence[str], good: Collection[str], keep: int) -> list[str]:
    """The groups older than the newest `keep` good ones, newest first: so that a kill half-way leaves no gap.

    `groups` have a marker or only remains of a save that was killed; both go the same way. `good` are those that this process has written
    or verified itself: what nobody has looked at counts for nothing, so as long as there are fewer good ones than `keep`, nothing goes.
    """
    ordered = sorted(groups, reverse=True)
    kept = [group for group in ordered if group in good][:keep]
    if len(kept) < keep:
        return []
    oldest = step_of(kept[-1])
    return [group for group in ordered if (step := step_of(group)) is not None and oldest is not None and step < oldest]


_LOG = logging.getLogger("flexspot_runtime")


def _sweep(storage: Storage, good: set[str], keep: int) -> None:
    """Keeps the newest `keep` of the groups in `good`, and all that is newer than the oldest of these; forgets what it deletes.

    What cannot be deleted stays, with a warning: a storage that is full is reported by the save that fails.
    """
    names: dict[str, list[str]] = {}
    # Markers first: without one, the data is nobody's.
    for name in [*_names(storage, MARKERS), *_names(storage, DATA)]:
        group = name.split("/")[1].removesuffix(".json")
        if step_of(group) is not None:
            names.setdefault(group, []).append(name)
    for group in surplus(list(names), good, keep):
        _delete(storage, names[group])
        good.discard(group)


def _discard(storage: Storage, group: str) -> None:
    """Deletes what a save that failed has written, to make room. Its marker first: it may be there although writing it failed."""
    _delete(storage, [marker_name(group), *_names(storage, f"{DATA}/{group}")])


def _delete(storage: Storage, names: Iterable[str]) -> None:
    for name in names:
        try:
            storage.delete(name)
        except FileNotFoundError:
            continue
        except OSError as error:
            # The rest stays, too: a marker that is still there must not lose its data.
            _LOG.warning("%s could not be deleted: %s", name, error)
            return


def _names(storage: Storage, folder: str) -> list[str]:
    try:
        return storage.names(folder)
    except OSError as error:
        _LOG.warning("%s could not be listed: %s", folder, error)
        return []
