"""Quantities are written as the API server writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.values.quantities import count_quantity, gib_quantity, mib_quantity, quantity


@pytest.mark.parametrize("number,written", [(0, "0"), (8, "8"), (999, "999"), (1000, "1k"), (1500, "1500"), (2_000_000, "2M")])
def test_a_number_has_the_largest_suffix_that_leaves_it_whole(number: int, written: str) -> None:
    assert count_quantity(number) == written


@pytest.mark.parametrize("mib,written", [(0, "0"), (512, "512Mi"), (1024, "1Gi"), (1536, "1536Mi"), (1024**2, "1Ti")])
def test_an_amount_of_memory_has_the_largest_binary_suffix(mib: int, written: str) -> None:
    assert mib_quantity(mib) == written


def test_gibibytes_are_written_alike() -> None:
    assert [gib_quantity(each) for each in (0, 500, 2048)] == ["0", "500Gi", "2Ti"]


@given(st.integers(0, 10**18))
def test_no_suffix_changes_the_amount(number: int) -> None:
    assert quantity(count_quantity(number)) == number
    assert quantity(mib_quantity(number)) == number * 2**20
