"""What a development pool saves when its nodes go; the course's own example is in test_seed_figures."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.cost.unit_costs import DevelopmentUse, scaled_to_zero

USD = Decimal(10)


def test_half_of_the_day_saves_half() -> None:
    found = scaled_to_zero(DevelopmentUse(2, 12), USD)

    assert (found.always_on_usd, found.usd, found.saved_usd, found.saved_percent) == (14600, 7300, 7300, 50)


def test_starting_and_staying_around_are_paid_for() -> None:
    """Two sessions a day with 20 + 10 minutes around each: an hour a day more."""
    use = DevelopmentUse(1, 11, sessions_per_day=2, start_minutes=20, idle_minutes=10)

    assert use.billed_hours_per_day == 12
    assert scaled_to_zero(use, USD).saved_percent == 50


def test_sessions_so_close_that_the_node_stays_save_nothing() -> None:
    assert scaled_to_zero(DevelopmentUse(1, 8, sessions_per_day=20, idle_minutes=60), USD).saved_percent == 0


@given(st.floats(0, 23), st.floats(0, 1), st.floats(0, 5), st.floats(0, 60))
def test_more_use_never_saves_more(hours: float, more: float, sessions: float, minutes: float) -> None:
    less = DevelopmentUse(3, hours, sessions, 5, minutes)
    longer = DevelopmentUse(3, hours + more, sessions, 5, minutes)

    assert scaled_to_zero(longer, USD).usd >= scaled_to_zero(less, USD).usd
    assert 0 <= scaled_to_zero(longer, USD).saved_percent <= 100


@pytest.mark.parametrize("hours,nodes,minutes", [(25, 1, 0), (-1, 1, 0), (8, 0, 0), (8, 1, -1)])
def test_a_use_that_fits_into_no_day_is_refused(hours: float, nodes: int, minutes: float) -> None:
    with pytest.raises(ValueError, match=r"between 0 and 24|nodes must be 1 or more"):
        DevelopmentUse(nodes, hours, idle_minutes=minutes)
