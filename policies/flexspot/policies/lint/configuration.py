"""The linter's configuration file, and the rules about the text of manifests.

The file includes the policy pack's configuration. Rules may be selected by name, and may have other levels under some paths.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from flexspot.capacity.values.errors import ExitCode, ExplainedError, nearest
from flexspot.capacity.values.verdict import ObjectIdentity, Severity, fails
from flexspot.policies.core import finding_of
from flexspot.policies.judging import DEFAULTS, Level, Rule, Settings, read_settings, unknown_name
from flexspot.policies.lint.file_reading import InputProblem, Problem
from flexspot.policies.lint.report import GRAVEST_FIRST
from flexspot.policies.lint.yaml_reading import DocumentRefusedError, documents_in
from flexspot.policies.own_rules import KEY as OWN_RULES
from flexspot.policies.own_rules import read_own_rules
from flexspot.policies.rules import all_rules
from flexspot.policies.values.field import mapping_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from flexspot.policies.own_rules import OwnRule
    from flexspot.policies.values.finding import Finding


@dataclass(frozen=True)
class PathLevels:
    """Levels of rules for files whose path, relative to the configuration's folder, is one of `patterns`."""

    patterns: tuple[str, ...]
    levels: Mapping[str, Level]

    def covers(self, path: str) -> bool:
        """Return whether a path matches one of the patterns, in which * matches any text, including /."""
        return any(fnmatchcase(path, pattern) for pattern in self.patterns)


def selected(requests: Iterable[str], rules: Iterable[Rule]) -> frozenset[str]:
    """Return the names of the rules that match the requested names, codes, or patterns.

    Raises ValueError for a request that matches no rule, and for no request at all.
    """
    known, names = list(rules), list(requests)
    if not names:
        raise ValueError("it names no rule; `flexspot rules list` lists them all.")
    found: set[str] = set()
    for each in names:
        named = {rule.name for rule in known if fnmatchcase(rule.name, each) or fnmatchcase(rule.code.upper(), each.upper())}
        if not named:
            raise ValueError(f"there is no rule {each}; {nearest(each, [text for rule in known for text in (rule.name, rule.code)])}")
        found |= named
    return frozenset(found)


def _read_path_levels(written: Any, rules: Iterable[Rule], problems: list[str]) -> tuple[PathLevels, ...]:
    """Return the entries of `paths`, each with patterns under `match` and levels under `rules`. Adds errors to `problems`."""
    if written is None:
        return ()
    if not isinstance(written, list):
        problems.append("paths: must be a list of entries such as {match: [tests/*], rules: {gpu-pool-without-limit: advisory}}")
        return ()
    known = {rule.name for rule in rules}
    found: list[PathLevels] = []
    for place, each in enumerate(cast("list[Any]", written)):
        entry = mapping_of(each)
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


INPUT_RULES: Final[tuple[Rule, ...]] = (
    Rule(
        code="FLX901",
        name=InputProblem.UNREADABLE,
        severity=Severity.HIGH,
        summary="A Kubernetes object whose text is not YAML, not UTF-8, or larger than the linter reads.",
        why="Rules cannot judge an object that cannot be read, and the applied object may differ from what a reviewer reads.",
        remediation="Fix the text so that `kubectl apply --dry-run=client -f FILE` takes it; split what is too long into several files.",
        link="https://yaml.org/spec/1.1/",
    ),
    Rule(
        code="FLX902",
        name=InputProblem.DUPLICATE_KEY,
        severity=Severity.HIGH,
        summary="A key that occurs twice in one mapping.",
        why="YAML forbids duplicate keys. Tools that accept them keep the last value and silently drop the first, which may be the limit "
        "or the taint that a reviewer saw.",
        remediation="Keep one of the two keys, with everything that belongs below it.",
        link="https://yaml.org/spec/1.1/#id932806",
    ),
)


_TEXT_RULES: Final = frozenset(rule.name for rule in INPUT_RULES)


def problem_finding(problem: Problem) -> Finding:
    """Return the finding that reports a problem."""
    [rule] = [each for each in INPUT_RULES if each.name == problem.kind]
    version, kind, namespace, name = problem.named
    return replace(finding_of(rule, ObjectIdentity(version, kind, name, namespace), fails(problem.message)), page="docs/lint.md")


FILE_NAME: Final = "flexspot-lint.yaml"

PACK: Final = "flexspot"
"""Key of the policy pack's configuration. The linter's file has the same content under the same key."""

