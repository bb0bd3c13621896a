"""Ranks that resume: each reads its own part, once, and all get the same answer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from counting_storage import CountingFolder
from flexspot_runtime import Checkpointer, CheckpointWriter, CorruptCheckpointError, Group, LocalFolder, resumption
from memory_storage import MemoryStorage
from rank_threads import in_ranks

if TYPE_CHECKING:
    from pathlib import Path

RANKS = 4
OBJECTS = 3
OBJECT_BYTES = 1 << 20


def write(writer: CheckpointWriter) -> None:
    for number in range(OBJECTS):
        writer.put(f"part-{number}", bytes([writer.rank]) * OBJECT_BYTES)


def resumed(folder: CountingFolder, group: Group, *, sharded: bool = True, read_ahead_bytes: int = 2 << 30) -> bytes:
    """Load all of a rank's part."""
    checkpointer = Checkpointer(folder, group=group, sharded=sharded, read_ahead_bytes=read_ahead_bytes)
    marker = checkpointer.newest_valid()
    assert marker
    reader = checkpointer.reader(marker)
    return b"".join(reader.get(name)[:1] for name in reader.names)


def saved_by_all(folder: Path, ranks: int = RANKS, *, sharded: bool = True) -> None:
    in_ranks(ranks, lambda group: Checkpointer(LocalFolder(folder), group=group, sharded=sharded).save(1, write))


def test_four_ranks_read_each_byte_once(tmp_path: Path) -> None:
    saved_by_all(tmp_path)
    folders = [CountingFolder(tmp_path) for _ in range(RANKS)]

    assert in_ranks(RANKS, lambda group: resumed(folders[group.rank], group)) == [bytes([rank]) * OBJECTS for rank in range(RANKS)]
    for rank, folder in enumerate(folders):
        assert list(folder.read_bytes.values()) == [OBJECT_BYTES] * OBJECTS
        assert all(f"/rank-{rank:05d}/" in name for name in folder.read_bytes)
        assert all(name.startswith("flexspot-verify") for name in folder.threads), "not in the thread that trains"


def test_where_rank_0_wrote_for_all_each_rank_reads_once_what_it_loads(tmp_path: Path) -> None:
    saved_by_all(tmp_path, sharded=False)
    folders = [CountingFolder(tmp_path) for _ in range(RANKS)]

    in_ranks(RANKS, lambda group: resumed(folders[group.rank], group, sharded=False))

    assert [sum(folder.read_bytes.values()) for folder in folders] == [OBJECTS * OBJECT_BYTES] * RANKS


def test_fewer_ranks_divide_the_parts_of_more_among_them(tmp_path: Path) -> None:
    saved_by_all(tmp_path)
    folders = [CountingFolder(tmp_path) for _ in range(2)]

    def resume(group: Group) -> bytes:
        checkpointer = Checkpointer(folders[group.rank], group=group, sharded=True)
        marker = checkpointer.newest_valid()
        assert marker
        reader = checkpointer.reader(marker)
        return b"".join(reader.of_rank(rank).get("part-0")[:1] for rank in range(group.rank, RANKS, 2))

    assert in_ranks(2, resume) == [b"\x00\x02", b"\x01\x03"]
    for rank, folder in enumerate(folders):
        assert len(folder.read_bytes) == 2 * OBJECTS, rank
        assert set(folder.read_bytes.values()) == {OBJECT_BYTES}


def test_what_is_beyond_the_memory_that_is_allowed_is_read_again(tmp_path: Path) -> None:
    saved_by_all(tmp_path, ranks=1)
    folder = CountingFolder(tmp_path)

    assert resumed(folder, Group(), read_ahead_bytes=OBJECT_BYTES + 1) == bytes(OBJECTS)
    assert sorted(folder.read_bytes.values()) == [OBJECT_BYTES, 2 * OBJECT_BYTES, 2 * OBJECT_BYTES]


def test_what_stays_in_memory_ends_with_its_reader(tmp_path: Path) -> None:
    saved_by_all(tmp_path, ranks=1)
    folder = CountingFolder(tmp_path)
    checkpointer = Checkpointer(folder)
    marker = checkpointer.newest_valid()
    assert marker
    checkpointer.reader(marker)

    checkpointer.reader(marker).get("part-0")

    assert sorted(folder.read_bytes.values()) == [OBJECT_BYTES, OBJECT_BYTES, 2 * OBJECT_BYTES]


@pytest.mark.slow
def test_damage_in_one_ranks_part_sends_all_ranks_to_the_next_older(tmp_path: Path) -> None:
    saved_by_all(tmp_path)
    in_ranks(RANKS, lambda group: Checkpointer(LocalFolder(tmp_path), group=group, sharded=True).save(2, write))
    [damaged] = tmp_path.glob("data/000000000002-*/rank-00002/part-1")
    damaged.write_bytes(b"damaged")

    found = in_ranks(RANKS, lambda group: Checkpointer(LocalFolder(tmp_path), group=group, sharded=True).newest_valid())

    assert [getattr(each, "step", each) for each in found] == [1] * RANKS


def test_when_every_checkpoint_is_damaged_all_ranks_end(tmp_path: Path) -> None:
    saved_by_all(tmp_path)
    [damaged] = tmp_path.glob("data/*/rank-00002/part-1")
    damaged.unlink()

    ended = in_ranks(RANKS, lambda group: Checkpointer(LocalFolder(tmp_path), group=group, sharded=True).newest_valid())

    assert [type(each) for each in ended] == [CorruptCheckpointError] * RANKS


@pytest.mark.parametrize("broken_rank", range(3))
def test_when_the_storage_does_not_answer_one_rank_all_ranks_end(broken_rank: int) -> None:
    """Earlier the others waited for rank 0 until their collective operation timed out."""
    storage = MemoryStorage()
    in_ranks(3, lambda group: Checkpointer(storage, group=group, sharded=True).save(1, write))

    def resume(group: Group) -> object:
        own = storage.survivor()
        if group.rank == broken_rank:
            own.fails_at, own.fails_for = 1, 1000
        return Checkpointer(own, group=group, sharded=True).newest_valid()

    assert [isinstance(each, OSError) for each in in_ranks(3, resume)] == [True] * 3


def test_a_rank_that_reads_for_long_lets_the_others_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Collective operations time out after minutes, so each rank meets the others while it reads."""
    saved_by_all(tmp_path, ranks=2)
    monkeypatch.setattr(resumption, "MEET_SECONDS", 0.01)
    meetings = [0, 0]

    def resume(group: Group) -> object:
        def largest(number: int) -> int:
            meetings[group.rank] += 1
            return group.agree(number)

        counted = Group(group.rank, 2, largest, group.text_of_rank_0)
        folder = SlowFolder(tmp_path) if group.rank else LocalFolder(tmp_path)
        return Checkpointer(folder, group=counted, sharded=True).newest_valid()

    found = in_ranks(2, resume)

    assert [getattr(each, "step", each) for each in found] == [1, 1]
    assert meetings[0] == meetings[1] > 5


class SlowFolder(CountingFolder):
    def count(self, name: str, size_bytes: int) -> None:
        super().count(name, size_bytes)
        time.sleep(0.05)
