"""Deadline-aware strategies meet every deadline that can be met, on any record; nothing beats the one who knows the future."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.catalog.capacity_type import CapacityType
from capacity.cost.comparison import trials
from capacity.cost.replay import Job, Place, Rates, Seen, Strategy, Trace, View, replay
from capacity.cost.strategies import DEADLINE_AWARE, Adaptive, Paced, Spot, strategies

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
    notice_seconds=st.sampled_from([0, 300, 1000]),
)


def zones_from(data: list[list[int]], gap: int) -> list[Trace]:
    return [Trace(f"zone-{number}", gap, tuple(each)) for number, each in enumerate(data)]


@given(data=zones_of_time, gap=st.sampled_from([60, 600, 1800]), job=jobs)
def test_a_deadline_aware_strategy_meets_every_feasible_deadline(data: list[list[int]], gap: int, job: Job) -> None:
    zones = zones_from(data, gap)
    aware = [each for each in strategies(RATES, len(zones)) if each.name in DEADLINE_AWARE]

    assert len(aware) == (4 if len(zones) > 1 else 3)
    for strategy in aware:
        assert replay(zones, job, RATES, strategy).meets(job.deadline_seconds) or not job.feasible, strategy.name


@pytest.mark.slow
@settings(max_examples=60)
@given(data=zones_of_time, gap=st.sampled_from([600, 1800]), job=jobs, spot=st.integers(1, 400), flex=st.integers(1, 400))
def test_no_strategy_costs_less_than_knowing_the_future(data: list[list[int]], gap: int, job: Job, spot: int, flex: int) -> None:
    rates = Rates(Decimal(spot) / 100, Decimal("3.06"), Decimal(flex) / 100, flex_start_wait_seconds=1000)

    for trial in trials(zones_from(data, gap), job, rates):
        assert trial.bound_usd <= trial.outcome.usd, trial.outcome.strategy


@pytest.mark.slow
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


JOB = Job(10 * 3600, 14 * 3600, 1800, checkpoint_seconds=60, restart_seconds=600, notice_seconds=90)


def billed_hours(zone: Trace, strategy: Strategy) -> dict[CapacityType, float]:
    outcome = replay([zone], JOB, RATES, strategy)
    assert outcome.meets(JOB.deadline_seconds)
    return {each: seconds / 3600 for each, seconds in outcome.billed_seconds.items()}


def test_the_adaptive_one_goes_back_to_spot_where_the_greedy_one_has_no_time_left_for_it() -> None:
    """An outage at the begin that takes all slack, and Spot for the rest: who has waited to the last moment is on-demand to the end."""
    zone = Trace("late", 600, (0,) * 30 + (1,) * 200)

    greedy, adaptive = billed_hours(zone, Spot("g", falls_back=True)), billed_hours(zone, Adaptive())

    assert CapacityType.SPOT not in greedy
    assert adaptive[CapacityType.SPOT] > 7


def test_the_adaptive_one_buys_no_on_demand_where_waiting_will_do() -> None:
    """An outage of an hour in the middle; who keeps an even pace is on-demand through it."""
    zone = Trace("hour", 600, (1,) * 12 + (0,) * 6 + (1,) * 200)

    assert CapacityType.ON_DEMAND not in billed_hours(zone, Adaptive())


def test_the_adaptive_one_leaves_spot_alone_where_it_never_stays_as_long_as_a_restart_is_worth() -> None:
    zone = Trace("flicker", 600, (1, 0) * 200)

    adaptive = billed_hours(zone, Adaptive())

    assert adaptive[CapacityType.SPOT] < 2
    assert adaptive[CapacityType.ON_DEMAND] < 11


def test_what_a_strategy_sees_is_what_was_before_its_tick() -> None:
    """Two zones, half an hour a tick: 1 and 2, 2 alone, none, none, 1."""
    views: list[View] = []

    class Watcher:
        name = "watcher"

        def choose(self, view: View) -> Place | None:
            views.append(view)

    replay([Trace("a", 1800, (1, 0, 0, 0, 1)), Trace("b", 1800, (1, 1, 0, 0, 0))], replace(JOB, deadline_seconds=36_001), RATES, Watcher())

    assert views[0].seen == Seen()
    assert views[1].seen == Seen(1800, 0, 0, 0, 3600, 1)
    assert views[2].seen == Seen(3600, 0, 1, 0, 5400, 2)
    assert views[4].seen == Seen(3600, 3600, 1, 1, 5400, 2)


@pytest.mark.parametrize("rates,zones,count", [(RATES, 1, 6), (RATES, 2, 8), (Rates(Decimal(1), Decimal(2)), 1, 5)])
def test_flex_start_needs_a_price_and_several_zones_need_several(rates: Rates, zones: int, count: int) -> None:
    assert len(strategies(rates, zones)) == count
