"""What is wrong, told so that a person can fix it: what and where, what is allowed, what to do next."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class ExitCode(IntEnum):
    """What a command's exit code means; the same for every `flexspot` command."""

    FINE = 0
    UNMET = 1
    BAD_USAGE = 2


class ExplainedError(Exception):
    """A failure told to a person: what is wrong and where (`problem`), then what to do about it (`remedy`).

    `exit_code` is UNMET for something that did not work out and BAD_USAGE for bad input or a missing prerequisite.
    `evidence` holds the last lines of output, oldest first, when there are any.
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
"""How many of a long list of allowed values are shown."""


@dataclass(frozen=True)
class SettingsProblem:
    """One thing that is wrong, or (with `refused` false) that works but is probably not meant.

    `path` says where (such as `pools.0.machine`), `value` what was written, `allowed` what may be written instead or what to do.
    `rule` is the name of the check that found it, `line` the line of the stack file, when known.
    """

    path: str
    value: str
    problem: str
    allowed: str
    rule: str = "invalid-setting"
    refused: bool = True
    line: int | None = None

    def __str__(self) -> str:
        where = f"line {self.line}: " if self.line else ""
        written = f" (is {self.value})" if self.value else ""
        return f"{where}{self.path}{written}: {self.problem}{f'; {self.allowed}' if self.allowed else ''}"


class SettingsError(ValueError):
    """Settings that cannot be used. `problems` holds all of them; the text is one line each."""

    def __init__(self, source: str, problems: Iterable[SettingsProblem]) -> None:
        self.source = source
        self.problems = tuple(problems)
        super().__init__(
            "\n".join([f"{source}: {len(self.problems)} problem(s) in the settings", *(f"  {each}" for each in self.problems)])
        )

    def with_lines(self, line_of: Callable[[str], int | None]) -> SettingsError:
        """The same, each problem with the line that `line_of` finds for its path, in the order of the lines."""
        found = [replace(each, line=line_of(each.path)) for each in self.problems]
        return SettingsError(self.source, sorted(found, key=lambda each: each.line or 0))


def nearest(written: str, known: Iterable[str]) -> str:
    """What may be written instead: the closest first, if one is close, then all; of a long list those that look most like it."""
    names = list(known)
    close = difflib.get_close_matches(written, names, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    if len(names) > _SHOWN:
        alike = difflib.get_close_matches(written, names, n=_SHOWN, cutoff=0.0)
        return f"{hint}allowed: {', '.join(sorted(alike))} and {len(names) - _SHOWN} more"
    return f"{hint}allowed: {', '.join(names) or '(none)'}"
