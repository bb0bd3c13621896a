"""Which rules a run is asked for by name, and what levels they have under which paths."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, cast

from capacity.values.errors import nearest
from policies.judging import Level, unknown_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from policies.judging import AnyRule


@dataclass(frozen=True)
class PathLevels:
    """Levels of rules for files whose path, relative to the configuration's folder, is one of `patterns`."""

    patterns: tuple[str, ...]
    levels: Mapping[str, Level]

    def covers(self, path: str) -> bool:
        """Whether a path is one of the patterns, in which * stands for any text, / included."""
        return any(fnmatchcase(path, pattern) for pattern in self.patterns)


def selected(asked: Iterable[str], rules: Iterable[AnyRule]) -> frozenset[str]:
    """The names of the rules that are asked for by name, by code, or by a pattern of either.

    Raises ValueError for what no rule is called, and for no name at all.
    """
    known, names = list(rules), list(asked)
    if not names:
        raise ValueError("it names no rule; `flexspot rules list` lists them all.")
    found: set[str] = set()
    for each in names:
        named = {rule.name for rule in known if fnmatchcase(rule.name, each) or fnmatchcase(rule.code.upper(), each.upper())}
        if not named:
            raise ValueError(f"there is no rule {each}; {nearest(each, [text for rule in known for text in (rule.name, rule.code)])}")
        found |= named
    return frozenset(found)


def read_path_levels(written: Any, rules: Iterable[AnyRule], problems: list[str]) -> tuple[PathLevels, ...]:
    """The entries of `paths`: each with patterns under `match` and levels under `rules`. What is wrong is added to `problems`."""
    if written is None:
        return ()
    if not isinstance(written, list):
        problems.append("paths: must be a list of entries such as {match: [tests/*], rules: {gpu-pool-without-limit: advisory}}")
        return ()
    known = {rule.name for rule in rules}
    found: list[PathLevels] = []
    for place, each in enumerate(cast("list[Any]", written)):
        entry = cast("dict[str, Any]", each) if isinstance(each, dict) else {}
        patterns, levels = entry.get("match"), entry.get("rules")
        if set(entry) != {"match", "rules"} or not isinstance(patterns, list) or not isinstance(levels, dict):
            problems.append(f"paths.{place}: must be an entry with `match`, a list of patterns, and `rules`, levels by rule")
            continue
        texts = tuple(pattern for pattern in cast("list[Any]", patterns) if isinstance(pattern, str) and pattern)
        if not texts or len(texts) != len(cast("list[Any]", patterns)):
            problems.append(f"paths.{place}.match: {patterns!r} is not allowed; allowed: a list of patterns such as tests/*")
        read: dict[str, Level] = {}
        for rule, level in cast("dict[Any, Any]", levels).items():
            if rule not in known:
                problems.append(unknown_name(f"paths.{place}.rules.{rule}", rule, known))
            elif level not in list(Level):
                problems.append(f"paths.{place}.rules.{rule}: {level!r} is not allowed; allowed: {', '.join(Level)}")
            else:
                read[rule] = Level(level)
        found.append(PathLevels(texts, read))
    return tuple(found)
