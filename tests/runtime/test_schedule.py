from __future__ import annotations

import math

import pytest
from flexspot_runtime import EverySeconds, EverySteps, LeastWaste, Timed
from flexspot_runtime.schedule import History


def started(schedule: Timed) -> Timed:
    schedule.begin(0, 0.0, History)
    return schedule


def test_steps_are_counted_from_zero_not_from_the_resumption() -> None:
    """So that all ranks save at the same steps, whichever they resumed from."""
    schedule = EverySteps(10)
    schedule.begin(13, 0.0, History)

    assert [step for step in range(14, 41) if schedule.due(step, 0.0)] == [20, 30, 40]


def test_a_step_that_is_saved_is_not_due_again() -> None:
    schedule = EverySteps(10)
    schedule.begin(0, 0.0, History)
    schedule.saved(10, 1.0, 1.0)

    assert not schedule.due(10, 1.0)


def test_an_interval_ends_with_the_last_step_that_fits() -> None:
    schedule = started(Timed(EverySeconds(10)))

    assert [schedule.due(step, 3.0 * step) for step in (1, 2, 3)] == [False, False, True]


def test_the_cost_of_checkpoints_is_learnt_and_changes_the_interval() -> None:
    schedule = started(Timed(LeastWaste(least_seconds=1, most_seconds=1e6, assumed_checkpoint_seconds=10)))
    assumed = schedule.interval_seconds
    schedule.saved(1, 50.0, 40.0)

    assert schedule.checkpoint_seconds == 40
    assert assumed
    assert schedule.interval_seconds
    assert schedule.interval_seconds > 1.5 * assumed

    schedule.saved(2, 100.0, 20.0)
    assert schedule.checkpoint_seconds == 30


def test_after_a_failure_tries_come_at_doubling_distances_up_to_the_interval() -> None:
    schedule = started(Timed(EverySeconds(100)))
    distances: list[float] = []
    now = 0.0
    for _ in range(5):
        schedule.failed(now)
        before = now
        while not schedule.due(1, now):
            now += 0.5
        distances.append(now - before)

    assert distances == [pytest.approx(each, abs=0.6) for each in (15, 30, 60, 100, 100)]

    schedule.saved(1, now, 1.0)
    schedule.failed(now)
    assert not schedule.due(1, now + 7)
    assert schedule.due(1, now + 14), "after a success it begins anew, and the next step would end after 15 s"


def test_nothing_is_due_before_the_start() -> None:
    schedule = Timed()

    assert schedule.interval_seconds == math.inf
    assert not schedule.due(1, 1e9)


def test_less_than_one_step_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        EverySteps(0)
