"""One rule of a team's guarantee, in CEL, and what such rules go by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from policies.admission.form import POD_SETS

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Guarantee:
    """What the rules go by.

    The names of the queues of each team's namespace, the PriorityClasses of queued and of other work, and the longest grace period in
    seconds.
    """

    queues: Mapping[str, tuple[str, ...]]
    queued: tuple[str, ...]
    unqueued: tuple[str, ...]
    longest_grace: int
    facts: Mapping[str, str]

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Teams' namespaces."""
        return tuple(sorted(self.queues))


@dataclass(frozen=True)
class Boundary:
    """One rule: `problems` is CEL for a list of what is wrong, each a whole text; `title` is told where that cannot be said."""

    name: str
    title: str
    problems: str


def problem_if(condition: str, problem: str) -> str:
    """A list with a problem where a condition holds."""
    return f"(({condition}) ? [{problem}] : [])"


def of_pods(condition: str, problem: str) -> str:
    """A problem of each pod set `p` for which a condition holds."""
    return f"{POD_SETS}.filter(p, {condition}).map(p, {problem})"
