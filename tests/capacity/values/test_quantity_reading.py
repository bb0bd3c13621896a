"""Kubernetes quantities."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.values.quantities import quantity


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
def test_a_quantity_means_a_number(written: str | float, number: str) -> None:
    assert quantity(written) == Decimal(number)


@pytest.mark.parametrize("written", ["", "many", "1 Gi", "1mi", "1ki", "1e", "0x10", "1.2.3", "inf", "nan"])
def test_what_the_api_server_would_refuse_is_no_quantity(written: str) -> None:
    assert quantity(written) is None


@given(st.integers(min_value=0, max_value=10**12))
def test_a_whole_number_is_itself_however_it_is_written(number: int) -> None:
    assert quantity(number) == quantity(str(number)) == quantity(f"{number * 1000}m") == number
