"""The closed forms of Spot: by hand, at limits, and against simulated runs; and the point at which Spot stops paying."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace
from decimal import Decimal

import pytest
from flexspot_runtime.schedule import daly_seconds
from hypothesis import example, given
from hypothesis import strategies as st

from flexspot.capacity.cost.spot_arithmetic import (
    SpotConditions,
    best_interval_hours,
    best_spot_run,
    break_even_interruptions_per_node_hour,
    break_even_usd_per_hour,
    daly_interval_hours,
    late_share,
    late_share_at_most,
    played_runs,
    spot_run,
    usd_per_useful_hour,
    value_of_an_hour_sooner,
)

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


def test_a_run_that_practically_never_ends_is_reported_as_such() -> None:
    run = spot_run(1000, 1000, SpotConditions(0.25))

    assert not run.ends
    assert run.wall_hours == math.inf


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
def test_impossible_conditions_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"nodes must be|saved_share is"):
        replace(CALM, **wrong)  # pyrefly: ignore[bad-argument-type] -- fields of two types, by name


def test_a_run_without_work_is_refused() -> None:
    with pytest.raises(ValueError, match="must be above 0"):
        spot_run(0, 1, CALM)


def test_dalys_interval_is_that_of_two_minutes_each_four_hours_by_hand() -> None:
    """Young's is the root of 2 * 2 * 240, 30.984 minutes; Daly's: 30.984 (1 + 0.064550 / 3 + 0.0041667 / 9) - 2 = 29.665 minutes."""
    assert daly_interval_hours(2 / 60, 0.25) * 60 == pytest.approx(29.665, abs=1e-3)


@given(st.floats(0.001, 5), st.floats(0.01, 2))
def test_the_runtime_uses_the_same_formula(checkpoint_hours: float, rate: float) -> None:
    assert daly_interval_hours(checkpoint_hours, rate) == pytest.approx(daly_seconds(checkpoint_hours * 3600, 3600 / rate) / 3600)


@example(rate=0.25, checkpoint=2 / 60, saved=0.3, factor=2)
@given(rate=st.floats(0.02, 1), checkpoint=st.floats(0.005, 0.3), saved=st.sampled_from([0.0, 0.3, 0.9]), factor=st.floats(0.3, 3))
def test_no_other_interval_is_noticeably_better(rate: float, checkpoint: float, saved: float, factor: float) -> None:
    """The run is so long that its last segment does not matter."""
    met = SpotConditions(rate, checkpoint_hours=checkpoint, restart_hours=0.1, saved_share=saved)
    best = best_interval_hours(5000, met)

    assert spot_run(5000, best, met).billed_hours <= spot_run(5000, best * factor, met).billed_hours * 1.005


def test_checkpoints_are_rarer_where_interruptions_leave_time_to_save() -> None:
    seldom, often = (SpotConditions(0.25, checkpoint_hours=2 / 60, restart_hours=0.1, saved_share=share) for share in (0.9, 0.3))

    assert best_interval_hours(5000, seldom) > best_interval_hours(5000, often) > daly_interval_hours(2 / 60, 0.25)


def test_a_run_much_shorter_than_the_time_between_interruptions_needs_no_checkpoint() -> None:
    interval, run = best_spot_run(0.25, SpotConditions(0.05, checkpoint_hours=0.1))

    assert interval == 0.25
    assert run.checkpoint_hours == 0


@pytest.mark.parametrize("met", [SpotConditions(0), SpotConditions(1, checkpoint_hours=0.1, saved_share=1)])
def test_where_nothing_can_be_lost_there_is_no_checkpoint(met: SpotConditions) -> None:
    assert best_interval_hours(100, met) == 100


def test_free_checkpoints_are_taken_every_minute() -> None:
    assert best_interval_hours(100, SpotConditions(0.25)) == pytest.approx(1 / 60)


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


SPOT, ON_DEMAND = Decimal("12.50"), Decimal("32.77")


def test_a_run_that_never_ends_has_no_price_at_which_it_pays() -> None:
    never = spot_run(1000, 1000, SpotConditions(1))

    assert usd_per_useful_hour(SPOT, never) is None
    assert break_even_usd_per_hour(ON_DEMAND, never) == 0


def test_at_the_break_even_rate_both_cost_the_same() -> None:
    rate = break_even_interruptions_per_node_hour(72, MET, SPOT, ON_DEMAND)

    effective = usd_per_useful_hour(SPOT, best_spot_run(72, replace(MET, interruptions_per_node_hour=rate))[1])

    assert effective is not None
    assert float(effective) == pytest.approx(32.77, rel=1e-3)


def test_twice_the_nodes_tolerate_half_the_interruptions() -> None:
    one = break_even_interruptions_per_node_hour(72, MET, SPOT, ON_DEMAND)

    assert break_even_interruptions_per_node_hour(72, replace(MET, nodes=2), SPOT, ON_DEMAND) == pytest.approx(one / 2)


def test_spot_that_is_no_cheaper_never_pays_and_free_recovery_always_does() -> None:
    assert break_even_interruptions_per_node_hour(72, MET, ON_DEMAND, ON_DEMAND) == 0
    assert break_even_interruptions_per_node_hour(72, SpotConditions(0.25, saved_share=1), SPOT, ON_DEMAND) == 3600


@given(st.decimals("0.01", "32", places=2), st.decimals("0.01", "32", places=2))
def test_a_dearer_spot_price_tolerates_no_more_interruptions(one: Decimal, other: Decimal) -> None:
    cheap, dear = sorted((one, other))

    limits = [break_even_interruptions_per_node_hour(20, MET, price, ON_DEMAND) for price in (cheap, dear)]

    assert limits[0] >= limits[1]


def test_waiting_pays_while_an_hour_is_worth_less_than_what_it_saves() -> None:
    assert value_of_an_hour_sooner(Decimal(400), Decimal(1000), 12) == Decimal(50)
    assert value_of_an_hour_sooner(Decimal(400), Decimal(1000), 0) is None


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
