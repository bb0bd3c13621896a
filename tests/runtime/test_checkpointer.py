from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest
from flexspot_runtime import Checkpointer, CheckpointReader, CheckpointWriter, CorruptCheckpointError, LocalFolder
from manual_clock import ManualClock
from memory_storage import MemoryStorage

if TYPE_CHECKING:
    from pathlib import Path

    from flexspot_runtime.marker import Marker


def saved(storage: MemoryStorage, *steps: int, keep: int = 10) -> list[Marker]:
    checkpointer = Checkpointer(storage, keep=keep)
    return [checkpointer.save(step, lambda writer, step=step: writer.put("weights", b"%d" % step)) for step in steps]


def newest(storage: MemoryStorage) -> CheckpointReader:
    checkpointer = Checkpointer(storage)
    marker = checkpointer.newest_valid()
    assert marker
    return checkpointer.reader(marker)


def test_the_checkpoint_with_most_steps_is_the_newest_whatever_the_date() -> None:
    storage, clock = MemoryStorage(), ManualClock()
    checkpointer = Checkpointer(storage, clock=clock)
    for step, date in ((10, 2e9), (20, 1e9), (30, -5.0)):
        clock.date = date
        checkpointer.save(step, lambda writer: writer.put("weights", b"x"))

    assert newest(storage).step == 30


def test_what_a_framework_writes_and_reads_streams_through(tmp_path: Path) -> None:
    storage = MemoryStorage()
    (tmp_path / "out" / "shards").mkdir(parents=True)
    (tmp_path / "out" / "shards" / "0.bin").write_bytes(b"tensor")

    def write(writer: CheckpointWriter) -> None:
        with writer.file("optimizer.pickle") as sink:
            pickle.dump({"momentum": 0.9}, sink)
        writer.put("weights", bytearray(b"in memory"))
        writer.put_folder(tmp_path / "out")

    Checkpointer(storage).save(1, write)

    reader = newest(storage)
    assert reader.names == ["optimizer.pickle", "shards/0.bin", "weights"]
    assert pickle.loads(reader.get("optimizer.pickle")) == {"momentum": 0.9}  # noqa: S301 -- written above
    reader.fetch(tmp_path / "in")
    assert (tmp_path / "in" / "shards" / "0.bin").read_bytes() == b"tensor"


def test_an_object_is_written_once(tmp_path: Path) -> None:
    def write(writer: CheckpointWriter) -> None:
        writer.put("weights", b"1")
        writer.put("weights", b"2")

    with pytest.raises(ValueError, match="weights is in this checkpoint already"):
        Checkpointer(LocalFolder(tmp_path)).save(1, write)


@pytest.mark.parametrize("name", ["../outside", "/absolute", "a//b", ".hidden", "", "a b", "x" * 501])
def test_a_name_that_some_storage_refuses_is_refused_everywhere(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be used"):
        Checkpointer(MemoryStorage()).save(1, lambda writer: writer.put(name, b""))


def test_a_name_that_is_not_there_is_an_error_that_says_what_is() -> None:
    storage = MemoryStorage()
    saved(storage, 5)

    with pytest.raises(KeyError, match="has no momentum; it contains weights"):
        newest(storage).get("momentum")


def test_fewer_than_two_are_not_kept() -> None:
    with pytest.raises(ValueError, match="keep at least 2"):
        Checkpointer(MemoryStorage(), keep=1)


def test_damaged_data_is_passed_over_for_the_next_older_checkpoint() -> None:
    storage = MemoryStorage()
    _, marker = saved(storage, 1, 2)
    storage.objects[f"data/{marker.group}/rank-00000/weights"] = b"3"

    assert newest(storage).step == 1


def test_a_marker_under_the_name_of_another_is_passed_over() -> None:
    storage = MemoryStorage()
    marker, _ = saved(storage, 1, 2)
    storage.objects["markers/000000000009-abc-000001.json"] = storage.objects[marker.name]

    assert newest(storage).step == 2


def test_when_every_checkpoint_is_damaged_a_person_decides() -> None:
    storage = MemoryStorage()
    for marker in saved(storage, 1, 2):
        storage.objects[f"data/{marker.group}/rank-00000/weights"] = b"?"

    with pytest.raises(
        CorruptCheckpointError, match=r"all checkpoints are damaged .*restore the folder from a copy, or delete these markers"
    ):
        Checkpointer(storage).newest_valid()


def test_a_storage_that_does_not_answer_is_no_reason_to_begin_anew() -> None:
    storage = MemoryStorage()
    saved(storage, 1)
    storage.fails_at, storage.fails_for = storage.operations + 1, 1000

    with pytest.raises(OSError, match="planted"):
        Checkpointer(storage).newest_valid()


def test_unverified_checkpoints_do_not_count_towards_keep() -> None:
    """Two newer checkpoints with damaged data must not displace the one that was resumed from."""
    storage = MemoryStorage()
    good, *bad = saved(storage, 1, 2, 3)
    for marker in bad:
        storage.objects[f"data/{marker.group}/rank-00000/weights"] = b"?"
    checkpointer = Checkpointer(storage, keep=2)
    found = checkpointer.newest_valid()
    assert found == good

    checkpointer.save(4, lambda writer: writer.put("weights", b"4"))
    assert good.name in storage.objects, "4 and 1 are the two that are known to be good"

    checkpointer.save(5, lambda writer: writer.put("weights", b"5"))
    assert good.name not in storage.objects


def test_remains_of_killed_saves_are_swept_once_they_are_old() -> None:
    storage = MemoryStorage()
    storage.objects["data/000000000001-dead-000001/rank-00000/weights"] = b"torn"
    storage.objects["data/000000000009-dead-000002/rank-00000/weights"] = b"of another process that is writing it"
    saved(storage, 2, 3, keep=2)

    assert "data/000000000001-dead-000001/rank-00000/weights" not in storage.objects
    assert "data/000000000009-dead-000002/rank-00000/weights" in storage.objects


def test_other_files_are_left_alone() -> None:
    storage = MemoryStorage()
    storage.objects["data/notes/readme"] = b"mine"
    saved(storage, 1, 2, 3, keep=2)

    assert storage.objects["data/notes/readme"] == b"mine"


def test_a_checkpoint_says_whether_all_is_done_and_how_often_it_began(tmp_path: Path) -> None:
    marker = Checkpointer(LocalFolder(tmp_path)).save(7, lambda writer: writer.put("weights", b""), completed=True)

    assert Checkpointer(LocalFolder(tmp_path)).newest_valid() == marker
    assert (marker.completed, marker.history.starts) == (True, 1)
