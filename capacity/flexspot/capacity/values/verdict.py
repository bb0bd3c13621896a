"""Verdicts of rules about objects, and their severities."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any


class Verdict(StrEnum):
    """The verdict of one rule about one object. It is never a bool, because UNKNOWN is a separate verdict.

    PASS: the object follows the rule, and no value that is still unknown can change that.
    FAIL: the object breaks the rule, and no value that is still unknown can fix it.
    UNKNOWN: the verdict depends on a value that is known only later. It is not a weaker FAIL.
    NOT_APPLICABLE: the rule does not apply to this object: it is exempt, or only part of it is declared here.
    SUPPRESSED: the object breaks the rule, and its owner gave a reason to accept that.
    """

    PASS = "pass"  # noqa: S105 -- a verdict, not a password
    FAIL = "fail"
    UNKNOWN = "unknown"
    NOT_APPLICABLE = "not-applicable"
    SUPPRESSED = "suppressed"


class Severity(StrEnum):
    """The damage that a broken rule causes. The rule's level, not its severity, decides whether a deployment is stopped.

    CRITICAL: money or data is lost at once and without bound.
    HIGH: money or capacity is lost in ordinary operation.
    MEDIUM: it is lost under conditions that will come, such as an interruption.
    LOW: the platform becomes harder to run or to account for.
    """

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True)
class ObjectIdentity:
    """The identity of an object."""

    api_version: str
    """The Kubernetes API version, or the package and module of a Pulumi type token."""
    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        """Return `apiVersion/kind/namespace/name`. An object without a namespace has three parts."""
        return "/".join(part for part in (self.api_version, self.kind, self.namespace, self.name) if part)

    @property
    def described(self) -> str:
        """Kind, namespace and name, as a phrase."""
        return f"{self.kind} {self.namespace + '/' if self.namespace else ''}{self.name}"


@dataclass(frozen=True)
class Addition:
    """An addition that fixes an object. It removes and changes nothing."""

    at: str
    """Path of the mapping or list that gets the addition. It need not exist."""
    key: str
    """Key of the mapping. Empty: `at` is a list."""
    value: Any
    """A scalar or a mapping of scalars. None: only a person knows it, such as the owner of an object."""


@dataclass(frozen=True)
class Outcome:
    """The result of a rule's logic."""

    verdict: Verdict
    reason: str = ""
    """Explanation for users. It quotes no value that may be a secret."""
    remedy: str = ""
    """The fix, in the notation of the object. Empty: the general remedy of the rule applies."""
    at: str = ""
    """Path of the field, such as spec.limits. Empty: the verdict is about the whole object."""
    adds: Addition | None = None
    """The addition that fixes the object, if a single one certainly does."""


PASSES = Outcome(Verdict.PASS)
NOT_APPLICABLE = Outcome(Verdict.NOT_APPLICABLE)


def fails(reason: str, remedy: str = "", at: str = "", adds: Addition | None = None) -> Outcome:
    """Return a failed outcome: the object breaks the rule, whatever values are still unknown.

    `at` is the path of the field; see Outcome.
    """
    return Outcome(Verdict.FAIL, reason, remedy, at, adds)


def undecided(reason: str) -> Outcome:
    """Return an undecided outcome. `reason` names the value that is not known yet."""
    return Outcome(Verdict.UNKNOWN, reason)


@lru_cache(maxsize=1024)
def not_applicable(reason: str) -> Outcome:
    """Return the outcome of a rule that does not apply."""
    return Outcome(Verdict.NOT_APPLICABLE, reason)
