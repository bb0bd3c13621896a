"""What a run of the linter found, in the form that every output is made from."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from capacity.values.verdict import Severity
from policies.core import READING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from policies.lint.manifests import Skipped
    from policies.values.finding import Finding

GRAVEST_FIRST: Final = (Severity.CRITICAL, Severity.HIGH, Severity.MEDIUM, Severity.LOW)


@dataclass(frozen=True)
class Suppression:
    """Why a finding is accepted, until which day and by whom, as the object, the configuration or the baseline says."""

    reason: str
    until: str | None = None
    by: str = ""
    in_source: bool = False
    """Whether it is written on the object itself."""

    @property
    def described(self) -> str:
        """In one line."""
        return f"{self.reason}{f', until {self.until}' if self.until else ''}{f', by {self.by}' if self.by else ''}"


@dataclass(frozen=True)
class Placed:
    """A finding and where it is. `binding` is whether it decides the exit code: an advisory rule's does not."""

    finding: Finding
    path: str
    line: int
    suppressed: Suppression | None = None
    binding: bool = True

    @property
    def references(self) -> str:
        """Where to read more: the rule's page, and where its facts come from."""
        return "; ".join(each for each in (self.finding.page, self.finding.link) if each)

    @property
    def defect(self) -> bool:
        """Whether it reports a broken rule or reader, so that nothing was judged."""
        return self.finding.rule == READING or "is broken: " in self.finding.message

    @property
    def order(self) -> tuple[str, int, str, str]:
        """By file, then by line."""
        return self.path, self.line, self.finding.code, self.finding.message


@dataclass(frozen=True)
class Report:
    """Everything that a run says. `findings` are violations, those that are suppressed included; `undecided` hang on what is unknown."""

    findings: tuple[Placed, ...]
    undecided: tuple[Placed, ...]
    fail_on: Severity
    files: int
    documents: int
    objects: int
    skipped: Mapping[Skipped, int] = field(default_factory=Counter["Skipped"])
    settled: int = 0
    """Entries of the baseline whose finding is gone."""

    @property
    def open(self) -> tuple[Placed, ...]:
        """The findings that nobody accepted."""
        return tuple(each for each in self.findings if each.suppressed is None)

    @property
    def failed(self) -> bool:
        """Whether there is an open finding of a severity that fails the run."""
        failing = GRAVEST_FIRST[: GRAVEST_FIRST.index(self.fail_on) + 1]
        return any(each.binding and each.finding.severity in failing for each in self.open)

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
