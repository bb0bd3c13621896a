"""Pydantic's errors in the words of a stack file."""

from __future__ import annotations

import json
import re
from datetime import date
from enum import StrEnum
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from capacity.settings.stack_file import reached, said, shown
from capacity.values import names
from capacity.values.names import FORMS


class Colour(StrEnum):
    RED = "red"
    GREEN = "green"


class Inside(BaseModel):
    model_config = ConfigDict(strict=True)

    depth: int


class Words(BaseModel):
    """A field of each kind that settings have."""

    model_config = ConfigDict(strict=True)

    text: Annotated[str, Field(min_length=1, max_length=5)] = "text"
    name: Annotated[str, Field(pattern=names.NAME)] = "name"
    region: Annotated[str, Field(pattern=names.AWS_REGION)] = "us-east-1"
    number: Annotated[int, Field(ge=1, le=9)] = 1
    flag: bool = True
    colour: Colour = Colour.RED
    items: Annotated[tuple[str, ...], Field(min_length=2)] = ("a", "b")
    by_name: dict[str, int] = Field(default_factory=dict)
    inside: Inside | None = None
    checked: int = 1

    @field_validator("checked")
    @classmethod
    def _is_checked(cls, checked: int) -> int:
        if checked != 1:
            raise ValueError("is more than one; write 1 (or less; 0 will do)")
        return checked


def words_of(**fields: Any) -> tuple[str, str]:
    """What is said of the one error of these fields."""
    with pytest.raises(ValidationError) as refused:
        Words.model_validate(fields)
    [error] = refused.value.errors()
    return said(error)


@pytest.mark.parametrize("written", ["4", True, None, 4.5, [4]])
def test_a_number_is_a_whole_number(written: object) -> None:
    assert words_of(number=written) == ("should be a whole number", "")


@pytest.mark.parametrize("written", ["on", 1, None])
def test_a_flag_is_true_or_false(written: object) -> None:
    assert words_of(flag=written) == ("should be true or false", "")


@pytest.mark.parametrize("written", [7, 1.35, False])
def test_text_that_yaml_reads_as_something_else_is_to_be_quoted(written: object) -> None:
    assert words_of(text=written) == ("should be text", "put it in quotes")


@pytest.mark.parametrize("written", [None, ["a"], {"a": 1}])
def test_what_quotes_would_not_mend_is_not_to_be_quoted(written: object) -> None:
    assert words_of(text=written) == ("should be text", "")


@pytest.mark.parametrize("field", ["inside", "by_name"])
@pytest.mark.parametrize("written", [7, "deep", ["deep"]])
def test_a_group_of_settings_is_settings_by_name(field: str, written: object) -> None:
    assert words_of(**{field: written}) == ("should be settings by name", "")


@pytest.mark.parametrize("written", [7, "a", {"a": 1}, None])
def test_several_things_are_a_list(written: object) -> None:
    assert words_of(items=written) == ("should be a list", "")


def test_bounds_are_told() -> None:
    assert words_of(number=0) == ("should be at least 1", "")
    assert words_of(number=10) == ("should be at most 9", "")
    assert words_of(text="") == ("should have at least 1 character", "")
    assert words_of(text="longer") == ("should have at most 5 characters", "")
    assert words_of(items=("a",)) == ("should have at least 2 items", "")


@pytest.mark.parametrize("written", ["gren", None, 7])
def test_a_choice_is_told_with_what_there_is(written: object) -> None:
    hint = "did you mean green? " if written == "gren" else ""

    with pytest.raises(ValidationError) as refused:
        Words.model_validate_json(json.dumps({"colour": written}))
    [error] = refused.value.errors()

    assert said(error) == ("is not one of the allowed values", f"{hint}allowed: red, green")


def test_a_pattern_is_told_in_words() -> None:
    assert words_of(name="Name") == ("is not a valid name", f"allowed: {FORMS[names.NAME]}")
    assert words_of(region="us") == ("does not have the form that it must", "allowed: a region such as us-east-1")


def test_what_a_check_says_is_split_into_what_is_wrong_and_what_to_do() -> None:
    assert words_of(checked=2) == ("is more than one", "write 1 (or less; 0 will do)")


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


def test_a_value_that_just_fits_is_shown_whole() -> None:
    assert shown("a" * 58) == f"'{'a' * 58}'"
    assert shown("a" * 59) == f"'{'a' * 56}..."


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
