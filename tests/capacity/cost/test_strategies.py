"""Deadline-aware strategies meet every deadline that can be met, on any record; nothing beats the one who knows the future."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spot_traces import made_trace

from capacity.catalog.capacity_type import CapacityType
from capacity.cost.comparison import trials
from capacity.cost.replay import Job, Rates, Trace, replay
from capacity.cost.strategies import DEADLINE_AWARE, Paced, Spot, strategies

RATES = Rates(Decimal("1.17"), Decimal("3.06"), Decimal("1.50"), flex_start_wait_seconds=7200)

zones_of_time = st.integers(1, 3).flatmap(
    lambda count: st.integers(2, 60).flatmap(
        lambda ticks: st.lists(st.lists(st.integers(0, 3), min_size=ticks, max_size=ticks), min_size=count, max_size=count)
    )
)
jobs = st.builds(
    Job,
    work_seconds=st.integers(1, 40_000),
    deadline_seconds=st.integers(1, 90_000),
    checkpoint_interval_seconds=st.integers(1, 7000),
    nodes=st.integers(1, 3),
    checkpoint_seconds=st.integers(0, 300),
    restart_seconds=st.integers(0, 2500),
    saves_on_warning=st.booleans(),
)


def zones_from(data: list[list[int]], gap: int) -> list[Trace]:
    return [Trace(f"zone-{number}", gap, tuple(each)) for number, each in enumerate(data)]


@given(data=zones_of_time, gap=st.sampled_from([60, 600, 1800]), job=jobs)
def test_a_deadline_aware_strategy_meets_every_feasible_deadline(data: list[list[int]], gap: int, job: Job) -> None:
    zones = zones_from(data, gap)
    aware = [each for each in strategies(RATES, len(zones)) if each.name in DEADLINE_AWARE]

    assert len(aware) == (3 if len(zones) > 1 else 2)
    for strategy in aware:
        assert replay(zones, job, RATES, strategy).meets(job.deadline_seconds) or not job.feasible, strategy.name


@settings(max_examples=60)
@given(data=zones_of_time, gap=st.sampled_from([600, 1800]), job=jobs, spot=st.integers(1, 400), flex=st.integers(1, 400))
def test_no_strategy_costs_less_than_knowing_the_future(data: list[list[int]], gap: int, job: Job, spot: int, flex: int) -> None:
    rates = Rates(Decimal(spot) / 100, Decimal("3.06"), Decimal(flex) / 100, flex_start_wait_seconds=1000)

    for trial in trials(zones_from(data, gap), job, rates):
        assert trial.bound_usd <= trial.outcome.usd, trial.outcome.strategy


@settings(max_examples=30)
@given(data=zones_of_time, job=jobs)
def test_billed_time_covers_the_work(data: list[list[int]], job: Job) -> None:
    for trial in trials(zones_from(data, 600), job, RATES):
        assert sum(trial.outcome.billed_seconds.values()) >= trial.outcome.work_seconds


def test_spot_that_falls_back_changes_once_and_stays() -> None:
    """Spot for two hours, none for long, and again near the end: it is on-demand by then and does not come back."""
    zone = Trace("gap", 3600, (1, 1, 0, 0, 0, 0, 1, 1, 1, 1))
    job = Job(6 * 3600, 8 * 3600, 1800, restart_seconds=600)

    outcome = replay([zone], job, RATES, Spot("s", falls_back=True))

    assert outcome.meets(job.deadline_seconds)
    assert outcome.billed_seconds.keys() == {CapacityType.SPOT, CapacityType.ON_DEMAND}
    assert (outcome.interruptions, outcome.restarts) == (1, 1)


def test_the_paced_one_returns_to_spot() -> None:
    zone = Trace("late", 600, (0,) * 30 + (1,) * 200)
    job = Job(10 * 3600, 14 * 3600, 1800, restart_seconds=300)

    outcome = replay([zone], job, RATES, Paced())

    assert outcome.meets(job.deadline_seconds)
    assert outcome.billed_seconds[CapacityType.SPOT] > 5 * 3600
    assert outcome.billed_seconds[CapacityType.ON_DEMAND] > 0


@pytest.mark.parametrize("rates,zones,count", [(RATES, 1, 5), (RATES, 2, 7), (Rates(Decimal(1), Decimal(2)), 1, 4)])
def test_flex_start_needs_a_price_and_several_zones_need_several(rates: Rates, zones: int, count: int) -> None:
    assert len(strategies(rates, zones)) == count


def test_plentiful_spot_costs_spot_and_scarce_spot_on_demand() -> None:
    job = Job(24 * 3600, 30 * 3600, 1800, restart_seconds=600)
    plenty, scarce = (
        replay([made_trace(1, ticks=500, up_hours=up, down_hours=1)], job, RATES, Spot("s", falls_back=True)) for up in (500, 0.05)
    )

    assert plenty.billed_seconds.keys() == {CapacityType.SPOT}
    assert scarce.billed_seconds[CapacityType.ON_DEMAND] > 20 * 3600
