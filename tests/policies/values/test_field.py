"""Fields of an object: a value, nothing, or unknown. In a partial object nothing is ever absent."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from flexspot.policies.values.field import UNKNOWN, Field

OBJECT: dict[str, Any] = {"spec": {"replicas": 2, "on": True, "list": ["a", UNKNOWN], "late": UNKNOWN, "none": None}}


@pytest.mark.parametrize(
    "path,value",
    [
        (("spec", "replicas"), 2),
        (("spec", "absent"), None),
        (("spec", "none"), None),
        (("spec", "replicas", "deeper"), None),
        (("spec", "late", "deeper"), UNKNOWN),
    ],
)
def test_a_path_leads_to_a_value_to_nothing_or_into_the_unknown(path: tuple[str, ...], value: Any) -> None:
    field = Field(OBJECT).at(*path)

    assert field.value is value or field.value == value
    assert field.absent == (value is None)
    assert field.known == (value is not UNKNOWN)


def test_a_field_that_a_partial_object_lacks_is_unknown() -> None:
    part = Field(OBJECT, partial=True)

    assert part.at("spec", "replicas").value == 2
    assert part.at("spec", "absent").value is UNKNOWN
    assert part.at("spec", "list").parts().complete is False


def test_texts_are_as_yaml_spells_them() -> None:
    spec = Field(OBJECT).at("spec")

    assert [spec.at(key).text() for key in ("on", "replicas", "list", "late", "absent")] == ["true", "2", None, UNKNOWN, None]
    assert spec.at("late").equals("a") is UNKNOWN
    assert spec.at("replicas").equals("1", "2") is True


def test_numbers_are_quantities_and_truth_values_are_none() -> None:
    spec = Field(OBJECT).at("spec")

    assert [spec.at(key).number() for key in ("replicas", "on", "late", "list")] == [Decimal(2), None, UNKNOWN, None]


def test_one_of_the_parts_counts_as_soon_as_it_is_known_and_all_of_them_only_when_all_are() -> None:
    parts = Field(OBJECT).at("spec", "list").parts()

    assert parts.any(lambda part: part.equals("a")) is True
    assert parts.any(lambda part: part.equals("b")) is UNKNOWN
    assert parts.every(lambda part: part.equals("a")) is UNKNOWN
    assert parts.every(lambda part: part.equals("b")) is False


@pytest.mark.parametrize("holder,any_one,every_one", [([], False, False), (UNKNOWN, UNKNOWN, UNKNOWN), ("text", False, False)])
def test_no_parts_and_unknown_parts_are_distinguished(holder: Any, any_one: Any, every_one: Any) -> None:
    parts = Field(holder).parts()

    assert parts.any(lambda _: True) is any_one
    assert parts.every(lambda _: True) is every_one
