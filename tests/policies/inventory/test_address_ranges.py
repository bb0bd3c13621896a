"""Ranges that keep nobody out."""

from __future__ import annotations

import pytest

from capacity.settings.network import WIDEST, too_wide
from policies.inventory.cloud_resources import lets_in_everybody
from policies.values.field import UNKNOWN, Field


@pytest.mark.parametrize("prefix", range(33))
def test_a_rule_and_the_settings_of_a_stack_call_the_same_ranges_too_wide(prefix: int) -> None:
    written = f"0.0.0.0/{prefix}"

    assert lets_in_everybody(Field(written)) is too_wide([written]) is (prefix < WIDEST)


@pytest.mark.parametrize(
    "written,answer", [("::/0", True), ("2000::/3", True), ("2001:db8::/32", False), ("office", False), (UNKNOWN, UNKNOWN)]
)
def test_other_ranges(written: object, answer: object) -> None:
    assert lets_in_everybody(Field(written)) is answer
