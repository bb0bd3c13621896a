"""Reading a stack file's settings, and saying everything that is wrong with them at once, each with its line."""

from __future__ import annotations

import json
import math
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import yaml
from pydantic import ValidationError

from capacity.catalog.platform import Platform
from capacity.settings.platform import MODELS, PlatformSettings
from capacity.settings.wording import problem_of, reached, shown
from capacity.values.errors import SettingsError, SettingsProblem, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


SETTINGS_KEY = "flexspot:platform"
"""The key under `config` that holds the settings."""

NodePath = tuple[str, ...]

_DEEPEST = 12
"""Deeper than any setting stands; an alias that holds itself would go on for ever."""


def lines_of(text: str) -> Callable[[str], int | None]:
    """Finds the line (from 1) on which the setting of a path stands, or the nearest thing around it that does."""
    above = len(("config", SETTINGS_KEY))
    # Of a key that stands twice the last counts, as it does for YAML.
    found = {path[above:]: line for path, line in _lines(text) if path[:above] == ("config", SETTINGS_KEY)}

    def line_of(path: str) -> int | None:
        steps = tuple(path.split("."))
        while steps and steps not in found:
            steps = steps[:-1]
        return found.get(steps)

    return line_of


def keys_that_stand_twice(text: str) -> list[SettingsProblem]:
    """Keys down to the settings' own of which YAML would take the last and drop the rest without a word."""
    first: dict[NodePath, int] = {}
    problems: list[SettingsProblem] = []
    repeated: list[NodePath] = []
    for path, line in _lines(text):
        if any(path[: len(each)] == each and path != each for each in repeated):
            # What stands below a repeated key is repeated with it.
            continue
        if path in first:
            told = ".".join(path[2:] or path)
            problem = f"stands twice, first on line {first[path]}"
            problems.append(SettingsProblem(told, "", problem, "leave one of them out", "duplicate-name", line=line))
            repeated.append(path)
        first.setdefault(path, line)
    return problems


def _lines(text: str) -> list[tuple[NodePath, int]]:
    """The path and line of every key and list item that is `config`, below it our key, or below that."""
    found: list[tuple[NodePath, int]] = []
    for path, node in _nodes(yaml.compose(text, Loader=yaml.CSafeLoader), (), set()):
        if path[:1] == ("config",) and (len(path) == 1 or path[1] == SETTINGS_KEY):
            found.append((path, node.start_mark.line + 1))
    return found


def _nodes(node: Any, path: NodePath, seen: set[int]) -> Iterator[tuple[NodePath, Any]]:
    """Every key and list item below a node. What an alias names is gone through once: it may hold itself, or itself many times.

    The settings are two keys deep in the file.
    """
    if id(node) in seen or len(path) > _DEEPEST + 2:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            yield (*path, str(name.value)), name
            yield from _nodes(value, (*path, str(name.value)), seen)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield (*path, str(number)), value
            yield from _nodes(value, (*path, str(number)), seen)


_TOLD = 50
"""As many problems of this kind as anybody reads; aliases upon aliases would make millions of them."""

_KINDS = {"date": "a date", "datetime": "a date", "bytes": "binary data", "set": "a set"}


