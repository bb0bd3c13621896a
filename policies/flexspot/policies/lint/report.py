"""What a run of the linter found, and what of it a repository already had when it took up the linter."""

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
    """The text of a baseline with every open finding of a run, for a file at `path`: one line each, so that a review shows what changes."""
    entries = [
        {"fingerprint": name, "rule": each.finding.rule, "path": relative, "object": str(each.finding.object)}
        for each, relative, name in _named(report.open, path)
    ]
    lines = ",\n".join(f"    {json.dumps(entry)}" for entry in entries)
    return f'{{\n  "version": {_VERSION},\n  "findings": [' + (f"\n{lines}\n  ]\n}}\n" if lines else "]\n}\n")


def with_baseline(report: LintReport, path: Path, *, whole: bool = True) -> LintReport:
    """The report with what the baseline at `path` lists suppressed, and with the count of entries that nothing answers to any more.

    Unless it is `whole`, of all rules, entries that nothing answers to may be of the others, and none is counted.
    Raises ExplainedError for a file that is no baseline.
    """
    listed = _read(path)
    accepted = Suppression(f"in the baseline {path.name}")
    names = {id(each): name for each, _, name in _named(report.open, path)}
    findings = tuple(replace(each, suppressed=accepted) if names.get(id(each)) in listed else each for each in report.findings)
    return replace(report, findings=findings, settled=len(listed - set(names.values())) if whole else 0)


def _named(findings: Iterable[Placed], path: Path) -> list[tuple[Placed, str, str]]:
    """Findings with their path as seen from the baseline's folder, wherever the linter is started, and their name."""
    listed = list(findings)
    relative = {each.path: os.path.relpath(each.path, path.parent).replace(os.sep, "/") for each in listed}
    return [(each, relative[each.path], name) for each, name in zip(listed, fingerprints(listed, relative), strict=True)]


def _read(path: Path) -> frozenset[str]:
    try:
        held: Any = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise _unusable(path, "it does not exist", f"write it with --baseline {path} --write-baseline.") from error
    except OSError as error:
        raise _unusable(path, f"it cannot be read: {error.strerror}", "name another file.") from error
    except (ValueError, RecursionError) as error:
        raise _unusable(path, "it is not JSON", "recreate it with --write-baseline.") from error
    listed = mapping_of(held).get("findings")
    names = [mapping_of(each).get("fingerprint") for each in list_of(listed)]
    if mapping_of(held).get("version") != _VERSION or not isinstance(listed, list) or not all(isinstance(name, str) for name in names):
        raise _unusable(path, f"it is not a baseline of version {_VERSION}", "recreate it with --write-baseline.")
    return frozenset(str(name) for name in names)


def _unusable(path: Path, why: str, remedy: str) -> ExplainedError:
    return ExplainedError(f"the baseline {path} cannot be used: {why}.", remedy, exit_code=ExitCode.BAD_USAGE)


GRAVEST_FIRST: Final = (Severity.CRITICAL, Severity.HIGH, Severity.MEDIUM, Severity.LOW)


@dataclass(frozen=True)
class Placed:
    """A finding and where it is. `binding` is whether it decides the exit code, as the configuration says.

    `clusters` are those in which it is so; none where it hangs on no other object, or where there is one cluster alone.
    """

    finding: Finding
    path: str
    line: int
    suppressed: Suppression | None = None
    binding: bool = True
    clusters: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """What is wrong, and in which clusters."""
        named = f"cluster {', '.join(self.clusters)}: " if self.clusters else ""
        return f"{named}{self.finding.message}"

    @property
    def said(self) -> str:
        """What is wrong with which object."""
        name = self.finding.object.described.strip()
        return f"{name}: {self.message}" if name else self.message

    @property
    def references(self) -> str:
        """Where to read more: the rule's page, and where its facts come from."""
        return "; ".join(each for each in (self.finding.page, self.finding.link) if each)

    @property
    def defect(self) -> bool:
        """Whether it reports a broken rule or reader, so that nothing was judged."""
        return is_defect(self.finding)

    @property
    def order(self) -> tuple[str, int, str, str]:
        """By file, then by line."""
        return self.path, self.line, self.finding.code, self.finding.message


@dataclass(frozen=True)
class LintReport:
    """Everything that a run says. `findings` are violations, those that are suppressed included; `undecided` hang on what is unknown.

    `fail_on` is the bar that somebody set, None where the rules' levels decide.
    """

    findings: tuple[Placed, ...]
    undecided: tuple[Placed, ...]
    fail_on: Severity | None
    files: int
    documents: int
    objects: int
    skipped: Mapping[Skipped, int] = field(default_factory=Counter)
    settled: int = 0
    """Entries of the baseline whose finding is gone."""
    unjudged: Mapping[str, int] = field(default_factory=Counter[str])
    """How many objects there are of each kind that no rule looks at, but for the names of their fields."""
    clusters: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many objects there are in each cluster that objects were compared in."""

    @property
    def open(self) -> tuple[Placed, ...]:
        """The findings that nobody accepted."""
        return tuple(each for each in self.findings if each.suppressed is None)

    @property
    def failed(self) -> bool:
        """Whether there is an open finding that fails the run."""
        return any(each.binding for each in self.open)

    @property
    def by_severity(self) -> dict[Severity, int]:
        """How many open findings there are of each severity."""
        counted = Counter(each.finding.severity for each in self.open)
        return {severity: counted[severity] for severity in GRAVEST_FIRST}


def fingerprints(findings: Iterable[Placed], path_of: Mapping[str, str] | None = None) -> list[str]:
    """A name for each finding that outlives edits elsewhere in its file: of rule, path and object, and of which one it is of several.

    Neither line nor wording is part of it: lines move, and wording changes with the linter. `path_of` gives the paths to be used.
    """
    seen: Counter[tuple[str, str, str]] = Counter()
    names: list[str] = []
    for each in findings:
        path = each.path if path_of is None else path_of[each.path]
        key = (each.finding.code, path, str(each.finding.object))
        seen[key] += 1
        names.append(hashlib.sha256("\n".join([*key, str(seen[key])]).encode(errors="backslashreplace")).hexdigest()[:24])
    return names
