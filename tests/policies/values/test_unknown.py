"""Plain data that contains unknown values, and answers that may be unknown."""

from __future__ import annotations

from typing import Any

import pulumi_policy.proxy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexspot.capacity.values.engine_marks import UNKNOWNS
from flexspot.policies.values.field import UNKNOWN, Tri, all_of, any_of, negated, plain

SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 -- marks an envelope
OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4"

ANSWERS = st.lists(st.sampled_from([True, False, UNKNOWN]))


def test_the_sentinels_are_those_of_the_sdk() -> None:
    assert {value for name, value in vars(pulumi_policy.proxy).items() if name.startswith("UNKNOWN_")} == UNKNOWNS


@pytest.mark.parametrize(
    "value,expected",
    [
        ("text", "text"),
        (8.0, 8),
        (0.5, 0.5),
        (True, True),
        (None, None),
        ({"a": ["04da6b54-80e4-46f7-96ec-b56ff0331ba9", 1.0]}, {"a": [UNKNOWN, 1]}),
        ({SIGNATURE: SECRET, "value": {"b": 2.0}}, {"b": 2}),
        ({SIGNATURE: OUTPUT, "dependencies": []}, UNKNOWN),
        ({SIGNATURE: "an asset", "path": "x"}, {SIGNATURE: "an asset", "path": "x"}),
    ],
)
def test_the_engines_data_becomes_plain(value: Any, expected: Any) -> None:
    found = plain(value)

    assert found == expected
    assert type(found) is type(expected)


def test_an_unknown_value_used_as_a_truth_value_is_a_defect() -> None:
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(UNKNOWN)


@given(ANSWERS, st.data())
def test_an_answer_that_is_known_does_not_change_when_unknown_ones_become_known(answers: list[Tri], data: st.DataObject) -> None:
    revealed: list[Tri] = [data.draw(st.booleans()) if answer is UNKNOWN else answer for answer in answers]

    for combine in (any_of, all_of):
        early, late = combine(answers), combine(revealed)
        assert early is UNKNOWN or early is late
        assert late is not UNKNOWN


@pytest.mark.parametrize("answer,opposite", [(True, False), (False, True), (UNKNOWN, UNKNOWN)])
def test_the_opposite_of_unknown_is_unknown(answer: Tri, opposite: Tri) -> None:
    assert negated(answer) is opposite
