"""Quantities as the API server reads and writes them, and money, which is exact."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexspot.capacity.values.quantities import (
    cents,
    count_quantity,
    exact,
    gib_quantity,
    mib_quantity,
    quantity,
    saved_percent,
    usd_of_hours,
    usd_of_seconds,
    whole,
)


@pytest.mark.parametrize("number,written", [(0, "0"), (8, "8"), (999, "999"), (1000, "1k"), (1500, "1500"), (2_000_000, "2M")])
def test_a_number_has_the_largest_suffix_that_leaves_it_whole(number: int, written: str) -> None:
    assert count_quantity(number) == written


@pytest.mark.parametrize("mib,written", [(0, "0"), (512, "512Mi"), (1024, "1Gi"), (1536, "1536Mi"), (1024**2, "1Ti")])
def test_an_amount_of_memory_has_the_largest_binary_suffix(mib: int, written: str) -> None:
    assert mib_quantity(mib) == written


def test_gibibytes_have_the_largest_binary_suffix() -> None:
    assert [gib_quantity(each) for each in (0, 500, 2048)] == ["0", "500Gi", "2Ti"]


@given(st.integers(0, 10**18))
def test_no_suffix_changes_the_amount(number: int) -> None:
    assert quantity(count_quantity(number)) == number
    assert quantity(mib_quantity(number)) == number * 2**20


@pytest.mark.parametrize(
    "written,number",
    [
        (8, "8"),
        (0.5, "0.5"),
        (9.2e18, "9.2e18"),
        ("8", "8"),
        ("+8.", "8"),
        ("-1", "-1"),
        (".5", "0.5"),
        ("100m", "0.1"),
        ("1k", "1000"),
        ("2M", "2000000"),
        ("1e3", "1000"),
        ("1E3", "1000"),
        ("9E", "9000000000000000000"),
        ("16Gi", "17179869184"),
        ("1Ei", "1152921504606846976"),
    ],
)
def test_a_quantity_has_a_value(written: str | float, number: str) -> None:
    assert quantity(written) == Decimal(number)


@pytest.mark.parametrize("written", ["", "many", "1 Gi", "1mi", "1ki", "1e", "0x10", "1.2.3", "inf", "nan"])
def test_a_quantity_that_the_api_server_refuses_has_no_value(written: str) -> None:
    assert quantity(written) is None


@given(st.integers(min_value=0, max_value=10**12))
def test_a_whole_number_has_the_same_value_in_every_notation(number: int) -> None:
    assert quantity(number) == quantity(str(number)) == quantity(f"{number * 1000}m") == number


def test_a_float_becomes_its_shortest_decimal() -> None:
    assert exact(0.1) == Decimal("0.1")
    assert exact(0.1) + exact(0.2) == Decimal("0.3"), "in floats it is 0.30000000000000004"


@pytest.mark.parametrize("number", [float("inf"), float("nan")])
def test_infinite_numbers_and_nan_are_refused(number: float) -> None:
    with pytest.raises(ValueError, match="is not an amount of money: it must be finite"):
        exact(number)


def test_hours_and_seconds_cost_the_same() -> None:
    price = Decimal("32.77")

    assert usd_of_hours(price, 1.5, 8) == Decimal("393.24")
    assert usd_of_seconds(price, 5400, 8) == Decimal("393.24")


@pytest.mark.parametrize("usd,rounded", [("2.125", "2.13"), ("2.124", "2.12"), ("-0.005", "-0.01")])
def test_half_a_cent_is_rounded_up_as_on_invoices(usd: str, rounded: str) -> None:
    assert cents(Decimal(usd)) == Decimal(rounded)


def test_half_a_dollar_is_rounded_up() -> None:
    assert whole(Decimal("287065.50")) == Decimal(287066)


def test_a_higher_cost_is_a_negative_saving() -> None:
    assert saved_percent(Decimal(15), Decimal(10)) == Decimal(-50)
