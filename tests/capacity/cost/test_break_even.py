"""Where Spot stops paying."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.cost.spot_arithmetic import (
    SpotConditions,
    best_spot_run,
    break_even_interruptions_per_node_hour,
    break_even_usd_per_hour,
    spot_run,
    usd_per_useful_hour,
    value_of_an_hour_sooner,
)

SPOT, ON_DEMAND = Decimal("12.50"), Decimal("32.77")
MET = SpotConditions(0.25, checkpoint_hours=2 / 60, restart_hours=10 / 60, wait_hours=0.5)


def test_a_run_that_never_ends_has_no_price_at_which_it_pays() -> None:
    never = spot_run(1000, 1000, SpotConditions(1))

    assert usd_per_useful_hour(SPOT, never) is None
    assert break_even_usd_per_hour(ON_DEMAND, never) == 0


def test_at_the_break_even_rate_both_cost_the_same() -> None:
    rate = break_even_interruptions_per_node_hour(72, MET, SPOT, ON_DEMAND)

    effective = usd_per_useful_hour(SPOT, best_spot_run(72, replace(MET, interruptions_per_node_hour=rate))[1])

    assert effective is not None
    assert float(effective) == pytest.approx(32.77, rel=1e-3)


def test_twice_the_nodes_stand_half_the_interruptions() -> None:
    one = break_even_interruptions_per_node_hour(72, MET, SPOT, ON_DEMAND)

    assert break_even_interruptions_per_node_hour(72, replace(MET, nodes=2), SPOT, ON_DEMAND) == pytest.approx(one / 2)


def test_spot_that_is_no_cheaper_never_pays_and_free_recovery_always_does() -> None:
    assert break_even_interruptions_per_node_hour(72, MET, ON_DEMAND, ON_DEMAND) == 0
    assert break_even_interruptions_per_node_hour(72, SpotConditions(0.25, saved_share=1), SPOT, ON_DEMAND) == 3600


@given(st.decimals("0.01", "32", places=2), st.decimals("0.01", "32", places=2))
def test_a_dearer_spot_price_stands_no_more_interruptions(one: Decimal, other: Decimal) -> None:
    cheap, dear = sorted((one, other))

    limits = [break_even_interruptions_per_node_hour(20, MET, price, ON_DEMAND) for price in (cheap, dear)]

    assert limits[0] >= limits[1]


def test_waiting_pays_while_an_hour_is_worth_less_than_what_it_saves() -> None:
    assert value_of_an_hour_sooner(Decimal(400), Decimal(1000), 12) == Decimal(50)
    assert value_of_an_hour_sooner(Decimal(400), Decimal(1000), 0) is None
