from __future__ import annotations

import logging

import pytest
from kill_trials import run_trials

TRIALS = 50


@pytest.mark.kills
def test_a_program_that_is_killed_at_random_moments_ends_with_the_result_of_one_that_is_not(caplog: pytest.LogCaptureFixture) -> None:
    # A line for every torn file would hide what went wrong.
    caplog.set_level(logging.CRITICAL, logger="flexspot_runtime")
    events = run_trials(TRIALS)

    assert events["ended with 0"] == TRIALS
    # So that the trials were trials.
    assert events["killed during a save"] >= TRIALS / 5
    assert events["ended with 143"] >= TRIALS / 10
    assert min(events[f"damaged: {way}"] for way in ("marker", "data", "added")) >= TRIALS / 10
