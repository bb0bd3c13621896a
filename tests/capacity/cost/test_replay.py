"""Traces of Spot, progress of a job, and jobs replayed by hand through short traces, to the second and cent."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spot_traces import write_trace

from flexspot.capacity.cost.replay import STRATEGIES, Job, JobProgress, Rates, ReplayOutcome, Trace, read_trace, read_traces, replay
from flexspot.capacity.values.errors import ExitCode, ExplainedError

if TYPE_CHECKING:
    from pathlib import Path


HAND = Trace("hand", 1800, (2, 2, 1, 1, 0, 0, 2, 1, 0, 1))


def test_a_written_trace_is_read_again(tmp_path: Path) -> None:
    write_trace(HAND, tmp_path / "hand.json")

    assert read_trace(tmp_path / "hand.json") == HAND
    assert (HAND.available_share(1), HAND.available_share(2)) == (0.7, 0.3)


@pytest.mark.parametrize(
    "text,problem",
    [
        ('{"metadata": {"gap_seconds": 30}, "data": [1]}', "data: List should have at least 2 items"),
        ('{"metadata": {"gap_seconds": 0}, "data": [1, 1]}', "metadata.gap_seconds: Input should be greater than"),
        ('{"metadata": {"gap_seconds": 30}, "data": [1, -1]}', "data.1: Input should be greater than"),
        ('{"metadata": {"gap_seconds": 30}, "data": [1, "x"]}', "data.1: Input should be a valid integer"),
        ('{"data": [1, 1]}', "metadata: Field required"),
        ("[1, 0", "(whole file): Invalid JSON"),
    ],
)
def test_an_invalid_trace_is_reported_with_its_place(text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "wrong.json").write_text(text)

    with pytest.raises(ExplainedError, match="is not a trace") as refused:
        read_trace(tmp_path / "wrong.json")

    assert problem in "\n".join(refused.value.evidence)
    assert refused.value.exit_code is ExitCode.BAD_USAGE
    assert "gap_seconds" in refused.value.remedy


def test_traces_of_one_folder_gap_and_machine_are_zones_as_long_as_the_shortest(tmp_path: Path) -> None:
    written = {"a/one_k80": (10, 300), "a/two_k80": (7, 300), "a/slow_k80": (9, 600), "a/one_v100": (8, 300), "b/one_k80": (5, 300)}
    for name, (ticks, gap) in written.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write_trace(Trace(name, gap, (1,) * ticks), tmp_path / f"{name}.json")

    found = [[(each.name, len(each.available)) for each in zones] for zones in read_traces(tmp_path)]

    assert found == [[("a/one_k80", 7), ("a/two_k80", 7)], [("a/one_v100", 8)], [("a/slow_k80", 9)], [("b/one_k80", 5)]]


# A hundred seconds of work, a checkpoint of 2 s after every 30 s, 10 s until a new machine works.
SHORT = Job(100, 200, 30, checkpoint_seconds=2, restart_seconds=10)


def test_the_whole_job_takes_a_restart_the_work_and_three_checkpoints() -> None:
    assert JobProgress().started(SHORT).to_finish_seconds(SHORT) == 10 + 100 + 3 * 2


def test_nothing_is_done_during_a_restart() -> None:
    assert JobProgress().started(SHORT).after(7, SHORT) == JobProgress(restart_seconds=3)


def test_work_is_saved_when_its_checkpoint_is_complete() -> None:
    started = JobProgress().started(SHORT)

    assert started.after(10 + 31, SHORT) == JobProgress(0, 31, 0), "one second into the checkpoint"
    assert started.after(10 + 32, SHORT) == JobProgress(30, 0, 0)
    assert started.after(10 + 32 + 40, SHORT) == JobProgress(60, 8, 0)


def test_an_interruption_leaves_what_is_saved() -> None:
    assert JobProgress(30, 29, 0).lost(SHORT) == JobProgress(30)


def test_an_interruption_with_enough_warning_leaves_what_was_done_until_then() -> None:
    warned = Job(100, 200, 30, checkpoint_seconds=2, notice_seconds=5)

    assert JobProgress(30, 29, 0).lost(warned) == JobProgress(54)
    assert JobProgress(30, 4, 0).lost(warned) == JobProgress(30), "the notice came before the last checkpoint"
    assert JobProgress(30, 31, 0).left(warned) == JobProgress(60, 0, 2), "a job that leaves voluntarily pays for its checkpoint"


def test_a_job_that_leaves_saves_first_if_that_ends_sooner() -> None:
    assert JobProgress(30, 20, 0).left(SHORT) == JobProgress(50, 0, 2)
    assert JobProgress(30, 1, 0).left(SHORT) == JobProgress(30), "a second of work is not worth a checkpoint of two"


def test_the_checkpoint_before_leaving_is_paid_for_at_the_next_start() -> None:
    assert JobProgress(50, 0, 2).started(SHORT) == JobProgress(50, 0, 12)


@given(st.integers(0, 115))
def test_time_passes_as_fast_as_the_rest_shrinks(seconds: int) -> None:
    started = JobProgress().started(SHORT)

    assert started.to_finish_seconds(SHORT) - started.after(seconds, SHORT).to_finish_seconds(SHORT) == seconds


@pytest.mark.parametrize("deadline,feasible", [(116, True), (115, False)])
def test_a_deadline_is_feasible_when_on_demand_from_the_start_meets_it(deadline: int, feasible: bool) -> None:  # noqa: FBT001
    assert Job(100, deadline, 30, checkpoint_seconds=2, restart_seconds=10).feasible is feasible


@pytest.mark.parametrize("wrong", [{"work_seconds": 0}, {"checkpoint_interval_seconds": 0}, {"nodes": 0}, {"restart_seconds": -1}])
def test_an_impossible_job_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"must be 1 or more|must not be negative"):
        replace(SHORT, **wrong)


# Two hours of work, a checkpoint without cost every half hour, ten minutes to start.
JOB = Job(7200, 100_000, 1800, nodes=2, restart_seconds=600)


def played(*zones: tuple[int, ...], job: Job = JOB, strategy: str = "Spot, then on-demand") -> ReplayOutcome:
    return replay([Trace("hand", 3600, each) for each in zones], job, Rates(Decimal("3.60"), Decimal(36)), STRATEGIES[strategy])


def test_spot_without_interruption() -> None:
    assert played((2, 2, 2, 2)) == ReplayOutcome(7800, 7800, 0, 0, Decimal("15.60")), "2.1667 h on two nodes at 3.60"


def test_an_interruption_loses_what_is_not_saved_and_restarts() -> None:
    """First hour: 50 minutes of work, 30 of them saved. Second hour: nothing. From the third hour on a restart and the other 90 minutes."""
    outcome = played((2, 0, 2, 2, 2))

    assert outcome.finish_seconds == 2 * 3600 + 600 + 5400
    assert (outcome.spot_seconds, outcome.interruptions) == (3600 + 6000, 1)


def test_a_gang_does_not_run_with_fewer_nodes() -> None:
    assert played((1, 1, 2, 2, 2)).finish_seconds == 2 * 3600 + 7800


def test_work_done_until_the_notice_counts_where_the_job_saves_then() -> None:
    """50 minutes of work in the first hour, the last 90 s of them after the notice:

    2,910 s are kept with a checkpoint, 30 minutes without.
    """
    warned = Job(7200, 100_000, 1800, nodes=2, restart_seconds=600, notice_seconds=90)

    assert played((2, 0, 2, 2, 2), job=warned).finish_seconds == 2 * 3600 + 600 + 7200 - 2910


def test_a_checkpoint_that_does_not_fit_into_the_notice_is_no_save() -> None:
    with pytest.raises(ValueError, match="a checkpoint must fit into the notice"):
        Job(7200, 100_000, 1800, checkpoint_seconds=91, notice_seconds=90)


def test_on_demand_is_there_beyond_the_record() -> None:
    assert played((0, 0), strategy="on-demand") == ReplayOutcome(7800, 0, 7800, 0, Decimal(156))


def test_another_zone_is_taken_where_the_first_has_none() -> None:
    outcome = played((2, 0, 0, 0), (0, 2, 2, 2))

    assert (outcome.finish_seconds, outcome.interruptions) == (3600 + 600 + 5400, 1)


@pytest.mark.parametrize("deadline,waited", [(3600 + 7800, 3600), (3599 + 7800, 0)])
def test_the_last_safe_tick_is_the_one_after_which_on_demand_still_ends_in_time(deadline: int, waited: int) -> None:
    """A restart and two hours are 7,800 s: at 10:00 with the deadline at 13:10 another hour of waiting is safe, a second earlier not."""
    outcome = played((0, 0, 0, 0), job=Job(7200, deadline, 1800, restart_seconds=600))

    assert outcome.finish_seconds == waited + 7800


def test_the_greedy_one_changes_once_and_stays() -> None:
    """Spot for two hours, none for long, and again near the end: the job is on demand by then and does not return."""
    outcome = played((1, 1, 0, 0, 0, 0, 1, 1, 1, 1), job=Job(6 * 3600, 8 * 3600, 1800, restart_seconds=600))

    assert outcome.finish_seconds <= 8 * 3600
    assert outcome.spot_seconds == 7200
    assert (outcome.on_demand_seconds > 0, outcome.interruptions) == (True, 1)


def test_uniform_progress_returns_to_spot() -> None:
    job = Job(10 * 3600, 14 * 3600, 1800, restart_seconds=300)
    outcome = played((0,) * 5 + (1,) * 40, job=job, strategy="uniform progress")

    assert outcome.finish_seconds <= job.deadline_seconds
    assert outcome.spot_seconds > 5 * 3600
    assert outcome.on_demand_seconds > 0
