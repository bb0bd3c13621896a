"""Levels, parameters and suppressions as users write them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from flexspot.capacity.values.verdict import Severity
from flexspot.policies.judging import Level, Parameter, Rule, read_settings, schema

RULE = Rule(
    code="FLX999",
    name="example",
    severity=Severity.LOW,
    why="It shows how settings are read.",
    remediation="Nothing needs to be done.",
    link="https://example.test",
    parameters=(
        Parameter("most", 3, "A number."),
        Parameter("label", "team", "A text."),
        Parameter("keys", ("a", "b"), "Texts."),
    ),
)


@pytest.mark.parametrize("written,level", [("advisory", Level.ADVISORY), ({"level": "disabled"}, Level.DISABLED), ({}, Level.MANDATORY)])
def test_a_level_is_written_alone_or_with_parameters(written: Any, level: Level) -> None:
    settings = read_settings({"example": written}, [RULE])

    assert settings.level(RULE) is level
    assert settings.problems == ()


def test_a_parameter_that_is_not_set_keeps_its_default() -> None:
    parameters = read_settings({"example": {"most": 7.0, "keys": ["c"]}}, [RULE]).parameters(RULE)

    assert dict(parameters.settings) == {"most": 7, "label": "team", "keys": ("c",)}
    assert (parameters.number("most"), parameters.texts("keys")) == (7, ("c",))


@pytest.mark.parametrize(
    "written,problem",
    [
        ({"exmaple": "advisory"}, "exmaple: there is no 'exmaple'; did you mean example? allowed: example"),
        ({"zzz": "advisory"}, "zzz: there is no 'zzz'; allowed: example"),
        ({"example": "loud"}, "example.level: 'loud' is not allowed; allowed: mandatory, advisory, disabled"),
        ({"example": 3}, "example.level: 3 is not allowed; allowed: mandatory, advisory, disabled"),
        ({"example": {"most": -1}}, "example.most: -1 is not allowed; allowed: a whole number of 0 or more"),
        ({"example": {"most": True}}, "example.most: True is not allowed; allowed: a whole number of 0 or more"),
        ({"example": {"label": ""}}, "example.label: '' is not allowed; allowed: a string"),
        ({"example": {"keys": []}}, "example.keys: [] is not allowed; allowed: a list of at least one string"),
        ({"example": {"keys": [1]}}, "example.keys: [1] is not allowed; allowed: a list of at least one string"),
    ],
)
def test_an_invalid_setting_is_reported_with_the_allowed_values(written: dict[str, Any], problem: str) -> None:
    assert read_settings(written, [RULE]).problems == (problem,)


SUPPRESSION = {"rule": "example", "object": "Pod/a/b", "reason": "a trial"}


@pytest.mark.parametrize(
    "written,problem",
    [
        ({}, "suppressions: must be a list of entries with rule, object, reason, until, by"),
        ([{"object": "a", "reason": "b"}], "suppressions.0.rule: it is missing"),
        ([{**SUPPRESSION, "rule": ["a"]}], "suppressions.0.rule: ['a'] is not allowed; allowed: a string"),
        ([{**SUPPRESSION, "until": ["x"]}], "suppressions.0.until: ['x'] is not allowed; allowed: a date such as 2026-12-31"),
        ([{**SUPPRESSION, "rule": "exmaple"}], "suppressions.0.rule: there is no 'exmaple'; did you mean example? allowed: example"),
        ([{**SUPPRESSION, "untill": "c"}], "suppressions.0.untill: there is no 'untill'; did you mean until?"),
        ([{**SUPPRESSION, "until": "soon"}], "suppressions.0: until=soon is not a date; write one such as until=2026-12-31"),
        ([5], "suppressions.0: 5 is not allowed; allowed: an entry with rule, object, reason, until, by"),
        ([{**SUPPRESSION, 7: "x"}], "suppressions.0.7: there is no 7; allowed: by, object, reason, rule, until"),
    ],
)
def test_an_invalid_suppression_is_reported_with_the_allowed_values(written: Any, problem: str) -> None:
    settings = read_settings({"suppressions": written}, [RULE])

    assert [each[: len(problem)] for each in settings.problems] == [problem]
    assert settings.suppressions == ()


_KEYS = st.sampled_from(["example", "suppressions", *SUPPRESSION, "until", "by", "level", "locked", "most", "keys", "exmaple"])
_TEXTS = st.sampled_from(["", "example", "advisory", "mandatory", "2026-12-31", "a trial", "Pod/*"])
_SCALARS = st.none() | st.booleans() | st.integers(-1, 9) | st.floats() | _TEXTS
_VALUES: st.SearchStrategy[Any] = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=5), max_leaves=12
)


def _entry(more: dict[str, Any]) -> dict[str, Any]:
    return {**SUPPRESSION, **more}


_ENTRIES = st.builds(_entry, st.dictionaries(_KEYS, _VALUES, max_size=2))


@given(st.dictionaries(_KEYS, _VALUES, max_size=4) | st.fixed_dictionaries({"suppressions": st.lists(_ENTRIES, max_size=2)}))
def test_any_settings_are_read_without_an_error_and_accepted_ones_match_the_schema(written: dict[str, Any]) -> None:
    problems = read_settings(written, [RULE]).problems

    allowed: Any = Draft202012Validator({"type": "object", "additionalProperties": False, "properties": schema([RULE])})
    assert problems or allowed.is_valid(written)


@given(st.dictionaries(st.none() | st.booleans() | st.integers() | st.dates() | st.text(), st.none()))
def test_a_key_that_yaml_does_not_parse_as_text_is_no_rule(written: dict[Any, None]) -> None:
    assert len(read_settings(written, [RULE]).problems) == len(written)


def test_the_schema_gives_every_parameter_its_type_and_its_default() -> None:
    whole = schema([RULE])["example"]
    properties = whole["oneOf"][1]["properties"]

    assert {name: (each["type"], each.get("default")) for name, each in properties.items()} == {
        "level": ("string", None),
        "locked": ("boolean", False),
        "most": ("integer", 3),
        "label": ("string", "team"),
        "keys": ("array", ["a", "b"]),
    }
