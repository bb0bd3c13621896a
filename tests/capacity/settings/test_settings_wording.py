"""Pydantic's errors in the words of a stack file."""

from __future__ import annotations

import re
from datetime import date

import pytest

from capacity.settings.stack_file import reached, shown
from capacity.values.names import FORMS


@pytest.mark.parametrize("pattern", FORMS)
def test_the_examples_of_a_form_have_that_form(pattern: str) -> None:
    words = FORMS[pattern].partition("such as ")[2]
    examples = [each.strip(" '") for each in re.split(r" or |,", words) if each.strip()]

    assert [each for each in examples if not re.search(pattern, each)] == []


def test_no_form_is_told_as_its_pattern() -> None:
    assert [words for words in FORMS.values() if re.search(r"[\\^$\[\]{}|]", words)] == []


@pytest.mark.parametrize(
    "written,text",
    [
        ("spot", "'spot'"),
        ("", "''"),
        ("4", "'4'"),
        (4, "4"),
        (4.5, "4.5"),
        (None, "null"),
        (True, "true"),
        (False, "false"),
        ([], "[]"),
        (["a", 1, None, True], "[a, 1, null, true]"),
        (date(2026, 1, 1), "2026-01-01"),
    ],
)
def test_a_value_is_shown_as_a_stack_file_has_it(written: object, text: str) -> None:
    assert shown(written) == text


def test_settings_by_name_are_shown_by_their_own_name() -> None:
    assert shown({"name": "l4-spot", "machine": "g6.xlarge"}) == "'l4-spot'"
    assert shown({"machine": "g6.xlarge"}) == ""
    assert shown({"name": 7}) == ""
    assert shown({}) == ""


@pytest.mark.parametrize("written", ["a" * 500, ["abc"] * 500, [{"name": "a" * 500}]])
def test_a_long_value_is_cut(written: object) -> None:
    text = shown(written)

    assert len(text) == 60
    assert text.endswith("...")


def test_a_value_that_holds_itself_or_is_none_of_yaml_is_shown_somehow() -> None:
    endless: list[object] = []
    endless.append(endless)

    assert len(shown(endless)) <= 60
    assert shown(object()) == "object"


def test_what_stands_at_a_place_is_reached_and_nothing_else() -> None:
    value = {"pools": [{"name": "l4"}], "text": "abc"}

    assert reached(value, ()) is value
    assert reached(value, ("pools", 0, "name")) == "l4"
    for nowhere in (("teams",), ("pools", 1), ("pools", "name"), ("pools", 0, "name", "first"), ("text", "first")):
        assert reached(value, nowhere) is None
