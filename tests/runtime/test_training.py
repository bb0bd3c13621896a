from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from flexspot_runtime import (
    Checkpointer,
    CheckpointFailedError,
    CheckpointReader,
    CheckpointWriter,
    EverySteps,
    Group,
    Interrupted,
    Interruption,
    LeastWaste,
    ProgressFile,
    Timed,
    TrainingRun,
)
from flexspot_runtime.status import Phase
from manual_clock import ManualClock
from memory_storage import MemoryStorage

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexspot_runtime.schedule import Schedule


@dataclass
class Program:
    """A training program on one storage; each `live` is a start of it."""

    storage: MemoryStorage = field(default_factory=MemoryStorage)
    schedule: Schedule = field(default_factory=lambda: EverySteps(5))
    progress: ProgressFile | None = None
    group: Group = field(default_factory=Group)
    clock: ManualClock = field(default_factory=ManualClock)
    trained: list[int] = field(default_factory=list[int])

    def __post_init__(self) -> None:
        self.interruption = Interruption(15.0, clock=self.clock)
        self.run = TrainingRun(
            Checkpointer(self.storage, clock=self.clock, group=self.group),
            self.interruption,
            save=self._save,
            load=self._load,
            schedule=self.schedule,
            progress=self.progress,
        )

    def live(self, total: int, at: dict[int, Callable[[], object]] | None = None) -> None:
        """Train. `at` has a function to call during each given step."""
        for step in self.run.steps(total):
            self.clock.seconds += 1
            self.trained.append(step)
            if at and step in at:
                at[step]()

    def warn(self) -> None:
        self.interruption.notify("SIGTERM")

    def fill_up(self) -> None:
        """Let every save fail from now on."""
        self.storage.fails_at, self.storage.fails_for = self.storage.operations + 1, 10_000

    def saved_steps(self) -> list[int]:
        return [int(name.split("/")[1].split("-")[0]) for name in sorted(self.storage.objects) if name.startswith("markers")]

    def _save(self, writer: CheckpointWriter) -> None:
        self.clock.seconds += 2
        writer.put("trained", repr(self.trained).encode())

    def _load(self, reader: CheckpointReader) -> None:
        self.trained = [int(step) for step in reader.get("trained").decode().strip("[]").split(", ")]


def test_all_steps_are_done_and_the_last_checkpoint_says_so() -> None:
    program = Program()
    program.live(12)

    marker = program.run.checkpointer.newest_valid()
    assert program.trained == list(range(12))
    assert program.saved_steps() == [5, 10, 12]
    assert marker
    assert marker.completed
    assert program.run.status.phase == Phase.COMPLETED


def test_a_warning_ends_the_run_after_the_step_with_143_and_a_checkpoint() -> None:
    program = Program()

    with pytest.raises(Interrupted) as ended:
        program.live(12, {6: program.warn})

    assert (ended.value.code, ended.value.source, ended.value.step) == (143, "SIGTERM", 7)
    assert program.saved_steps() == [5, 7]
    assert program.run.status.phase == Phase.INTERRUPTED


def test_the_next_start_goes_on_where_the_last_ended() -> None:
    program = Program()
    with pytest.raises(Interrupted):
        program.live(12, {6: program.warn})

    again = Program(program.storage)
    again.live(12)

    assert again.trained == list(range(12))
    assert again.run.status.interruptions == 1


def test_a_warning_in_the_last_step_is_no_interruption() -> None:
    program = Program()
    program.live(12, {11: program.warn})

    assert program.run.status.phase == Phase.COMPLETED


def test_a_warning_during_a_checkpoint_costs_no_further_step() -> None:
    program = Program()
    saved = program.storage.create

    def warned_while_saving(name: str) -> object:
        program.interruption.notify("SIGTERM")
        return saved(name)

    program.storage.create = warned_while_saving  # pyrefly: ignore[bad-assignment, method-assign] -- the same, with a warning

    with pytest.raises(Interrupted):
        program.live(12)
    assert program.trained == list(range(5))
    assert program.saved_steps() == [5], "what is saved is not saved again"


def test_a_warning_before_the_first_step_leaves_all_to_the_next_start() -> None:
    program = Program()
    program.interruption.notify("SIGTERM")

    with pytest.raises(Interrupted):
        program.live(12)
    assert (program.trained, program.saved_steps()) == ([], [])


def test_a_checkpoint_can_be_requested() -> None:
    program = Program()
    program.live(12, {1: program.run.request_checkpoint})

    assert program.run.status.saves == 4
    assert program.saved_steps() == [5, 10, 12], "2 was saved as well, and went when there were three newer ones"


def test_training_goes_on_while_checkpoints_cannot_be_written(caplog: pytest.LogCaptureFixture) -> None:
    program = Program()

    def make_room() -> None:
        program.storage.fails_at = None

    with caplog.at_level(logging.ERROR):
        program.live(20, {6: program.fill_up, 12: make_room})

    assert program.trained == list(range(20))
    assert (program.run.status.saves, program.run.status.failed_saves) == (3, 1)
    assert program.saved_steps() == [5, 15, 20]
    assert "could not be written: planted; training continues" in caplog.text


def test_a_result_that_cannot_be_saved_is_an_error() -> None:
    program = Program()

    with pytest.raises(CheckpointFailedError, match="all 12 steps are done but could not be saved"):
        program.live(12, {10: program.fill_up})


def test_an_interrupted_run_that_cannot_save_ends_with_143_and_keeps_the_last_checkpoint() -> None:
    program = Program()

    def fill_up_and_warn() -> None:
        program.fill_up()
        program.warn()

    with pytest.raises(Interrupted):
        program.live(12, {6: fill_up_and_warn})
    assert program.saved_steps() == [5]


def test_a_checkpoint_that_may_be_late_is_attempted_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    program = Program()

    with pytest.raises(Interrupted):
        program.live(12, {6: lambda: program.interruption.notify("SIGTERM", 1.0)})

    assert "a checkpoint takes 2.0 s and 1.0 s are left" in caplog.text
    assert program.saved_steps() == [5, 7]


def test_the_interval_is_estimated_again_while_running() -> None:
    program = Program(schedule=Timed(LeastWaste(least_seconds=1, most_seconds=1e5, assumed_checkpoint_seconds=500)))
    program.live(20_000)
    interval = program.run.status.interval_seconds

    assert program.run.status.checkpoint_seconds == 2
    assert interval
    assert 250 < interval < 350, "Daly's for 2 s and one interruption in some 6 hours; for 500 s it were over 4,000"


def test_the_progress_file_shows_how_many_steps_are_repeated() -> None:
    storage = MemoryStorage()
    program = Program(storage, progress=ProgressFile(storage, every_seconds=0))
    for step in program.run.steps(20):
        program.clock.seconds += 1
        program.trained.append(step)
        if step == 8:
            break

    again = Program(storage, progress=ProgressFile(storage))
    again.live(20)

    assert again.run.status.lost_steps == 3, "8 steps were reported, 5 saved"


def test_a_save_that_another_rank_could_not_make_counts_as_failed_here_too() -> None:
    reported = [0]

    def largest(wanted: int) -> int:
        """The first save succeeds in this rank and fails in the other. Otherwise both want the same."""
        if reported[0] == 0 and program.run.status.saves == 1:
            reported[0] = 1
            return 1
        return wanted

    program = Program(group=Group(0, 2, largest, str))
    program.live(12)

    assert (program.run.status.saves, program.run.status.failed_saves) == (3, 1)
    assert program.run.status.last_failure == "another rank could not save"
