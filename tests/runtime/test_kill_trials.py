from __future__ import annotations

import logging

import pytest
from kill_trials import run_trials


@pytest.mark.kills
@pytest.mark.parametrize(
    "trials",
    [
        12,
        pytest.param(
            50, marks=pytest.mark.nightly(held_by="test_a_program_that_is_killed_at_random_moments_ends_with_the_result_of_one_that_is_not")
        ),
    ],
)
def test_a_program_that_is_killed_at_random_moments_ends_with_the_result_of_one_that_is_not(
    trials: int, caplog: pytest.LogCaptureFixture
) -> None:
    # A line for every torn file would hide what went wrong.
    caplog.set_level(logging.CRITICAL, logger="flexspot_runtime")
    events = run_trials(trials)

    assert events["ended with 0"] == trials
    # So that the trials were trials.
    assert events["killed during a save"] >= trials / 5
    assert events["ended with 143"] >= trials / 12
    assert min(events[f"damaged: {way}"] for way in ("marker", "data", "added")) >= trials / 12
