"""Search for the checkpoint to resume from. Rank 0 finds candidates; each rank verifies its part and reads it once."""

from __future__ import annotations

import json
import logging
from concurrent.futures import Future, ThreadPoolExecutor, wait
from enum import IntEnum
from typing import TYPE_CHECKING

from flexspot_runtime.contents import CheckpointReader, CorruptCheckpointError
from flexspot_runtime.marker import Marker, TornRecordError
from flexspot_runtime.names import MARKERS
from flexspot_runtime.storage import read_whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexspot_runtime.group import Group
    from flexspot_runtime.marker import StoredObject
    from flexspot_runtime.storage import Storage

_LOG = logging.getLogger("flexspot_runtime")

_THREADS = 8
"""Reading and hashing large pieces releases the GIL. More threads would only compete for one network card."""

MEET_SECONDS = 30.0
"""Seconds that a rank reads before it reports that it is still reading: collective operations of the others time out after minutes."""


class ForeignCheckpointError(Exception):
    """The checkpoints in this storage belong to another job."""


class _State(IntEnum):
    """Progress of a rank with its part. The largest state of all ranks counts."""

    RIGHT = 0
    DAMAGED = 1
    UNREADABLE = 2
    READING = 3


Kept = dict[tuple[int, str], bytes]
"""Verified objects in memory, by the rank that wrote them and their name."""


class Resumption:
    """One search for the newest valid checkpoint. All ranks of a group create one, and get the same answer or an error."""

    def __init__(self, storage: Storage, group: Group, job: str, keep_bytes: int) -> None:
        self._storage = storage
        self._group = group
        self._job = job
        self._keep_bytes = keep_bytes
        self.kept: Kept = {}
        """This rank's part of the checkpoint that was found, as far as `keep_bytes` allows."""

    def newest_valid(self) -> Marker | None:
        """See Checkpointer.newest_valid."""
        damaged: list[str] = []
        names = self._text_of_rank_0(lambda: json.dumps(sorted(self._storage.names(MARKERS), reverse=True)))
        for name in json.loads(names):
            record = self._text_of_rank_0(lambda name=name: self._record(name))
            if not record:
                continue
            marker = Marker.decode(name, record.encode())
            self._refuse_foreign(marker)
            if self._is_right(marker):
                return marker
            damaged.append(name)
        if damaged:
            raise CorruptCheckpointError(
                f"all checkpoints are damaged ({', '.join(damaged)}): restore the folder from a copy, or delete these markers to start over"
            )
        return None

    def _record(self, name: str) -> str:
        """Return a marker's record, empty for a marker that does not count."""
        try:
            record = read_whole(self._storage, name)
            Marker.decode(name, record)
        except (TornRecordError, FileNotFoundError) as error:
            # Its writer was killed, so it never counted; or another process has just deleted it.
            _LOG.warning("%s is skipped: %s", name, error)
            return ""
        return record.decode()

    def _text_of_rank_0(self, read: Callable[[], str]) -> str:
        """Return the text that rank 0 reads. If it cannot, all ranks raise OSError rather than wait forever."""
        if self._group.rank:
            found = self._group.text_of_rank_0("")
            if found.startswith(_FAILED):
                raise OSError(f"rank 0 could not read: {found.removeprefix(_FAILED)}")
            return found
        try:
            found = read()
        except OSError as error:
            self._group.text_of_rank_0(f"{_FAILED}{error}")
            raise
        return self._group.text_of_rank_0(found)

    def _refuse_foreign(self, marker: Marker) -> None:
        if self._job and marker.job and marker.job != self._job:
            raise ForeignCheckpointError(
                f"checkpoint {marker.group} belongs to job {marker.job}, and this is job {self._job}: give each job a folder of its "
                f"own, as LocalFolder() does with $CHECKPOINT_DIR, or go on with the other's by Checkpointer(..., job={marker.job!r})"
            )

    def _is_right(self, marker: Marker) -> bool:
        """Verify this rank's part while the others verify theirs. Return whether all parts are valid."""
        self.kept = {}
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="flexspot-verify") as pool:
            readings = [
                pool.submit(self._verify, CheckpointReader(self._storage, marker, rank), each, keep=keep)
                for rank, each, keep in self._own_part(marker)
            ]
            while (worst := self._group.agree(_state(readings))) == _State.READING:
                wait(readings, timeout=MEET_SECONDS)
        for reading in readings:
            error = reading.exception()
            if isinstance(error, CorruptCheckpointError):
                _LOG.error("%s is skipped: %s", marker.name, error)
            elif error:
                raise error
        if worst == _State.UNREADABLE:
            raise OSError(f"another rank could not read its part of checkpoint {marker.group}")
        return worst == _State.RIGHT

    def _own_part(self, marker: Marker) -> list[tuple[int, StoredObject, bool]]:
        """Return rank, object, and whether it stays in memory. Where rank 0 has written for all, it also reads for all."""
        part: list[tuple[int, StoredObject, bool]] = []
        left = self._keep_bytes
        for index, shard in enumerate(marker.shards):
            if index % self._group.world_size != self._group.rank:
                continue
            for each in shard.objects:
                keep = each.size_bytes <= left
                left -= each.size_bytes if keep else 0
                part.append((shard.rank, each, keep))
        return part

    def _verify(self, reader: CheckpointReader, each: StoredObject, *, keep: bool) -> None:
        content = reader.verify(each.name, keep=keep)
        if content is not None:
            self.kept[reader.rank, each.name] = content


_FAILED = "failed: "
"""Prefix of rank 0's text when it could not read. No list and no record starts with it."""


def _state(readings: list[Future[None]]) -> _State:
    if not all(reading.done() for reading in readings):
        return _State.READING
    errors = [error for reading in readings if (error := reading.exception())]
    if not errors:
        return _State.RIGHT
    return _State.DAMAGED if all(isinstance(error, CorruptCheckpointError) for error in errors) else _State.UNREADABLE
