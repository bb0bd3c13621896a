"""Every strategy meets every feasible deadline on any record, and none costs less than knowing the future."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spot_traces import made_trace

from flexspot.capacity.cost.replay import STRATEGIES, Job, Rates, Trace, compare, omniscient_usd, replay, start_ticks

records = st.integers(1, 3).flatmap(
    lambda count: st.integers(2, 60).flatmap(
        lambda ticks: st.lists(st.lists(st.integers(0, 3), min_size=ticks, max_size=ticks), min_size=count, max_size=count)
    )
)


def zones_from(data: list[list[int]], gap: int) -> list[Trace]:
    return [Trace(f"zone-{number}", gap, tuple(each)) for number, each in enumerate(data)]


zones_of_time = st.builds(zones_from, records, st.sampled_from([60, 600, 1800]))
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


@given(zones=zones_of_time, job=jobs)
def test_a_strategy_meets_every_feasible_deadline(zones: list[Trace], job: Job) -> None:
    for name, strategy in STRATEGIES.items():
        outcome = replay(zones, job, Rates(Decimal(1), Decimal(3)), strategy)

        assert outcome.finish_seconds <= max(job.deadline_seconds, job.on_demand_seconds), name
        assert outcome.spot_seconds + outcome.on_demand_seconds >= job.work_seconds


@pytest.mark.slow
@settings(max_examples=60)
@given(zones=zones_of_time, job=jobs, spot=st.integers(1, 400))
def test_no_strategy_costs_less_than_knowing_the_future(zones: list[Trace], job: Job, spot: int) -> None:
    rates = Rates(Decimal(spot) / 100, Decimal("3.06"))
    bound = omniscient_usd(zones, job, rates, max(job.deadline_seconds, job.on_demand_seconds))

    for name, strategy in STRATEGIES.items():
        assert bound <= replay(zones, job, rates, strategy).usd, name


HOUR = 3600


def bound(available: tuple[int, ...], *, work: int, restart: int = 0) -> Decimal:
    """Return the bound for as many hours as the record has."""
    finish = len(available) * HOUR
    job = Job(work * HOUR, finish, HOUR, restart_seconds=restart)
    return omniscient_usd([Trace("t", HOUR, available)], job, Rates(Decimal(1), Decimal(3)), finish)


@pytest.mark.parametrize(
    "available,work,usd",
    [
        pytest.param((1,) * 10, 5, 5, id="Spot all the time"),
        pytest.param((0,) * 10, 5, 15, id="no Spot"),
        pytest.param((1, 1, 0, 0, 0, 0), 4, 2 + 2 * 3, id="what Spot cannot do in time, on-demand does"),
    ],
)
def test_it_is_tight_where_the_best_way_is_plain(available: tuple[int, ...], work: int, usd: int) -> None:
    assert abs(bound(available, work=work) - usd) < Decimal("1e-4")


@given(
    available=st.lists(st.integers(0, 1), min_size=2, max_size=5),
    work=st.integers(1, 5),
    restart=st.sampled_from([0, 900, 1800]),
)
def test_it_is_below_the_cheapest_of_all_ways(available: list[int], work: int, restart: int) -> None:
    """Compare all combinations of waiting, Spot and on-demand in the hours of a short record."""
    cheapest: int | None = None
    for way in product("-sd", repeat=len(available)):
        if any(place == "s" and not there for place, there in zip(way, available, strict=True)):
            continue
        starts = sum(place not in {"-", before} for before, place in zip(("-", *way), way, strict=False))
        if len(way) * HOUR - way.count("-") * HOUR - starts * restart >= work * HOUR:
            cost = way.count("s") + 3 * way.count("d")
            cheapest = cost if cheapest is None else min(cheapest, cost)
    if cheapest is not None:
        assert bound(tuple(available), work=work, restart=restart) <= cheapest


RATES = Rates(Decimal("0.918"), Decimal("3.06"))
JOB = Job(12 * 3600, 16 * 3600, 1800, checkpoint_seconds=60, restart_seconds=600)


@pytest.mark.parametrize("seed", range(2))
def test_over_many_starts_all_are_in_time_and_none_is_below_the_bound(seed: int) -> None:
    zones = [made_trace(seed * 10 + zone, ticks=800, up_hours=2, down_hours=2) for zone in range(2)]

    found = compare(zones, JOB, RATES, starts=4)

    assert found.starts == 4
    assert {each.missed for each in found.results.values()} == {0}
    assert all(found.bound_usd <= each.mean_usd for each in found.results.values())
    assert found.name.endswith("and 1 more")


def test_savings_are_against_on_demand() -> None:
    found = compare([Trace("always", 300, (1,) * 800)], JOB, RATES, starts=2).results

    assert found["on-demand"].saved_percent == 0
    assert found["Spot, then on-demand"].saved_percent == 70
    assert found["on-demand"].mean_finish_hours == pytest.approx(12 + 23 / 60 + 10 / 60)


def test_a_deadline_that_on_demand_misses_is_missed_by_all_at_its_cost() -> None:
    found = compare([Trace("never", 300, (0,) * 800)], replace(JOB, deadline_seconds=3600), RATES, starts=1)

    assert {(each.missed, each.saved_percent) for each in found.results.values()} == {(1, 0)}


def test_starts_are_spread_from_the_begin_to_the_last_that_has_a_whole_deadline() -> None:
    zones = [Trace("t", 3600, (1,) * 100)]

    assert start_ticks(zones, JOB, 4) == [0, 28, 56, 84]
    assert start_ticks(zones, JOB, 1) == [0]
    assert start_ticks(zones, replace(JOB, deadline_seconds=200 * 3600), 4) == [0]
