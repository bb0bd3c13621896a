"""What a command says when it cannot go on: told to a person, with what to do about it."""

from __future__ import annotations

from enum import IntEnum


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
