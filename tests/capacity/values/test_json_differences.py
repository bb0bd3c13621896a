"""Differences of two JSON values, and notation of their paths."""

from __future__ import annotations

from typing import Any

import pytest

from flexspot.capacity.values.json_differences import ABSENT, Path, differences, written_path


@pytest.mark.parametrize("value", [None, 1, "a", [], {}, {"a": [1, {"b": None}]}])
def test_a_value_does_not_differ_from_itself(value: Any) -> None:
    assert list(differences(value, value)) == []


DIFFERENCES: list[tuple[Any, Any, list[tuple[Path, Any, Any]]]] = [
    ({"a": 1}, {"a": 2}, [(("a",), 1, 2)]),
    ({"a": None}, {}, [(("a",), None, ABSENT)]),
    ({}, {"a": None}, [(("a",), ABSENT, None)]),
    ({"a": [1, 2]}, {"a": [1]}, [(("a", 1), 2, ABSENT)]),
    ({"a": [{"b": 1}]}, {"a": [{"b": 1, "c": 2}]}, [(("a", 0, "c"), ABSENT, 2)]),
    ({"a": {}}, {"a": []}, [(("a",), {}, [])]),
    ({"a": 1}, {"a": True}, [(("a",), 1, True)]),
    ({"a": 1}, {"a": 1.0}, []),
]


@pytest.mark.parametrize("old,new,found", DIFFERENCES)
def test_each_different_path_has_both_values(old: Any, new: Any, found: list[tuple[Path, Any, Any]]) -> None:
    assert list(differences(old, new)) == found


def test_the_comparison_of_values_can_be_replaced() -> None:
    assert list(differences({"a": "x", "b": "y"}, {"a": "X", "b": "z"}, lambda old, new: old.lower() == new.lower())) == [
        (("b",), "y", "z")
    ]


def test_a_path_has_pulumis_notation() -> None:
    assert written_path(("spec", "containers", 0, "image")) == "spec.containers[0].image"
    assert written_path(("metadata", "labels", "app.kubernetes.io/name")) == 'metadata.labels["app.kubernetes.io/name"]'
    assert written_path(('a"b',)) == '["a\\"b"]'
