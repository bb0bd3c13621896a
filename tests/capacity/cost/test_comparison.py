"""Strategies side by side."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from spot_traces import made_trace

from capacity.cost.comparison import compare, start_ticks
from capacity.cost.replay import Job, Rates, Trace
from capacity.cost.strategies import DEADLINE_AWARE

RATES = Rates(Decimal("0.918"), Decimal("3.06"))
JOB = Job(12 * 3600, 16 * 3600, 1800, checkpoint_seconds=60, restart_seconds=600)


@pytest.mark.parametrize("seed", range(2))
def test_over_many_starts_the_aware_are_in_time_and_nobody_is_below_the_bound(seed: int) -> None:
    zones = [made_trace(seed * 10 + zone, ticks=800, up_hours=2, down_hours=2) for zone in range(2)]

    found = compare(zones, JOB, RATES, starts=4)

    assert {each.starts for each in found.results} == {4}
    assert {each.missed for each in found.results if each.strategy in DEADLINE_AWARE} == {0}
    assert all(each.below_bound == 0 and each.mean_bound_usd <= each.mean_usd for each in found.results)
    assert found.name.endswith("and 1 more")


def test_savings_are_against_on_demand() -> None:
    found = compare([Trace("always", 300, (1,) * 800)], JOB, RATES, starts=2)

    by_name = {each.strategy: each for each in found.results}
    assert by_name["on-demand"].saved_percent == 0
    assert by_name["Spot, restarted"].saved_percent == 70
    assert by_name["on-demand"].mean_finish_hours == pytest.approx(12 + 23 / 60 + 10 / 60)


def test_what_has_not_ended_has_saved_nothing() -> None:
    found = compare([Trace("never", 300, (0,) * 800)], JOB, RATES, starts=1)

    restarted = next(each for each in found.results if each.strategy == "Spot, restarted")
    assert (restarted.saved_percent, restarted.mean_finish_hours, restarted.missed) == (None, None, 1)


def test_starts_are_spread_from_the_begin_to_the_last_that_has_a_whole_deadline() -> None:
    zones = [Trace("t", 3600, (1,) * 100)]

    assert start_ticks(zones, JOB, 4) == [0, 28, 56, 84]
    assert start_ticks(zones, JOB, 1) == [0]
    assert start_ticks(zones, replace(JOB, deadline_seconds=200 * 3600), 4) == [0]