def read_stack_file(path: Path) -> PlatformSettings:
    """The settings of a stack file. Raises SettingsError with every problem and its line, or FileNotFoundError."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SettingsError(path.name, [SettingsProblem("(whole file)", "", "is not text in UTF-8", "save it as UTF-8")]) from error
    try:
        content: Any = yaml.load(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise SettingsError(path.name, [_not_yaml(error)]) from error
    except (ValueError, RecursionError) as error:
        # A date such as 2026-13-45, or lists nested a thousand deep.
        problem = SettingsProblem("(whole file)", "", f"holds what cannot be read: {error}", "put dates and long numbers in quotes")
        raise SettingsError(path.name, [problem]) from error
    value = reached(content, ("config", SETTINGS_KEY))
    if value is None:
        problem = SettingsProblem(f"config.{SETTINGS_KEY}", "", "is missing", "every stack file has its settings under this key")
        raise SettingsError(path.name, [problem])
    if twice := keys_that_stand_twice(text):
        raise SettingsError(path.name, twice)
    try:
        return parse_settings(value, path.name)
    except SettingsError as error:
        raise error.with_lines(lines_of(text)) from error


def parse_settings(value: object, source: str) -> PlatformSettings:
    """Settings from plain data, such as a stack's configuration value. Raises SettingsError naming `source`."""
    if unsayable := list(islice(_unsayable(value, ""), _TOLD)):
        raise SettingsError(source, unsayable)
    platform = _platform_of(value, source)
    try:
        # Through JSON, in which YAML's lists are the tuples that the models hold, and still no text is taken for a number.
        return MODELS[platform].model_validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        # A list whose items are all wrong is also called too short; the items' own problems say enough.
        errors = [each for each in error.errors() if not (each["type"] == "too_short" and reached(value, each["loc"]))]
        raise SettingsError(source, [problem_of(MODELS, platform, each, value) for each in errors]) from error


def _not_yaml(error: yaml.YAMLError) -> SettingsProblem:
    mark = getattr(error, "problem_mark", None)
    line: int | None = mark.line + 1 if mark is not None else None
    return SettingsProblem("(whole file)", "", f"is not YAML: {getattr(error, 'problem', None) or error}", "", line=line)


def _platform_of(value: object, source: str) -> Platform:
    """Checks `cloud`; every other setting depends on it, so its problem is reported first and alone."""
    if not isinstance(value, dict):
        raise SettingsError(source, [SettingsProblem("(all)", shown(value), "should be settings by name, such as cloud: local", "")])
    written = reached(value, ("cloud",))
    if written is None:
        raise SettingsError(source, [SettingsProblem("cloud", "", "is missing", nearest("", Platform))])
    if not isinstance(written, str) or written not in set(Platform):
        problem = SettingsProblem("cloud", shown(written), "is not one of the allowed values", nearest(str(written), Platform))
        raise SettingsError(source, [problem])
    return Platform(written)


def _unsayable(value: object, path: str, around: tuple[int, ...] = ()) -> Iterator[SettingsProblem]:
    """Values that YAML can hold and settings cannot: dates, binary, numbers without end, aliases that hold themselves."""
    below = (*around, id(value))
    if below[-1] in around or len(around) > _DEEPEST:
        yield SettingsProblem(path.partition(".")[0], "", "goes deeper than any setting", "leave the alias out")
    elif isinstance(value, dict):
        for key, each in cast("dict[object, object]", value).items():
            inside = f"{path}.{key}" if path else str(key) or "''"
            if not isinstance(key, str) or not key:
                yield SettingsProblem(inside, "", "is not a name", "put it in quotes, or leave it out")
            yield from _unsayable(each, inside, below)
    elif isinstance(value, list):
        for number, each in enumerate(cast("list[object]", value)):
            yield from _unsayable(each, f"{path}.{number}" if path else str(number), below)
    elif (problem := _unsayable_scalar(value)) is not None:
        yield SettingsProblem(path or "(all)", *problem)


def _unsayable_scalar(value: object) -> tuple[str, str, str] | None:
    """What was written, what is wrong with it and what is allowed; None when nothing is."""
    if isinstance(value, float) and not math.isfinite(value):
        return shown(value), "is not a number that can be meant", ""
    if isinstance(value, int) and abs(value) > 2**63:
        return "", "is larger than any setting can be", ""
    if isinstance(value, str) and not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
        return "", "holds half of a character", "write it as UTF-8 has it"
    if value is None or isinstance(value, (str, int, float)):
        return None
    return shown(value), f"is read as {_KINDS.get(type(value).__name__, 'something else')}", "put it in quotes to make it text"
