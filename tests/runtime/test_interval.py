from __future__ import annotations

import math

import pytest
from flexspot_runtime import EverySeconds, InterruptionRate, LeastWaste, daly_seconds, young_seconds
from flexspot_runtime.schedule import History
from hypothesis import given
from hypothesis import strategies as st

HOUR = 3600.0


def time_per_second_of_work(interval: float, cost: float, between: float) -> float:
    """Return the exact value for interruptions at a constant rate, without restarts: Daly's equation 13 for free restarts."""
    if interval > 700 * between:
        return math.inf
    return between * math.expm1((interval + cost) / between) / interval


@given(cost=st.floats(0.1, 600.0), ratio=st.floats(4.0, 1e5))
def test_dalys_interval_wastes_hardly_more_than_the_best(cost: float, ratio: float) -> None:
    between = cost * ratio
    chosen = time_per_second_of_work(daly_seconds(cost, between), cost, between)
    best = min(time_per_second_of_work(cost * 10 ** (exponent / 100), cost, between) for exponent in range(-100, 600))

    assert chosen <= 1.01 * best


def test_the_figures_of_a_usual_job() -> None:
    """A checkpoint of 30 s, one interruption in 5 hours."""
    assert young_seconds(30, 5 * HOUR) == pytest.approx(1039.2, abs=0.1)
    assert daly_seconds(30, 5 * HOUR) == pytest.approx(1019.3, abs=0.1)


def test_where_a_checkpoint_outlives_the_machine_no_interval_helps() -> None:
    assert daly_seconds(100, 50) == 50
    assert daly_seconds(100, 20) == 20


def test_the_rate_starts_as_assumed_and_follows_observations() -> None:
    rate = InterruptionRate(per_hour=0.05, weight_hours=10)

    assert rate.seconds_between(History()) == pytest.approx(20 * HOUR)
    assert rate.seconds_between(History(starts=1, running_seconds=90 * HOUR)) == pytest.approx(200 * HOUR), "quiet days are believed"
    assert rate.seconds_between(History(starts=5, running_seconds=10 * HOUR)) == pytest.approx(20 / 4.5 * HOUR), "bad ones sooner"


@given(
    starts=st.integers(1, 1000),
    running_seconds=st.floats(0.0, 1e8),
    cost=st.none() | st.floats(0.001, 1e5),
)
def test_the_users_limits_apply_to_every_estimate(starts: int, running_seconds: float, cost: float | None) -> None:
    chosen = LeastWaste(least_seconds=60, most_seconds=900).seconds(cost, History(starts, running_seconds))

    assert 60 <= chosen <= 900


def test_a_cheaper_checkpoint_and_a_worse_machine_shorten_the_interval() -> None:
    interval = LeastWaste(least_seconds=1, most_seconds=1e6)
    usual = interval.seconds(30, History())

    assert interval.seconds(5, History()) < usual
    assert interval.seconds(30, History(starts=10, running_seconds=HOUR)) < usual


def test_a_fixed_interval_is_fixed() -> None:
    assert EverySeconds(300).seconds(12.0, History(starts=9)) == 300


@pytest.mark.parametrize(
    "make",
    [
        lambda: EverySeconds(0),
        lambda: LeastWaste(least_seconds=0),
        lambda: LeastWaste(least_seconds=100, most_seconds=50),
        lambda: InterruptionRate(per_hour=0),
        lambda: InterruptionRate(weight_hours=-1),
    ],
)
def test_intervals_and_rates_are_positive(make: object) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=r"above 0|is needed"):
        make()
