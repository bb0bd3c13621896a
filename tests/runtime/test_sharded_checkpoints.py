from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from flexspot_runtime import (
    Checkpointer,
    CheckpointFailedError,
    CheckpointReader,
    CheckpointWriter,
    EverySteps,
    Group,
    Interruption,
    LocalFolder,
    TrainingRun,
)
from flexspot_runtime.marker import Marker
from manual_clock import ManualClock
from rank_threads import in_ranks

if TYPE_CHECKING:
    from pathlib import Path

RANKS = 3


def save(checkpointer: Checkpointer, step: int) -> Marker:
    return checkpointer.save(step, lambda writer: writer.put("part", b"%d of %d" % (writer.rank, step)))


def checkpointer_of(folder: Path, group: Group, *, sharded: bool = True, barrier_seconds: float = 60.0) -> Checkpointer:
    return Checkpointer(LocalFolder(folder), group=group, sharded=sharded, barrier_seconds=barrier_seconds)


def resumed(folder: Path, group: Group, *, sharded: bool = True) -> bytes:
    checkpointer = checkpointer_of(folder, group, sharded=sharded)
    marker = checkpointer.newest_valid()
    assert marker
    return checkpointer.reader(marker).get("part")


def test_a_checkpoint_counts_when_all_parts_are_there_and_each_rank_gets_its_own_back(tmp_path: Path) -> None:
    in_ranks(RANKS, lambda group: save(checkpointer_of(tmp_path, group), 7))

    assert in_ranks(RANKS, lambda group: resumed(tmp_path, group)) == [b"0 of 7", b"1 of 7", b"2 of 7"]


def test_rank_0_can_write_for_all(tmp_path: Path) -> None:
    in_ranks(RANKS, lambda group: save(checkpointer_of(tmp_path, group, sharded=False), 7))

    assert in_ranks(RANKS, lambda group: resumed(tmp_path, group, sharded=False)) == [b"0 of 7"] * RANKS
    assert len(LocalFolder(tmp_path).names("data")) == 1


def test_a_rank_that_cannot_write_ends_the_wait_of_all(tmp_path: Path) -> None:
    def work(group: Group) -> Marker:
        checkpointer = checkpointer_of(tmp_path, group)

        def write(writer: CheckpointWriter) -> None:
            if writer.rank == 1:
                raise OSError("planted")
            writer.put("part", b"")

        return checkpointer.save(7, write)

    ended = in_ranks(RANKS, work)

    assert all(isinstance(each, CheckpointFailedError) for each in ended), ended
    assert in_ranks(RANKS, lambda group: checkpointer_of(tmp_path, group).newest_valid()) == [None] * RANKS


def test_a_rank_that_died_fails_the_checkpoint_when_the_time_is_over(tmp_path: Path) -> None:
    def work(group: Group) -> Marker | None:
        checkpointer = checkpointer_of(tmp_path, group, barrier_seconds=0.2)
        return None if group.rank == 2 else save(checkpointer, 7)

    first, second, third = in_ranks(RANKS, work)

    assert third is None
    assert "rank 2 was not there in time" in str(first)
    assert isinstance(second, CheckpointFailedError)


def test_after_a_warning_ranks_wait_for_each_other_no_longer_than_until_the_kill(tmp_path: Path) -> None:
    """The deadline is read again at every poll: this warning comes while a rank waits."""
    clock = ManualClock()
    group = Group(0, 2, abs, str)
    interruption = Interruption(15.0, clock=clock)
    checkpointer = Checkpointer(LocalFolder(tmp_path), group=group, sharded=True, barrier_seconds=300, clock=clock)
    sleep = clock.sleep

    def warned(seconds: float) -> None:
        sleep(seconds)
        if clock.seconds > 1005:
            interruption.notify("SIGTERM")

    clock.sleep = warned  # pyrefly: ignore[method-assign] -- the same, with a warning

    with pytest.raises(CheckpointFailedError, match="rank 1 was not there in time"):
        checkpointer.save(1, lambda writer: writer.put("part", b""), deadline=interruption.deadline)
    assert 1010 < clock.seconds < 1022
    assert max(clock.slept) == 1, "a bucket is not asked more often than that"


def test_a_group_of_another_size_gets_an_error_with_a_remedy(tmp_path: Path) -> None:
    in_ranks(2, lambda group: save(checkpointer_of(tmp_path, group), 7))

    *_, third = in_ranks(3, lambda group: resumed(tmp_path, group))

    assert "has no shard of rank 2, only of [0, 1]; it was saved by a group of another size" in str(third)


def test_parts_of_different_starts_are_never_put_together(tmp_path: Path) -> None:
    """Rank 1 of a killed start had written its part of the same step."""

    def killed(group: Group) -> None:
        if group.rank == 1:
            writer = CheckpointWriter(LocalFolder(tmp_path), "000000000007-dead-000001", 1)
            writer.put("part", b"of the killed start")

    in_ranks(2, killed)
    in_ranks(2, lambda group: save(checkpointer_of(tmp_path, group), 7))
    [_, marker] = in_ranks(2, lambda group: checkpointer_of(tmp_path, group).newest_valid())

    assert isinstance(marker, Marker)
    assert CheckpointReader(LocalFolder(tmp_path), marker, 1).get("part") == b"1 of 7"


def test_a_save_that_fails_in_one_rank_fails_for_all_and_training_goes_on(tmp_path: Path) -> None:
    def train(group: Group) -> tuple[int, int]:
        writes: list[int] = []

        def write(writer: CheckpointWriter) -> None:
            writes.append(1)
            if group.rank == 1 and len(writes) == 2:
                raise OSError("planted")
            writer.put("part", b"")

        run = TrainingRun(checkpointer_of(tmp_path, group), Interruption(60.0), save=write, load=lambda _: None, schedule=EverySteps(5))
        done = sum(1 for _ in run.steps(20))
        return done, run.status.failed_saves

    assert in_ranks(RANKS, train) == [(20, 1)] * RANKS
