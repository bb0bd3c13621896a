"""The risk of being late: its bound, its limits, and the last moment to change."""

from __future__ import annotations

import pytest

from capacity.cost.spot_arithmetic import SpotConditions, late_share, late_share_at_most, latest_change_hours

MET = SpotConditions(0.25, checkpoint_hours=2 / 60, restart_hours=10 / 60, wait_hours=0.5)


@pytest.mark.slow
@pytest.mark.parametrize("deadline", [75.0, 97.0, 160.0])
def test_the_bound_is_above_what_was_played(deadline: float) -> None:
    assert late_share(72, 0.5, MET, deadline) <= late_share_at_most(72, 0.5, MET, deadline) + 0.02


def test_a_later_deadline_is_never_riskier() -> None:
    risks = [round(late_share_at_most(72, 0.5, MET, deadline), 9) for deadline in range(70, 200, 5)]

    assert risks == sorted(risks, reverse=True)
    assert risks[0] == 1
    assert risks[-1] < 0.01


@pytest.mark.slow
def test_a_deadline_before_the_undisturbed_end_is_missed_for_sure() -> None:
    assert late_share_at_most(72, 0.5, MET, 72) == 1
    assert late_share(72, 0.5, MET, 72) == 1


def test_without_interruptions_nothing_is_late() -> None:
    calm = SpotConditions(0)

    assert late_share_at_most(72, 72, calm, 72) == 0
    assert late_share(72, 72, calm, 72) == 0


def test_one_chance_in_e_by_hand() -> None:
    """One hour, one interruption an hour, no slack: on time only without any, e^-1; late with 1 - 0.3679."""
    assert late_share_at_most(1, 1, SpotConditions(1), 1.5) == pytest.approx(0.632, abs=1e-3)


def test_a_run_that_never_ends_is_late() -> None:
    assert late_share(1000, 1000, SpotConditions(1), 1e6) == 1


def test_the_last_moment_leaves_a_restart_the_work_and_its_checkpoints() -> None:
    """Ten hours left with four checkpoints of 0.1 h and a restart of half an hour, due in 24 h."""
    met = SpotConditions(0.25, checkpoint_hours=0.1, restart_hours=0.5)

    assert latest_change_hours(10, 2, met, 24) == pytest.approx(24 - 10.9)
