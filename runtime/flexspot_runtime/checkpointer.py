"""Save checkpoints that survive a kill at any moment, find the newest complete one, and delete those no longer needed."""

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
"""Bytes per rank. Holds the shards of most jobs, and is small compared to the memory that a state of that size takes when loaded."""


def _never() -> float:
    return math.inf


class Checkpointer:
    """Checkpoints of one program in one storage.

    A save writes the data under unique names. When all of it is durable, it writes a small marker with the checksums. Without a marker, or
    with a torn one, a save does not exist. So no rename is needed, and the same guarantees hold on a disk, on GCS FUSE and on Mountpoint
    for S3. The newest checkpoint is the one with the most steps done, not the one with the latest time.

    Each save deletes the checkpoints older than the newest `keep`, marker first. Only checkpoints that this process wrote or verified count
    towards `keep`.

    To start over, or to return to an earlier step, use another folder: otherwise a checkpoint with more steps is found first.

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
        """Create the checkpointer. All processes of a group create one.

        group: the processes that train together.

        sharded: every process writes its part, and a save counts when all parts exist. Default: rank 0 writes for all.

        barrier_seconds: longest time that ranks wait for each other.

        job: owner of these checkpoints; those of another job are rejected. Default: the variable FLEXSPOT_JOB.

        read_ahead_bytes: limit of the data that a resumption keeps in memory between verifying and loading it. Data beyond this limit is
        read twice.
        """
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
        self.attempt = group.text_of_rank_0(new_attempt())
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
        """Save the data that `write` writes. All ranks of a group call this for the same step.

        All ranks call `write`, so it may contain collective operations. Where rank 0 writes for all, the data of the other ranks is
        discarded.

        step: steps done.

        deadline: returns the time of the clock's `monotonic` at which the process is killed; usually an Interruption's `deadline`.

        Raises CheckpointFailedError when the data could not be written, or not by all ranks in time; the program may go on. Other
        exceptions of `write` are passed on, and so is io.UnsupportedOperation.
        """
        self._serial += 1
        group = group_name(step, self.attempt, self._serial)
        try:
            marker = self._save(group, step, write, completed=completed, history=history, deadline=deadline)
        except io.UnsupportedOperation:
            # This OSError is a bug in the program: it uses a file operation that checkpoint files do not support. Every save would fail.
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
        """Return the checkpoint to resume from, after reading and verifying all of its data. None if none was ever completed.

        In a group all ranks call it. Rank 0 chooses for all. Each rank reads and hashes its own part, several objects at a time.

        Raises CorruptCheckpointError when checkpoints exist and all are damaged: a person must look, so the run does not start over. Raises
        ForeignCheckpointError when they belong to another job, and OSError when the storage does not answer: a volume that is not mounted
        is no reason to start over, either. When one rank raises, all do.
        """
        resumption = Resumption(self.storage, self.group, self.job, self.read_ahead_bytes)
        marker = resumption.newest_valid()
        if marker:
            self._good.add(marker.group)
            self._kept = (marker.group, resumption.kept)
        return marker

    def reader(self, marker: Marker) -> CheckpointReader:
        """Return a reader of this rank's part of a checkpoint, or of rank 0's part when rank 0 writes for all."""
        # Passed on only once: the objects kept in memory are freed with their reader.
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
        # The record ends the wait of the other ranks. A later checkpoint deletes their parts.
        with suppress(OSError):
            self._put(failure_name(group, self.group.rank), b"")


LEAST_KEPT = 2
"""One to resume from, and another in case the first is damaged."""


def surplus(groups: Sequence[str], good: Collection[str], keep: int) -> list[str]:
    """Return the groups older than the newest `keep` good ones, newest first.

    groups: those with a marker, and remains of interrupted saves; both are deleted the same way.

    good: groups that this process wrote or verified. Unverified groups do not count: while there are fewer than `keep` good groups, none is
    returned.
    """
    ordered = sorted(groups, reverse=True)
    kept = [group for group in ordered if group in good][:keep]
    if len(kept) < keep:
        return []
    oldest = step_of(kept[-1])
    return [group for group in ordered if (step := step_of(group)) is not None and oldest is not None and step < oldest]


_LOG = logging.getLogger("flexspot_runtime")


def _sweep(storage: Storage, good: set[str], keep: int) -> None:
    """Keep the newest `keep` groups of `good` and everything newer than the oldest of these. Remove deleted groups from `good`.

    A group that cannot be deleted stays, with a warning. A full storage is reported by the save that fails.
    """
    names: dict[str, list[str]] = {}
    # Markers first: without a marker, the data is unused.
    for name in [*_names(storage, MARKERS), *_names(storage, DATA)]:
        group = name.split("/")[1].removesuffix(".json")
        if step_of(group) is not None:
            names.setdefault(group, []).append(name)
    for group in surplus(list(names), good, keep):
        _delete(storage, names[group])
        good.discard(group)


def _discard(storage: Storage, group: str) -> None:
    """Delete what a failed save has written, to free space. Starts with its marker, which may exist although writing it failed."""
    _delete(storage, [marker_name(group), *_names(storage, f"{DATA}/{group}")])


def _delete(storage: Storage, names: Iterable[str]) -> None:
    for name in names:
        try:
            storage.delete(name)
        except FileNotFoundError:
            continue
        except OSError as error:
            # Keep the rest, too: a marker that still exists must not lose its data.
            _LOG.warning("%s could not be deleted: %s", name, error)
            return


def _names(storage: Storage, folder: str) -> list[str]:
    try:
        return storage.names(folder)
    except OSError as error:
        _LOG.warning("%s could not be listed: %s", folder, error)
        return []
