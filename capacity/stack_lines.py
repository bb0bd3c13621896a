"""Where things stand in a stack file: the line of a setting, and keys that stand twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from capacity.settings.problems import SettingsProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SETTINGS_KEY = "flexspot:platform"
"""The key under `config` that holds the settings."""

Path = tuple[str, ...]

_DEEPEST = 14
"""Deeper than any setting stands."""


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
    first: dict[Path, int] = {}
    problems: list[SettingsProblem] = []
    repeated: list[Path] = []
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


def _lines(text: str) -> list[tuple[Path, int]]:
    """The path and line of every key and list item that is `config`, below it our key, or below that."""
    found: list[tuple[Path, int]] = []
    for path, node in _nodes(yaml.compose(text, Loader=yaml.CSafeLoader), (), set()):
        if path[:1] == ("config",) and (len(path) == 1 or path[1] == SETTINGS_KEY):
            found.append((path, node.start_mark.line + 1))
    return found


def _nodes(node: Any, path: Path, seen: set[int]) -> Iterator[tuple[Path, Any]]:
    """Every key and list item below a node. What an alias names is gone through once: it may hold itself, or itself many times."""
    if id(node) in seen or len(path) > _DEEPEST:
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