_KEYS: Final = (PACK, "exclude", "fail-on", "closed", "baseline", "clusters", "paths", "pages", OWN_RULES)


@dataclass(frozen=True)
class Configuration:
    """The linter's configuration."""

    settings: Settings = DEFAULTS
    """Levels, parameters and suppressions of rules."""
    exclude: tuple[str, ...] = ()
    fail_on: Severity | None = None
    """Lowest severity that fails a run, if a user set one. Otherwise the rules' levels decide, as in a preview: mandatory rules fail a run.
    """
    closed: bool = False
    baseline: Path | None = None
    folder: Path = Path()
    """Folder of the configuration file, to which its patterns and paths are relative."""
    rules: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The file's settings of rules as written: the policy pack's own configuration."""
    clusters: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, "tuple[str, ...]"])
    """Files and folders by cluster name. If empty, the linter separates clusters by itself (flexspot.policies.lint.scopes)."""
    paths: tuple[PathLevels, ...] = ()
    """Levels of rules under some paths. The last match wins."""
    pages: str = ""
    """URL prefix of the rules' pages, before `docs/rules`."""
    chosen: frozenset[str] | None = None
    """Names of the selected rules. None: all."""
    own: tuple[OwnRule, ...] = ()
    """An organisation's own rules."""

    @property
    def known_rules(self) -> tuple[Rule, ...]:
        """All rules that may have findings in files."""
        return (*judged_rules(), *self.own)

    @property
    def rules_of_objects(self) -> tuple[Rule, ...]:
        """The selected rules about objects."""
        return tuple(each for each in (*all_rules(), *self.own) if self.chosen is None or each.name in self.chosen)

    @property
    def running(self) -> Settings:
        """Settings for the rules about objects. Rules that are enabled only under some paths run, too, and are reported only there.

        Excludes suppressions of rules about texts, which the rules about objects would reject as mistakes.
        """
        somewhere = {rule for each in self.paths for rule, level in each.levels.items() if level is not Level.DISABLED}
        on = {rule: Level.ADVISORY for rule in somewhere if self.level(rule) is Level.DISABLED}
        of_objects = tuple(each for each in self.settings.suppressions if each.rule not in _TEXT_RULES)
        return replace(self.settings, levels={**self.settings.levels, **on}, suppressions=of_objects)

    @property
    def locked(self) -> dict[str, bool]:
        """For each rule, whether it must not be suppressed."""
        return {rule.name: self.settings.locks(rule) for rule in self.known_rules}

    def page(self, written: str) -> str:
        """Return the address of a page of this repository for readers without a checkout."""
        return f"{self.pages.rstrip('/')}/{written}" if self.pages and written else written

    def cluster_paths(self) -> dict[str, tuple[str, ...]]:
        """Return the paths of each cluster in the forms in which files may be named: relative to the working folder, and absolute."""
        absolute = {name: [self.folder / path for path in paths] for name, paths in self.clusters.items()}
        return {
            name: tuple(spelling for path in paths for spelling in (os.path.relpath(path), os.path.normpath(path.absolute())))
            for name, paths in absolute.items()
        }

    def binding(self, rule: str, severity: Severity, path: str) -> bool:
        """Return whether a finding decides the exit code: by its rule's level in the file, else `fail_on`, else the shipped level."""
        written = self._level_under(rule, path) or self.settings.levels.get(rule)
        if written is not None:
            return written is Level.MANDATORY
        if self.fail_on is not None:
            return GRAVEST_FIRST.index(severity) <= GRAVEST_FIRST.index(self.fail_on)
        # Findings that do not belong to a rule, such as a defect of a suppression, have no level.
        level = self.level(rule, path)
        return level is Level.MANDATORY if level else severity in GRAVEST_FIRST[:2]

    def _level_under(self, rule: str, path: str) -> Level | None:
        if not self.paths or not path:
            return None
        relative = os.path.relpath(path, self.folder).replace(os.sep, "/")
        return next((each.levels[rule] for each in reversed(self.paths) if rule in each.levels and each.covers(relative)), None)

    def level(self, rule: str, path: str = "") -> Level | None:
        """Return the level of a rule, at a path if one is given. None for other findings, such as a defect of a suppression."""
        named = _by_name().get(rule) or next((each for each in self.own if each.name == rule), None)
        return self._level_under(rule, path) or (self.settings.level(named) if named else None)


def judged_rules() -> tuple[Rule, ...]:
    """Return all rules that may have findings in files: those about objects, and those about texts."""
    return (*all_rules(), *INPUT_RULES)


