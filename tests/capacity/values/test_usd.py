"""Money is exact: floats of durations meet it in one place, and what nobody could pay is refused there."""

from __future__ import annotations

from decimal import Decimal

import pytest

from capacity.values.quantities import cents, exact, saved_percent, usd_of_hours, usd_of_seconds, whole


def test_a_float_becomes_the_number_that_a_person_would_write() -> None:
    assert exact(0.1) == Decimal("0.1")
    assert exact(0.1) + exact(0.2) == Decimal("0.3"), "in floats it is 0.30000000000000004"


@pytest.mark.parametrize("number", [float("inf"), float("nan")])
def test_what_is_not_finite_is_no_amount(number: float) -> None:
    with pytest.raises(ValueError, match="cannot become an amount of money"):
        exact(number)


def test_hours_and_seconds_cost_the_same() -> None:
    price = Decimal("32.77")

    assert usd_of_hours(price, 1.5, 8) == Decimal("393.24")
    assert usd_of_seconds(price, 5400, 8) == Decimal("393.24")


@pytest.mark.parametrize("usd,rounded", [("2.125", "2.13"), ("2.124", "2.12"), ("-0.005", "-0.01")])
def test_half_a_cent_is_rounded_up_as_on_invoices(usd: str, rounded: str) -> None:
    assert cents(Decimal(usd)) == Decimal(rounded)


def test_whole_dollars_are_rounded_likewise() -> None:
    assert whole(Decimal("287065.50")) == Decimal(287066)


def test_what_costs_more_saves_less_than_nothing() -> None:
    assert saved_percent(Decimal(15), Decimal(10)) == Decimal(-50)
