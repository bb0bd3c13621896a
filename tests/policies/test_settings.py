"""Levels and parameters as people write them."""

from __future__ import annotations

from typing import Any

import pytest

from capacity.verdict import Severity
from policies.inventory import View
from policies.rule import BOTH_CLOUDS, PASSES, Level, Parameter, Rule
from policies.settings import read_settings, schema

RULE: Rule[View] = Rule(
    code="FLX999",
    name="example",
    severity=Severity.LOW,
    level=Level.MANDATORY,
    clouds=BOTH_CLOUDS,
    looks_at=(View,),
    judge=lambda _view, _parameters: PASSES,
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
def test_a_level_stands_alone_or_among_parameters(written: Any, level: Level) -> None:
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
        ({"exmaple": "advisory"}, "exmaple: there is no 'exmaple'; did you mean example?"),
        ({"zzz": "advisory"}, "zzz: there is no 'zzz'; there are example"),
        ({"example": "loud"}, "example.level: 'loud' is not allowed; allowed is one of mandatory, advisory, disabled"),
        ({"example": 3}, "example.level: 3 is not allowed; allowed is one of mandatory, advisory, disabled"),
        ({"example": {"most": -1}}, "example.most: -1 is not allowed; allowed is a whole number of 0 or more"),
        ({"example": {"most": True}}, "example.most: True is not allowed; allowed is a whole number of 0 or more"),
        ({"example": {"label": ""}}, "example.label: '' is not allowed; allowed is a text"),
        ({"example": {"keys": []}}, "example.keys: [] is not allowed; allowed is a list of at least one text"),
        ({"example": {"keys": [1]}}, "example.keys: [1] is not allowed; allowed is a list of at least one text"),
    ],
)
def test_what_is_wrong_is_named_with_what_is_allowed(written: dict[str, Any], problem: str) -> None:
    assert read_settings(written, [RULE]).problems == (problem,)


def test_a_text_parameter_is_read() -> None:
    assert read_settings({"example": {"label": "owner"}}, [RULE]).parameters(RULE).settings["label"] == "owner"


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
