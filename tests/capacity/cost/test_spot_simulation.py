"""The closed forms against runs that were played, and the change to on-demand that no run may miss its deadline with."""

from __future__ import annotations

import statistics

import pytest

from capacity.cost.spot_arithmetic import SpotConditions, played_runs, spot_run

CASES = {
    "the course's": (72.0, 0.5, SpotConditions(0.25)),
    "checkpoints and restarts": (72.0, 0.5, SpotConditions(0.25, checkpoint_hours=2 / 60, restart_hours=10 / 60, wait_hours=0.5)),
    "a gang of eight": (24.0, 0.25, SpotConditions(0.1, nodes=8, checkpoint_hours=0.05, restart_hours=0.2, wait_hours=1)),
    "no checkpoints": (6.0, 6.0, SpotConditions(0.25, restart_hours=0.2)),
    "half of the warnings suffice": (48.0, 2.0, SpotConditions(0.4, checkpoint_hours=0.1, restart_hours=0.2, saved_share=0.5)),
    "all warnings suffice": (48.0, 48.0, SpotConditions(0.4, restart_hours=0.2, wait_hours=0.3, saved_share=1)),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_played_runs_agree_with_the_closed_form(case: str) -> None:
    work, interval, met = CASES[case]
    played = played_runs(work, interval, met, runs=2000)
    expected = spot_run(work, interval, met)

    # Four standard errors of the mean: a wrong formula is off by far more.
    spread = 4 * statistics.stdev(run.spot_hours for run in played) / 2000**0.5
    assert statistics.fmean(run.spot_hours for run in played) == pytest.approx(expected.billed_hours, abs=spread)
    waits = 4 * statistics.stdev(run.wall_hours for run in played) / 2000**0.5
    assert statistics.fmean(run.wall_hours for run in played) == pytest.approx(expected.wall_hours, abs=waits)
    struck = 4 * statistics.stdev(run.interruptions for run in played) / 2000**0.5
    assert statistics.fmean(run.interruptions for run in played) == pytest.approx(expected.interruptions, abs=struck)


@pytest.mark.parametrize("deadline", [25.5, 30.0, 60.0])
def test_a_run_that_changes_to_on_demand_is_never_late(deadline: float) -> None:
    met = SpotConditions(0.3, checkpoint_hours=0.05, restart_hours=0.2, wait_hours=2)
    played = played_runs(24, 1, met, runs=500, deadline_hours=deadline)

    assert max(run.wall_hours for run in played) <= deadline + 1e-9
    assert any(run.on_demand_hours for run in played)


def test_a_run_without_slack_is_on_demand_from_the_start() -> None:
    met = SpotConditions(0.3, restart_hours=0.2)

    (run,) = played_runs(24, 1, met, runs=1, deadline_hours=24.2)

    assert (run.spot_hours, run.on_demand_hours) == (0, 24.2)


def test_a_run_that_never_ends_is_given_up() -> None:
    (run,) = played_runs(1000, 1000, SpotConditions(1), runs=1)

    assert run.wall_hours == float("inf")
