"""The best checkpoint interval: the published formulas, and that nothing near it is better."""

from __future__ import annotations

import pytest
from flexspot_runtime.interval import daly_seconds
from hypothesis import given
from hypothesis import strategies as st

from capacity.cost.spot_arithmetic import (
    SpotConditions,
    best_interval_hours,
    best_spot_run,
    daly_interval_hours,
    spot_run,
    young_interval_hours,
)


def test_youngs_interval_is_the_root_of_two_checkpoints_by_the_time_between() -> None:
    """Two minutes, four hours: the root of 2 * 2 * 240 is 30.98 minutes; the course's half hour is about right for that."""
    assert young_interval_hours(2 / 60, 0.25) * 60 == pytest.approx(30.984, abs=1e-3)


def test_dalys_interval_is_a_little_shorter() -> None:
    """30.984 (1 + 0.064550 / 3 + 0.0041667 / 9) - 2 = 29.665 minutes."""
    assert daly_interval_hours(2 / 60, 0.25) * 60 == pytest.approx(29.665, abs=1e-3)


@given(st.floats(0.001, 5), st.floats(0.01, 2))
def test_the_runtime_uses_the_same_formula(checkpoint_hours: float, rate: float) -> None:
    assert daly_interval_hours(checkpoint_hours, rate) == pytest.approx(daly_seconds(checkpoint_hours * 3600, 3600 / rate) / 3600)


@given(rate=st.floats(0.02, 1), checkpoint=st.floats(0.005, 0.3), saved=st.sampled_from([0.0, 0.3, 0.9]), factor=st.floats(0.3, 3))
def test_no_other_interval_is_noticeably_better(rate: float, checkpoint: float, saved: float, factor: float) -> None:
    """Of a run that is so long that its last segment does not matter."""
    met = SpotConditions(rate, checkpoint_hours=checkpoint, restart_hours=0.1, saved_share=saved)
    best = best_interval_hours(5000, met)

    assert spot_run(5000, best, met).billed_hours <= spot_run(5000, best * factor, met).billed_hours * 1.005


def test_a_run_that_is_short_beside_the_interruptions_needs_no_checkpoint() -> None:
    interval, run = best_spot_run(0.25, SpotConditions(0.05, checkpoint_hours=0.1))

    assert interval == 0.25
    assert run.checkpoint_hours == 0


@pytest.mark.parametrize("met", [SpotConditions(0), SpotConditions(1, checkpoint_hours=0.1, saved_share=1)])
def test_where_nothing_can_be_lost_there_is_no_checkpoint(met: SpotConditions) -> None:
    assert best_interval_hours(100, met) == 100


def test_free_checkpoints_are_taken_every_minute() -> None:
    assert best_interval_hours(100, SpotConditions(0.25)) == pytest.approx(1 / 60)
