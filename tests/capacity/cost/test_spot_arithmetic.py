"""The closed forms of Spot: cases worked out by hand, limits, and what must rise with what."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.cost.spot_arithmetic import SpotConditions, lost_hours_an_interruption, spot_run

CALM = SpotConditions(0.0, checkpoint_hours=0.1, restart_hours=0.5, wait_hours=2.0)

conditions = st.builds(
    SpotConditions,
    st.floats(0, 0.5),
    nodes=st.integers(1, 4),
    checkpoint_hours=st.floats(0, 0.2),
    restart_hours=st.floats(0, 0.5),
    wait_hours=st.floats(0, 4),
    saved_share=st.floats(0, 1),
)
works = st.floats(0.5, 200)
intervals = st.floats(0.05, 4)


def test_without_interruptions_only_the_checkpoints_are_added_and_none_after_the_end() -> None:
    run = spot_run(10, 2, CALM)

    assert run.billed_hours == pytest.approx(10.4), "five segments, four checkpoints"
    assert (run.wall_hours, run.interruptions, run.lost_hours) == (pytest.approx(10.4), 0, pytest.approx(0))


def test_free_checkpoints_and_restarts_leave_dalys_formula() -> None:
    """Mean time between interruptions 4 h, segments of half an hour: 4 (e^(1/8) - 1) = 0.53259 h each, 144 of them."""
    run = spot_run(72, 0.5, SpotConditions(0.25))

    assert run.billed_hours == pytest.approx(76.6935, abs=1e-4)
    assert run.interruptions == pytest.approx(76.6935 / 4, abs=1e-4)
    assert run.lost_hours == pytest.approx(4.6935, abs=1e-4)


def test_restarts_multiply_by_e_to_the_rate_by_the_restart() -> None:
    without = spot_run(72, 0.5, SpotConditions(0.25)).billed_hours

    assert spot_run(72, 0.5, SpotConditions(0.25, restart_hours=1)).billed_hours == pytest.approx(without * math.exp(0.25))


def test_when_every_warning_suffices_to_save_nothing_is_lost_but_the_restarts() -> None:
    run = spot_run(10, 10, SpotConditions(0.2, restart_hours=0.5, saved_share=1))

    assert run.billed_hours == pytest.approx(10 * math.exp(0.1))
    assert run.lost_hours == pytest.approx(0, abs=1e-9)


def test_waiting_is_not_billed_but_takes_time() -> None:
    run = spot_run(72, 0.5, SpotConditions(0.25, wait_hours=2))

    assert run.wall_hours == pytest.approx(run.billed_hours + 2 * run.interruptions)


def test_a_gang_is_interrupted_as_often_as_its_nodes_together() -> None:
    assert spot_run(10, 1, SpotConditions(0.05, nodes=8)) == spot_run(10, 1, SpotConditions(0.4))


def test_a_run_that_practically_never_ends_is_told_as_such() -> None:
    run = spot_run(1000, 1000, SpotConditions(0.25))

    assert not run.ends
    assert run.wall_hours == math.inf


def test_an_interruption_loses_a_little_less_than_half_of_the_interval() -> None:
    """The course says 15 minutes of 30; early interruptions are likelier than late ones: 4 - 0.5 / (e^(1/8) - 1) h, 14.69 minutes."""
    assert lost_hours_an_interruption(0.5, 0.25) * 60 == pytest.approx(14.6876, abs=1e-3)
    assert lost_hours_an_interruption(0.5, 1e-9) == 0.25


@given(work=works, interval=intervals, met=conditions)
def test_the_parts_add_up_and_none_is_negative(work: float, interval: float, met: SpotConditions) -> None:
    run = spot_run(work, interval, met)

    parts = run.work_hours + run.checkpoint_hours + run.lost_hours + run.restart_hours
    assert run.billed_hours == pytest.approx(parts) if run.ends else run.lost_hours == math.inf
    assert run.billed_hours >= work * (1 - 1e-9)


@given(work=works, interval=intervals, met=conditions, more=st.floats(0.01, 0.5))
def test_more_interruptions_longer_restarts_and_fewer_saves_never_cost_less(
    work: float, interval: float, met: SpotConditions, more: float
) -> None:
    billed = spot_run(work, interval, met).billed_hours * (1 - 1e-9)

    assert spot_run(work, interval, replace(met, interruptions_per_node_hour=met.interruptions_per_node_hour + more)).billed_hours >= billed
    assert spot_run(work, interval, replace(met, restart_hours=met.restart_hours + more)).billed_hours >= billed
    assert spot_run(work, interval, replace(met, saved_share=met.saved_share * (1 - more))).billed_hours >= billed
    assert spot_run(work * (1 + more), interval, met).billed_hours >= billed


@pytest.mark.parametrize(
    "wrong",
    [{"nodes": 0}, {"checkpoint_hours": -1.0}, {"wait_hours": math.nan}, {"interruptions_per_node_hour": math.inf}, {"saved_share": 1.1}],
)
def test_conditions_that_cannot_be_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"nodes must be|saved_share is"):
        replace(CALM, **wrong)  # pyrefly: ignore[bad-argument-type] -- fields of two types, by name


def test_a_run_without_work_is_refused() -> None:
    with pytest.raises(ValueError, match="must be above 0"):
        spot_run(0, 1, CALM)
