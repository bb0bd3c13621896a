"""The report of a linter run, and baselines: findings that a repository had when it adopted the linter."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.capacity.values.verdict import Severity
from flexspot.policies.core import is_defect
from flexspot.policies.values.field import list_of, mapping_of
from flexspot.policies.values.finding import Suppression

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from flexspot.policies.lint.file_reading import Skipped
    from flexspot.policies.values.finding import Finding


_VERSION: Final = 1


def written_baseline(report: LintReport, path: Path) -> str:
    """Return the text of a baseline file at `path` with every open finding, one per line, so that a review shows each change."""
    entries = [
        {"fingerprint": name, "rule": each.finding.rule, "path": relative, "object": str(each.finding.object)}
        for each, relative, name in _named(report.open, path)
    ]
    lines = ",\n".join(f"    {json.dumps(entry)}" for entry in entries)
    return f'{{\n  "version": {_VERSION},\n  "findings": [' + (f"\n{lines}\n  ]\n}}\n" if lines else "]\n}\n")


def with_baseline(report: LintReport, path: Path, *, whole: bool = True) -> LintReport:
    """Suppress the findings that the baseline at `path` lists, and count its entries without a finding.

    Nothing is counted unless the run is `whole`, with all rules, because such entries may belong to rules that did not run. Raises
    ExplainedError for a file that is not a baseline.
    """
    listed = _read(path)
    accepted = Suppression(f"in the baseline {path.name}")
    names = {id(each): name for each, _, name in _named(report.open, path)}
    findings = tuple(replace(each, suppressed=accepted) if names.get(id(each)) in listed else each for each in report.findings)
    return replace(report, findings=findings, settled=len(listed - set(names.values())) if whole else 0)


def _named(findings: Iterable[Placed], path: Path) -> list[tuple[Placed, str, str]]:
    """Return findings with their path relative to the baseline's folder and their fingerprint."""
    listed = list(findings)
    relative = {each.path: os.path.relpath(each.path, path.parent).replace(os.sep, "/") for each in listed}
    return [(each, relative[each.path], name) for each, name in zip(listed, fingerprints(listed, relative), strict=True)]


def _read(path: Path) -> frozenset[str]:
    try:
        content: Any = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise _unusable(path, "it does not exist", f"write it with --baseline {path} --write-baseline.") from error
    except OSError as error:
        raise _unusable(path, f"it cannot be read: {error.strerror}", "name another file.") from error
    except (ValueError, RecursionError) as error:
        raise _unusable(path, "it is not JSON", "recreate it with --write-baseline.") from error
    listed = mapping_of(content).get("findings")
    names = [mapping_of(each).get("fingerprint") for each in list_of(listed)]
    if mapping_of(content).get("version") != _VERSION or not isinstance(listed, list) or not all(isinstance(name, str) for name in names):
        raise _unusable(path, f"it is not a baseline of version {_VERSION}", "recreate it with --write-baseline.")
    return frozenset(str(name) for name in names)


def _unusable(path: Path, why: str, remedy: str) -> ExplainedError:
    return ExplainedError(f"the baseline {path} cannot be used: {why}.", remedy, exit_code=ExitCode.BAD_USAGE)


GRAVEST_FIRST: Final = (Severity.CRITICAL, Severity.HIGH, Severity.MEDIUM, Severity.LOW)


@dataclass(frozen=True)
class Placed:
    """A finding with its place."""

    finding: Finding
    path: str
    line: int
    suppressed: Suppression | None = None
    binding: bool = True
    """True if the finding decides the exit code."""
    clusters: tuple[str, ...] = ()
    """Names of the clusters that have the finding. Empty for findings about a single object, or with a single cluster."""

    @property
    def message(self) -> str:
        """The problem, with the clusters that have it."""
        named = f"cluster {', '.join(self.clusters)}: " if self.clusters else ""
        return f"{named}{self.finding.message}"

    @property
    def description(self) -> str:
        """The object and its problem."""
        name = self.finding.object.described.strip()
        return f"{name}: {self.message}" if name else self.message

    @property
    def references(self) -> str:
        """Sources: the rule's page, and the source of its facts."""
        return "; ".join(each for each in (self.finding.page, self.finding.link) if each)

    @property
    def defect(self) -> bool:
        """True if the finding reports a broken rule or reader, so that the object was not judged."""
        return is_defect(self.finding)

    @property
    def order(self) -> tuple[str, int, str, str]:
        """Sort key: file, then line."""
        return self.path, self.line, self.finding.code, self.finding.message


@dataclass(frozen=True)
class LintReport:
    """The result of a run."""

    findings: tuple[Placed, ...]
    """Violations, including suppressed ones."""
    undecided: tuple[Placed, ...]
    """Findings that depend on unknown values."""
    fail_on: Severity | None
    """Lowest severity that fails the run, if a user set one. None: the rules' levels decide."""
    files: int
    documents: int
    objects: int
    skipped: Mapping[Skipped, int] = field(default_factory=Counter)
    settled: int = 0
    """Number of baseline entries whose finding no longer exists."""
    unjudged: Mapping[str, int] = field(default_factory=Counter[str])
    """Number of objects of each kind that no rule covers, except the rule about field names."""
    clusters: Mapping[str, int] = field(default_factory=dict[str, int])
    """Number of objects in each cluster within which objects were compared."""

    @property
    def open(self) -> tuple[Placed, ...]:
        """Findings that are not suppressed."""
        return tuple(each for each in self.findings if each.suppressed is None)

    @property
    def failed(self) -> bool:
        """True if an open finding fails the run."""
        return any(each.binding for each in self.open)

    @property
    def by_severity(self) -> dict[Severity, int]:
        """Number of open findings of each severity."""
        counted = Counter(each.finding.severity for each in self.open)
        return {severity: counted[severity] for severity in GRAVEST_FIRST}


def fingerprints(findings: Iterable[Placed], path_of: Mapping[str, str] | None = None) -> list[str]:
    """Return a name for each finding that survives edits elsewhere in its file: a hash of rule, path, object, and number among equal ones.

    Excludes line and wording, because lines move and wording changes with the linter. `path_of` replaces the findings' paths.
    """
    seen: Counter[tuple[str, str, str]] = Counter()
    names: list[str] = []
    for each in findings:
        path = each.path if path_of is None else path_of[each.path]
        key = (each.finding.code, path, str(each.finding.object))
        seen[key] += 1
        names.append(hashlib.sha256("\n".join([*key, str(seen[key])]).encode(errors="backslashreplace")).hexdigest()[:24])
    return names
