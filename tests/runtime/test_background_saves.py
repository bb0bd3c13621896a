"""Checkpoints written in the background, from a copy that the program provides."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from flexspot_runtime import (
    Checkpointer,
    CheckpointReader,
    CheckpointWriter,
    EverySteps,
    Group,
    Interrupted,
    Interruption,
    TrainingRun,
)
from memory_storage import MemoryStorage
from rank_threads import in_ranks

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENT_SECONDS = 30


@dataclass
class Program:
    """One process whose state is a number. Writing fails `failures` times. With `waits` it waits until `may_write`."""

    storage: MemoryStorage = field(default_factory=MemoryStorage)
    group: Group = field(default_factory=Group)
    state: int = 0
    written: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    may_write: threading.Event = field(default_factory=threading.Event)
    failures: int = 0
    waits: bool = False
    interruption: Interruption = field(default_factory=lambda: Interruption(60.0))

    def __post_init__(self) -> None:
        if not self.waits:
            self.may_write.set()
        self.run = TrainingRun(
            Checkpointer(self.storage, group=self.group, sharded=True),
            self.interruption,
            snapshot=self.snapshot,
            load=self.load,
            schedule=EverySteps(5),
        )

    def snapshot(self) -> Callable[[CheckpointWriter], None]:
        copied = self.state

        def write(writer: CheckpointWriter) -> None:
            assert self.may_write.wait(PATIENT_SECONDS)
            if self.failures:
                self.failures -= 1
                raise OSError("planted")
            self.written.append((copied, threading.current_thread().name))
            writer.put("state", str(copied).encode())

        return write

    def load(self, reader: CheckpointReader) -> None:
        self.state = int(reader.get("state"))

    def live(self, total: int, at: dict[int, Callable[[], object]] | None = None) -> None:
        for step in self.run.steps(total):
            self.state += 1
            if at and step in at:
                at[step]()


def markers(storage: MemoryStorage) -> list[int]:
    return sorted(int(name.split("/")[1].split("-")[0]) for name in storage.names("markers"))


def test_training_goes_on_while_the_copy_is_written() -> None:
    program = Program(waits=True)

    def step_8() -> None:
        assert program.written == [], "the copy of step 5 waits, and three steps were done"
        program.may_write.set()

    program.live(12, {8: step_8})

    assert [state for state, _ in program.written] == [5, 10, 12], "what was copied, not what became of it"
    assert [name for _, name in program.written] == ["flexspot-save", "flexspot-save", "MainThread"]
    assert markers(program.storage) == [5, 10, 12]
    assert (program.run.status.saves, program.run.status.saved_step) == (3, 12)


@pytest.mark.slow
def test_a_save_that_is_still_running_is_waited_for_by_the_next() -> None:
    program = Program(waits=True)
    timer = threading.Timer(0.2, program.may_write.set)
    timer.start()
    program.live(11)

    assert [state for state, _ in program.written] == [5, 10, 11]


def test_a_warning_waits_for_what_is_written_and_saves_where_it_stops() -> None:
    program = Program(waits=True)

    def warned() -> None:
        program.interruption.notify("SIGTERM")
        program.may_write.set()

    with pytest.raises(Interrupted) as ended:
        program.live(100, {7: warned})

    assert ended.value.step == 8
    assert markers(program.storage) == [5, 8]
    again = Program(program.storage)
    again.live(10)
    assert again.state == 10


def test_a_background_failure_is_reported_and_retried() -> None:
    program = Program(failures=1)
    program.live(12)

    assert markers(program.storage) == [10, 12]
    assert (program.run.status.saves, program.run.status.failed_saves) == (2, 1)


def test_what_the_program_does_wrong_in_the_background_is_raised_where_it_trains() -> None:
    program = Program()
    program.run._take = lambda: lambda writer: writer.put("..", b"")  # noqa: SLF001 -- another program

    with pytest.raises(ValueError, match="cannot be used"):
        program.live(12)


@pytest.mark.parametrize("failures,saved,steps", [(0, (3, 0), [5, 10, 12]), (1, (2, 1), [10, 12])])
def test_ranks_write_their_parts_beside_the_training_and_a_failure_of_one_is_a_failure_of_all(
    failures: int, saved: tuple[int, int], steps: list[int]
) -> None:
    storage = MemoryStorage()

    def train(group: Group) -> tuple[int, int]:
        program = Program(storage, group, failures=failures if group.rank == 1 else 0)
        program.live(12)
        return program.run.status.saves, program.run.status.failed_saves

    assert in_ranks(3, train) == [saved] * 3
    assert markers(storage) == steps


@pytest.mark.parametrize("both", [False, True])
def test_exactly_one_of_save_and_snapshot_is_required(*, both: bool) -> None:
    program = Program()

    with pytest.raises(ValueError, match="give either save, which writes, or snapshot"):
        TrainingRun(
            Checkpointer(MemoryStorage()),
            Interruption(1.0),
            save=program.snapshot() if both else None,
            snapshot=program.snapshot if both else None,
            load=program.load,
        )


@pytest.mark.parametrize("in_background", [False, True])
def test_a_collective_operation_in_a_save_blocks_no_rank(*, in_background: bool) -> None:
    """All ranks gather FSDP's full state, and rank 0 writes it. Earlier the others did not take part, and rank 0 waited forever."""
    storage = MemoryStorage()

    def train(group: Group) -> list[bool]:
        discards: list[bool] = []

        def gathered() -> bytes:
            return str(group.agree(group.rank)).encode()

        def put(writer: CheckpointWriter, content: bytes) -> None:
            discards.append(writer.discards)
            writer.put("full", content)

        def snapshot() -> Callable[[CheckpointWriter], None]:
            content = gathered()
            return lambda writer: put(writer, content)

        run = TrainingRun(
            Checkpointer(storage, group=group),
            Interruption(60.0),
            save=None if in_background else lambda writer: put(writer, gathered()),
            snapshot=snapshot if in_background else None,
            load=lambda _: None,
            schedule=EverySteps(5),
        )
        assert len(list(run.steps(10))) == 10
        return discards

    assert in_ranks(3, train) == [[False, False], [True, True], [True, True]]
    assert [storage.objects[name] for name in storage.names("data")] == [b"2", b"2"]
