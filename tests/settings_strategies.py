"""Hypothesis strategies for broken documents of settings."""

from __future__ import annotations

import copy
import json
from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import yaml
from hypothesis import strategies as st

from flexspot.capacity.catalog.workload_classes import WorkloadClass
from flexspot.capacity.plan.build import build_plan
from flexspot.capacity.plan.model import plan_data
from flexspot.capacity.settings.platform import EksSettings, GkeSettings
from flexspot.capacity.settings.stack_file import SETTINGS_KEY, parse_settings
from flexspot.capacity.settings.teams import TeamSettings
from flexspot.capacity.values.errors import SettingsError

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

STACKS = Path(__file__).resolve().parents[1] / "stacks"

_EDITS = ("add", "delete", "number", "rename", "repeat", "replace", "replace", "splice")
"""Edits of a document."""


@cache
def _shipped() -> list[dict[str, Any]]:
    files = sorted(STACKS.glob("Pulumi.*.yaml"))
    return [yaml.safe_load(path.read_text(encoding="utf-8"))["config"][SETTINGS_KEY] for path in files]


@cache
def _keys() -> list[str]:
    """Return every name that is valid somewhere, to be used in other places."""
    fields = {name for model in (EksSettings, GkeSettings, TeamSettings, WorkloadClass) for name in model.model_fields}
    return sorted(fields | {key for stack in _shipped() for _, key in places(stack) if isinstance(key, str)})


@cache
def _words() -> list[str]:
    """Return every text of the shipped stacks, to be used in the wrong place."""
    return sorted({value for stack in _shipped() for holder, key in places(stack) if isinstance(value := holder[key], str)})


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return each dict or list in `value` with each of its keys."""
    keys: list[Any] = []
    if isinstance(value, dict):
        keys = list(cast("dict[Any, Any]", value))
    elif isinstance(value, list):
        keys = list(range(len(cast("list[Any]", value))))
    return [found for key in keys for found in ((cast("Any", value), key), *places(value[key]))]


def nested(depth: int) -> list[Any]:
    """Return lists nested this deep."""
    inside: list[Any] = []
    for _ in range(depth):
        inside = [inside]
    return inside


def numbers() -> SearchStrategy[float]:
    # Python converts at most 4300 digits to text, so hypothesis could not show larger numbers.
    return st.one_of(st.integers(-3, 20), st.sampled_from([9, 19, 30, 400, 4299]).map(lambda zeros: 10**zeros), st.floats())


def junk() -> SearchStrategy[Any]:
    """Draw any YAML value, preferably an awkward one."""
    # YAML has more than JSON: dates, bytes.
    others: SearchStrategy[Any] = st.one_of(
        st.sampled_from([None, True, False, date(2026, 11, 21), b"bytes", {}, []]), st.just(150).map(nested)
    )
    texts = st.one_of(st.text(max_size=8), st.sampled_from(_words()), st.sampled_from(["", "\ud800", "1", "null", "a" * 300, "10.0.0.0/0"]))
    return st.recursive(
        st.one_of(numbers(), texts, others),
        lambda inside: st.one_of(st.lists(inside, max_size=3), st.dictionaries(_key(), inside, max_size=3)),
        max_leaves=6,
    )


def _key() -> SearchStrategy[Any]:
    return st.one_of(st.sampled_from(_keys()), st.text(max_size=5), st.integers(-1, 3), st.none())


@st.composite
def documents(draw: DrawFn) -> object:
    """Draw a shipped stack's settings with up to four edits, or a small document that resembles settings."""
    if draw(st.integers(0, 9)) == 0:
        small = draw(st.dictionaries(st.sampled_from(_keys()), junk(), max_size=6) | junk())
        cloud = draw(st.sampled_from(["local", "gke", "eks", None]))
        return {**small, "cloud": cloud} if isinstance(small, dict) and cloud else small
    document = copy.deepcopy(draw(st.sampled_from(_shipped())))
    for _ in range(draw(st.integers(1, 4))):
        found = places(document)
        holder, key = draw(st.sampled_from(found))
        _edit(draw, holder, key, found)
    return document


def _edit(draw: DrawFn, holder: Any, key: Any, found: list[tuple[Any, Any]]) -> None:
    edit = draw(st.sampled_from(_EDITS))
    if edit == "delete":
        del holder[key]
    elif edit == "rename" and isinstance(holder, dict):
        holder[draw(_key())] = holder.pop(key)
    elif edit == "add" and isinstance(holder, dict):
        holder[draw(_key())] = draw(numbers() | junk())
    elif edit == "number":
        numeric = [(each, at) for each, at in found if isinstance(each[at], int)]
        each, at = draw(st.sampled_from(numeric or [(holder, key)]))
        each[at] = draw(numbers())
    elif edit == "repeat" and isinstance(holder, list):
        holder.append(copy.deepcopy(holder[key]))
    elif edit == "splice":
        other, of_other = draw(st.sampled_from(found))
        holder[key] = copy.deepcopy(other[of_other])
    else:
        holder[key] = draw(junk())


def check_document(document: object) -> None:
    """Assert that a document becomes a plan, or a SettingsError whose problems all state a place and a text."""
    refused: SettingsError | None = None
    try:
        plan = build_plan(parse_settings(document, "document"))
        assert json.dumps(plan_data(plan))
        assert all(each.path and each.text for each in plan.warnings)
    except SettingsError as error:
        refused = error
    if refused is not None:
        assert refused.problems
        assert len(str(refused).splitlines()) > len(refused.problems)
        assert all(each.path and each.problem for each in refused.problems), str(refused)
