"""What a shipped stack says today that the real providers refuse. The table must shrink: an entry that no longer occurs fails a test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rule_checks import Violation


@dataclass(frozen=True)
class KnownViolation:
    """One refused input of the stack's resources named `names`, and who mends it."""

    token: str
    path: str
    problem: str
    names: frozenset[str]
    mended_by: str

    def covers(self, name: str, violation: Violation) -> bool:
        """Whether `violation` of the resource called `name` is this one."""
        return name in self.names and (violation.token, violation.path, violation.problem) == (self.token, self.path, self.problem)


KNOWN = (
    KnownViolation(
        "gcp:container/nodePool:NodePool",
        "upgrade_settings.strategy",
        "is 'SHORT_LIVED'; allowed: BLUE_GREEN, SURGE",
        frozenset({"a100-flex-node-pool", "h100-queued-node-pool"}),
        "issue 21: the strategy of flex-start pools",
    ),
)


def is_known(name: str, violation: Violation) -> bool:
    """Whether a violation of the resource called `name` is in the table."""
    return any(each.covers(name, violation) for each in KNOWN)
