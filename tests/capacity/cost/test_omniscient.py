"""The bound of the one who knows the future: tight where the best way is plain, never above it."""

from __future__ import annotations

from decimal import Decimal
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from capacity.cost.replay import Job, Rates, Trace
from capacity.cost.strategies import omniscient_usd

RATES = Rates(Decimal(1), Decimal(3))
HOUR = 3600


def bound(available: tuple[int, ...], *, work: int, finish: int, restart: int = 0, rates: Rates = RATES) -> Decimal:
    job = Job(work, finish, HOUR, restart_seconds=restart)
    return omniscient_usd([Trace("t", HOUR, available)], job, rates, work_seconds=work, finish_seconds=finish)


def test_with_spot_all_the_time_it_is_the_spot_price() -> None:
    assert abs(bound((1,) * 10, work=5 * HOUR, finish=10 * HOUR) - 5) < Decimal("1e-4")


def test_without_spot_it_is_the_on_demand_price() -> None:
    assert abs(bound((0,) * 10, work=5 * HOUR, finish=10 * HOUR) - 15) < Decimal("1e-4")


def test_what_spot_cannot_do_in_time_on_demand_does() -> None:
    assert abs(bound((1, 1, 0, 0, 0, 0), work=4 * HOUR, finish=6 * HOUR) - (2 + 2 * 3)) < Decimal("1e-4")


def test_flex_start_counts_where_it_has_a_price() -> None:
    flex = Rates(Decimal(1), Decimal(3), Decimal("0.5"), flex_start_wait_seconds=HOUR)

    assert abs(bound((1,) * 10, work=5 * HOUR, finish=10 * HOUR, rates=flex) - Decimal("2.5")) < Decimal("1e-4")


@given(
    available=st.lists(st.integers(0, 1), min_size=2, max_size=5),
    work=st.integers(1, 5),
    restart=st.sampled_from([0, 900, 1800]),
)
def test_it_is_below_the_cheapest_of_all_ways(available: list[int], work: int, restart: int) -> None:
    """Every way to be nowhere, on Spot or on on-demand in each hour of a short record."""
    cheapest: int | None = None
    for way in product("-sd", repeat=len(available)):
        if any(place == "s" and not there for place, there in zip(way, available, strict=True)):
            continue
        starts = sum(place not in {"-", before} for before, place in zip(("-", *way), way, strict=False))
        if len(way) * HOUR - way.count("-") * HOUR - starts * restart >= work * HOUR:
            cost = way.count("s") + 3 * way.count("d")
            cheapest = cost if cheapest is None else min(cheapest, cost)
    if cheapest is not None:
        assert bound(tuple(available), work=work * HOUR, finish=len(available) * HOUR, restart=restart) <= cheapest
