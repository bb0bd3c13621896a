"""A job played by hand through a short record: every second and cent of it."""

from __future__ import annotations

from decimal import Decimal

import pytest

from capacity.catalog.capacity_type import CapacityType
from capacity.cost.replay import ON_DEMAND, Job, Rates, Trace, replay
from capacity.cost.strategies import AlwaysOnDemand, FlexStart, Spot

SPOT = CapacityType.SPOT
RATES = Rates(Decimal("3.60"), Decimal(36))
# Two hours of work, a checkpoint without cost every half hour, ten minutes to start.
JOB = Job(7200, 100_000, 1800, nodes=2, restart_seconds=600)


def hours(*nodes: int) -> Trace:
    return Trace("hand", 3600, nodes)


def test_spot_without_interruption() -> None:
    outcome = replay([hours(2, 2, 2, 2)], JOB, RATES, Spot("Spot"))

    assert outcome.finish_seconds == 7800
    assert outcome.billed_seconds == {SPOT: 7800}
    assert outcome.usd == Decimal("15.60"), "2.1667 h on two nodes at 3.60"
    assert (outcome.interruptions, outcome.restarts) == (0, 0)


def test_an_interruption_loses_what_is_not_saved_and_restarts() -> None:
    """First hour: 50 minutes of work, 30 of them saved. Second hour: nothing. From the third on a restart and the other 90 minutes."""
    outcome = replay([hours(2, 0, 2, 2, 2)], JOB, RATES, Spot("Spot"))

    assert outcome.finish_seconds == 2 * 3600 + 600 + 5400
    assert outcome.billed_seconds == {SPOT: 3600 + 6000}
    assert (outcome.interruptions, outcome.restarts) == (1, 1)


def test_a_gang_does_not_run_with_fewer_nodes() -> None:
    assert replay([hours(1, 1, 2, 2, 2)], JOB, RATES, Spot("Spot")).finish_seconds == 2 * 3600 + 7800


def test_a_job_that_outlives_its_record_has_not_ended() -> None:
    outcome = replay([hours(2, 0)], JOB, RATES, Spot("Spot"))

    assert outcome.finish_seconds is None
    assert outcome.work_seconds == 1800
    assert not outcome.meets(JOB.deadline_seconds)


def test_work_done_until_the_notice_counts_where_the_job_saves_then() -> None:
    """50 minutes of work in the first hour, the last 90 s of them after the notice: 2,910 s are kept, 30 minutes without."""
    warned = Job(7200, 100_000, 1800, nodes=2, restart_seconds=600, notice_seconds=90)

    assert replay([hours(2, 0, 2, 2, 2)], warned, RATES, Spot("Spot")).finish_seconds == 2 * 3600 + 600 + 7200 - 2910


def test_a_checkpoint_that_does_not_fit_into_the_notice_is_no_save() -> None:
    with pytest.raises(ValueError, match="a checkpoint must fit into the notice"):
        Job(7200, 100_000, 1800, checkpoint_seconds=91, notice_seconds=90)


def test_on_demand_is_there_beyond_the_record() -> None:
    outcome = replay([hours(0, 0)], JOB, RATES, AlwaysOnDemand())

    assert (outcome.finish_seconds, outcome.usd) == (7800, Decimal(156))


def test_flex_start_waits_in_whole_ticks_and_then_runs() -> None:
    rates = Rates(Decimal("3.60"), Decimal(36), Decimal(18), flex_start_wait_seconds=4000)

    outcome = replay([hours(0, 0, 0)], JOB, rates, FlexStart())

    assert outcome.finish_seconds == 2 * 3600 + 7800
    assert outcome.usd == Decimal(78)


def test_flex_start_asks_again_when_its_time_is_over() -> None:
    """One hour of capacity after each hour of waiting: 50, then 50, then 20 minutes of work; nothing is lost at a known end."""
    rates = Rates(Decimal("3.60"), Decimal(36), Decimal(18), flex_start_wait_seconds=3600, flex_start_limit_seconds=3600)

    outcome = replay([hours(0)], JOB, rates, FlexStart())

    assert outcome.finish_seconds == 5 * 3600 + 600 + 1200
    assert (outcome.restarts, outcome.interruptions) == (2, 0)


def test_another_zone_is_taken_where_the_first_has_none() -> None:
    outcome = replay([hours(2, 0, 0, 0), hours(0, 2, 2, 2)], JOB, RATES, Spot("any", any_zone=True))

    assert outcome.finish_seconds == 3600 + 600 + 5400
    assert outcome.interruptions == 1


def test_the_last_safe_tick_is_the_one_after_which_on_demand_still_ends_in_time() -> None:
    """A restart and two hours are 7,800 s: at 10:00 with the deadline at 13:00 one more hour may be waited, with 12:50 it may not."""
    zones = [hours(0, 0, 0, 0)]
    late_start = Job(7200, 3600 + 7800, 1800, restart_seconds=600)
    at_once = Job(7200, 3599 + 7800, 1800, restart_seconds=600)

    assert replay(zones, late_start, RATES, Spot("s", falls_back=True)).finish_seconds == 3600 + 7800
    assert replay(zones, at_once, RATES, Spot("s", falls_back=True)).finish_seconds == 7800
    assert ON_DEMAND.capacity_type is CapacityType.ON_DEMAND
