"""Errors for users: problem and place, allowed values, and what to do next."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class ExitCode(IntEnum):
    """Exit codes of all `flexspot` commands."""

    FINE = 0
    UNMET = 1
    BAD_USAGE = 2


class ExplainedError(Exception):
    """A failure that is reported to the user: what is wrong and where (`problem`), then what to do about it (`remedy`).

    `exit_code` is UNMET for something that did not work out and BAD_USAGE for bad input or a missing prerequisite. `evidence` contains the
    last lines of output, oldest first.
    """

    def __init__(
        self,
        problem: str,
        remedy: str,
        *,
        exit_code: ExitCode = ExitCode.UNMET,
        evidence: tuple[str, ...] = (),
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy
        self.exit_code = exit_code
        self.evidence = evidence

    def __str__(self) -> str:
        return "\n".join([self.problem, *(f"  | {line}" for line in self.evidence), f"What to do: {self.remedy}"])


_SHOWN = 8
"""Most allowed values that are shown of a long list."""


@dataclass(frozen=True)
class SettingsProblem:
    """One problem of the settings: an error, or a warning if `refused` is false."""

    path: str
    """Path of the setting, such as `pools.0.machine`."""
    value: str
    """The value as written. Empty: it is not shown."""
    problem: str
    allowed: str
    """Allowed values, or what to do."""
    rule: str = "invalid-setting"
    """Name of the check that found it."""
    refused: bool = True
    line: int | None = None
    """Line of the stack file, if known."""

    def __str__(self) -> str:
        where = f"line {self.line}: " if self.line else ""
        written = f" (is {self.value})" if self.value else ""
        return f"{where}{self.path}{written}: {self.problem}{f'; {self.allowed}' if self.allowed else ''}"


class SettingsError(ValueError):
    """Settings that cannot be used. `problems` contains all of them; the text has one line for each."""

    def __init__(self, source: str, problems: Iterable[SettingsProblem]) -> None:
        self.source = source
        self.problems = tuple(problems)
        super().__init__(
            "\n".join([f"{source}: {len(self.problems)} problem(s) in the settings", *(f"  {each}" for each in self.problems)])
        )

    def with_lines(self, line_of: Callable[[str], int | None]) -> SettingsError:
        """Return the same error, each problem with the line that `line_of` finds for its path, in the order of the lines."""
        found = [replace(each, line=line_of(each.path)) for each in self.problems]
        return SettingsError(self.source, sorted(found, key=lambda each: each.line or 0))


def nearest(written: str, known: Iterable[str]) -> str:
    """Return a hint with the closest value, if one is close, and the allowed values. A long list is cut to the most similar ones."""
    names = list(known)
    close = difflib.get_close_matches(written, names, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    if len(names) > _SHOWN:
        alike = difflib.get_close_matches(written, names, n=_SHOWN, cutoff=0.0)
        return f"{hint}allowed: {', '.join(sorted(alike))} and {len(names) - _SHOWN} more"
    return f"{hint}allowed: {', '.join(names) or '(none)'}"
