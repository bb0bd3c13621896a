"""Costs of units of work, with round figures; the sources' own figures are in test_seed_figures."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.cost.unit_costs import (
    gpu_hours_per_1000_requests,
    usd_per_1000_requests,
    usd_per_epoch,
    usd_per_idle_hour,
)


def test_forty_requests_a_second_take_25_seconds_of_a_gpu_for_a_thousand() -> None:
    assert gpu_hours_per_1000_requests(40) == pytest.approx(25 / 3600)


def test_a_service_that_is_busy_half_of_the_time_pays_twice_for_each_request() -> None:
    busy = usd_per_1000_requests(Decimal(3), 0.01)

    assert busy == Decimal("0.03")
    assert usd_per_1000_requests(Decimal(3), 0.01, 0.5) == 2 * busy


@given(st.decimals("0.01", "100", places=2), st.decimals("0.01", "100", places=2), st.integers(1, 64), st.floats(0.01, 1000))
def test_a_dearer_gpu_makes_nothing_cheaper(one: Decimal, other: Decimal, gpus: int, hours: float) -> None:
    cheap, dear = sorted((one, other))

    assert usd_per_epoch(cheap, gpus, hours) <= usd_per_epoch(dear, gpus, hours) <= usd_per_epoch(dear, gpus + 1, hours)
    assert usd_per_1000_requests(cheap, hours) <= usd_per_1000_requests(dear, hours)
    assert usd_per_idle_hour(cheap, gpus) <= usd_per_idle_hour(dear, gpus)
