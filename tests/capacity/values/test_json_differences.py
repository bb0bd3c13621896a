"""Where two JSON values differ, and how such a place is written."""

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
def test_each_place_that_differs_is_told_with_both_values(old: Any, new: Any, found: list[tuple[Path, Any, Any]]) -> None:
    assert list(differences(old, new)) == found


def test_what_counts_as_the_same_can_be_said() -> None:
    assert list(differences({"a": "x", "b": "y"}, {"a": "X", "b": "z"}, lambda old, new: old.lower() == new.lower())) == [
        (("b",), "y", "z")
    ]


def test_a_path_is_written_as_pulumi_does() -> None:
    assert written_path(("spec", "containers", 0, "image")) == "spec.containers[0].image"
    assert written_path(("metadata", "labels", "app.kubernetes.io/name")) == 'metadata.labels["app.kubernetes.io/name"]'
    assert written_path(('a"b',)) == '["a\\"b"]'