@cache
def _by_name() -> Mapping[str, Rule]:
    return {each.name: each for each in judged_rules()}


def find_configuration(start: Path) -> Path | None:
    """Return the configuration file in `start` or the nearest folder above it, up to the root of the git repository."""
    for folder in (start, *start.parents):
        if (folder / FILE_NAME).is_file():
            return folder / FILE_NAME
        if (folder / ".git").exists():
            return None
    return None


def read_configuration(path: Path) -> Configuration:
    """Return the configuration in a file. Raises ExplainedError with all errors in it."""
    try:
        documents = documents_in(path.read_bytes())
    except OSError as error:
        raise _unusable(path, [f"it cannot be read: {error.strerror}"]) from error
    except DocumentRefusedError as error:
        raise _unusable(path, [f"line {error.line}: {error}"]) from error
    problems = [f"line {each.line}: duplicate key {each.key}" for document in documents for each in document.duplicates]
    written: Any = documents[0].value if documents else {}
    if len(documents) > 1 or not isinstance(written, dict):
        raise _unusable(path, ["it must be one mapping with the keys " + ", ".join(_KEYS)])
    content = cast("dict[str, Any]", written)
    problems += [f"{key}: there is no such key; allowed: {', '.join(_KEYS)}" for key in content if key not in _KEYS]
    own = read_own_rules(content.get(OWN_RULES), [text for rule in judged_rules() for text in (rule.name, rule.code)], problems)
    known = (*judged_rules(), *own)
    settings = replace(_settings(content.get(PACK), known, problems), custom=frozenset(rule.name for rule in own))

    def value_of(key: str, default: Any, fits: Callable[[Any], bool], words: str) -> Any:
        value = content.get(key, default)
        if not fits(value):
            problems.append(f"{key}: {words}")
        return value

    exclude = value_of("exclude", [], _is_texts, "must be a list of path patterns such as tests/*, relative to this file")
    severities = f"{content.get('fail-on')!r} is not allowed; allowed: {', '.join(Severity)}"
    fail_on = value_of("fail-on", None, lambda each: each is None or each in list(Severity), severities)
    closed = value_of("closed", False, lambda each: isinstance(each, bool), "must be true or false")
    baseline = value_of("baseline", None, lambda each: isinstance(each, str | None), "must be the path of a file, relative to this one")
    clusters = _clusters(content.get("clusters"), problems)
    paths = _read_path_levels(content.get("paths"), known, problems)
    place = "must be the URL that docs/rules is below, such as https://git.acme.com/flexspot/blob/main"
    pages = value_of("pages", "", lambda each: isinstance(each, str), place)
    if problems:
        raise _unusable(path, problems)
    folder = path.resolve().parent
    return Configuration(
        settings=settings,
        exclude=tuple(exclude or ()),
        fail_on=fail_on and Severity(fail_on),
        closed=closed,
        baseline=folder / baseline if baseline is not None else None,
        folder=folder,
        rules=mapping_of(content.get(PACK)),
        clusters=clusters,
        paths=paths,
        pages=pages,
        own=own,
    )


def _is_texts(written: Any) -> bool:
    """Return whether it is a list of texts or absent."""
    return written is None or (isinstance(written, list) and all(isinstance(each, str) for each in cast("list[Any]", written)))


def _settings(written: Any, known: Iterable[Rule], problems: list[str]) -> Settings:
    if written is None:
        return DEFAULTS
    if not isinstance(written, dict):
        problems.append(f"{PACK}: must be a mapping of rules to levels and parameters")
        return DEFAULTS
    settings = read_settings(cast("dict[str, Any]", written), known)
    problems += [f"{PACK}.{problem}" for problem in settings.problems]
    return settings


def _clusters(written: Any, problems: list[str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    if written is None:
        return found
    if not isinstance(written, dict):
        problems.append("clusters: must be a mapping of names to lists of files and folders")
        return found
    for name, paths in cast("dict[str, Any]", written).items():
        listed = cast("list[Any]", paths) if isinstance(paths, list) else [paths]
        if listed and all(isinstance(each, str) and each for each in listed):
            found[name] = tuple(listed)
        else:
            problems.append(f"clusters.{name}: must be a list of files and folders, relative to this file")
    return found


def _unusable(path: Path, problems: list[str]) -> ExplainedError:
    return ExplainedError(
        f"the configuration {path} cannot be used.",
        "fix each line above, then run again; docs/lint.md has an example.",
        exit_code=ExitCode.BAD_USAGE,
        evidence=tuple(problems),
    )
