"""What a check says of an object: the verdict, and how much it matters."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any


class Verdict(StrEnum):
    """The answer of one rule about one object. It is never a bool: what cannot be decided is an answer of its own.

    PASS: the object is what the rule asks for, and nothing that is still unknown can change that.
    FAIL: the object breaks the rule, and nothing that is still unknown can fix it.
    UNKNOWN: the answer hangs on a value that is known only later; it is not a weaker FAIL.
    NOT_APPLICABLE: the rule has nothing to say about this object: it is exempt, or only part of it is written here.
    SUPPRESSED: the object breaks the rule, and its owner said why that is accepted.
    """

    PASS = "pass"  # noqa: S105 -- a verdict, not a password
    FAIL = "fail"
    UNKNOWN = "unknown"
    NOT_APPLICABLE = "not-applicable"
    SUPPRESSED = "suppressed"


class Severity(StrEnum):
    """How much a broken rule costs; it says nothing about whether a deployment is stopped, which is the rule's level.

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
    """Which object is meant. `api_version` is the Kubernetes one, or the package and module of a Pulumi type token."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        """`apiVersion/kind/namespace/name`; an object that has no namespace has three parts."""
        return "/".join(part for part in (self.api_version, self.kind, self.namespace, self.name) if part)

    @property
    def described(self) -> str:
        """As a sentence names it: kind, namespace and name."""
        return f"{self.kind} {self.namespace + '/' if self.namespace else ''}{self.name}"


@dataclass(frozen=True)
class Addition:
    """What fixes an object by being written where nothing is written yet: it takes nothing away and changes nothing that is there.

    `at` is the path of a mapping, to which `key` is added, or without a key that of a list; neither need be there. `value` is a scalar or a
    mapping of scalars; None where only a person knows it, such as who owns the object.
    """

    at: str
    key: str
    value: Any


@dataclass(frozen=True)
class Outcome:
    """What a rule's logic returns. `reason` is for a person and quotes no value that may be a secret.

    `remedy` says what to do in the object's own spelling; empty means that the rule's general remedy serves. `at` is the path of the field
    that it is about, such as spec.limits; empty where it is about the whole object. `adds` fixes it, where one addition surely does.
    """

    verdict: Verdict
    reason: str = ""
    remedy: str = ""
    at: str = ""
    adds: Addition | None = None


PASSES = Outcome(Verdict.PASS)
NOT_APPLICABLE = Outcome(Verdict.NOT_APPLICABLE)


def fails(reason: str, remedy: str = "", at: str = "", adds: Addition | None = None) -> Outcome:
    """Broken, whatever the values not known yet turn out to be. `at` is the path of the field that breaks it; see Outcome."""
    return Outcome(Verdict.FAIL, reason, remedy, at, adds)


def undecided(reason: str) -> Outcome:
    """It hangs on a value not known yet; `reason` names it."""
    return Outcome(Verdict.UNKNOWN, reason)


@lru_cache(maxsize=1024)
def not_applicable(reason: str) -> Outcome:
    """The rule does not speak about this view."""
    return Outcome(Verdict.NOT_APPLICABLE, reason)
