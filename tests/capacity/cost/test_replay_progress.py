"""How far a job is: checkpoints, restarts, what an interruption leaves, all in whole seconds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.cost.replay import Job, Progress

# A hundred seconds of work, a checkpoint of 2 s after every 30 s, 10 s until a new machine works.
JOB = Job(100, 200, 30, checkpoint_seconds=2, restart_seconds=10)


def test_the_whole_job_takes_a_restart_the_work_and_three_checkpoints() -> None:
    assert Progress().started(JOB).to_finish_seconds(JOB) == 10 + 100 + 3 * 2


def test_nothing_is_done_during_a_restart() -> None:
    assert Progress().started(JOB).after(7, JOB) == Progress(restart_seconds=3)


def test_work_is_saved_when_its_checkpoint_is_complete() -> None:
    begun = Progress().started(JOB)

    assert begun.after(10 + 31, JOB) == Progress(0, 31, 0), "one second into the checkpoint"
    assert begun.after(10 + 32, JOB) == Progress(30, 0, 0)
    assert begun.after(10 + 32 + 40, JOB) == Progress(60, 8, 0)


def test_an_interruption_leaves_what_is_saved() -> None:
    assert Progress(30, 29, 0).lost(JOB) == Progress(30)


def test_an_interruption_with_enough_warning_leaves_what_was_done_until_then() -> None:
    warned = Job(100, 200, 30, checkpoint_seconds=2, notice_seconds=5)

    assert Progress(30, 29, 0).lost(warned) == Progress(54)
    assert Progress(30, 4, 0).lost(warned) == Progress(30), "the notice came before the last checkpoint"
    assert Progress(30, 31, 0).left(warned) == Progress(60, 0, 2), "who leaves by himself pays for his save"


def test_who_leaves_saves_first_if_that_ends_sooner() -> None:
    assert Progress(30, 20, 0).left(JOB) == Progress(50, 0, 2)
    assert Progress(30, 1, 0).left(JOB) == Progress(30), "a second of work is not worth a checkpoint of two"


def test_the_checkpoint_before_leaving_is_paid_for_at_the_next_start() -> None:
    assert Progress(50, 0, 2).started(JOB) == Progress(50, 0, 12)


@given(st.integers(0, 115))
def test_time_passes_as_fast_as_the_rest_shrinks(seconds: int) -> None:
    begun = Progress().started(JOB)

    assert begun.to_finish_seconds(JOB) - begun.after(seconds, JOB).to_finish_seconds(JOB) == seconds


@pytest.mark.parametrize("deadline,feasible", [(116, True), (115, False)])
def test_a_deadline_is_feasible_when_on_demand_from_the_start_meets_it(deadline: int, feasible: bool) -> None:  # noqa: FBT001
    assert Job(100, deadline, 30, checkpoint_seconds=2, restart_seconds=10).feasible is feasible


@pytest.mark.parametrize("wrong", [{"work_seconds": 0}, {"checkpoint_interval_seconds": 0}, {"nodes": 0}, {"restart_seconds": -1}])
def test_a_job_that_cannot_be_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"must be 1 or more|must not be negative"):
        replace(JOB, **wrong)
