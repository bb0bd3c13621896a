"""What IAM would decide, for the parts of its language that the project's documents use.

Written from the IAM user guide: "Policy evaluation logic", "IAM JSON policy elements: Condition operators", "Single-valued vs.
multivalued context keys". What is not known here raises, so that no condition is ever passed over in silence. Not covered: boundaries,
session policies, service control policies, and the principals of requests beyond a plain name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from components.iam import Document, Statement

ELEMENTS = {"Sid", "Effect", "Principal", "Action", "Resource", "Condition"}

ARN_PARTS = 6


class Verdict(StrEnum):
    """What becomes of a request; whatever is not allowed is refused."""

    ALLOWED = "allowed"
    DENIED = "denied by a statement"
    NOT_ALLOWED = "allowed by no statement"


@dataclass(frozen=True)
class Request:
    """One action on one resource. An action on several resources is one request for each, and all must be allowed."""

    action: str
    resource: str
    context: Mapping[str, str | Sequence[str]] = field(default_factory=dict[str, str])
    principal: str = ""
    """A service such as events.amazonaws.com; empty for the identity that the documents are attached to."""


def decide(documents: Iterable[Document], request: Request) -> Verdict:
    """A statement that denies wins; otherwise one that allows is needed. Raises ValueError for what is not known here."""
    effects = {statement["Effect"] for document in documents for statement in document["Statement"] if _applies(statement, request)}
    if "Deny" in effects:
        return Verdict.DENIED
    return Verdict.ALLOWED if "Allow" in effects else Verdict.NOT_ALLOWED


def _applies(statement: Statement, request: Request) -> bool:
    unknown = set(statement) - ELEMENTS
    if unknown or statement["Effect"] not in {"Allow", "Deny"}:
        raise ValueError(f"not known to the evaluator: {', '.join(sorted(unknown)) or statement['Effect']}")
    context = {key.lower(): listed(values) for key, values in request.context.items()}
    conditions = [
        _holds(operator, context.get(key.lower()), [_plain(value) for value in listed(wanted)])
        for operator, keys in statement.get("Condition", {}).items()
        for key, wanted in keys.items()
    ]
    return (
        _principal_matches(statement.get("Principal"), request.principal)
        and any(_like(action.lower(), request.action.lower()) for action in listed(statement["Action"]))
        and any(_like(_plain(resource), request.resource) for resource in listed(statement.get("Resource", "*")))
        and all(conditions)
    )


def _principal_matches(principal: str | Mapping[str, str | Sequence[str]] | None, name: str) -> bool:
    if principal is None or principal in ("*", {"AWS": "*"}):
        return True
    if isinstance(principal, str) or set(principal) - {"Service"}:
        raise ValueError(f"not known to the evaluator: principal {principal}")
    return name in listed(principal["Service"])


def _holds(operator: str, found: list[str] | None, wanted: list[str]) -> bool:
    """Whether one key of a condition holds; `found` is None where the request has no such key."""
    if operator == "Null":
        return wanted == [str(found is None).lower()]
    quantifier, _, rest = operator.rpartition(":")
    base = rest.removesuffix("IfExists")
    negated = "Not" in base
    test = _test_of(base.replace("Not", ""))
    if found is None:
        # Nothing to compare: true of a set of none, of what may be missing, and of "is not"; false of all else.
        return quantifier == "ForAllValues" or (quantifier == "" and (negated or rest != base))
    matches = [any(test(want, value) for want in wanted) is not negated for value in found]
    if quantifier == "ForAnyValue":
        return any(matches)
    if quantifier == "" and len(found) != 1:
        raise ValueError(f"{operator} compares one value; the request has {found}")
    if quantifier not in {"", "ForAllValues"}:
        raise ValueError(f"not known to the evaluator: {operator}")
    return all(matches)


def _test_of(base: str) -> Callable[[str, str], bool]:
    tests: dict[str, Callable[[str, str], bool]] = {
        "StringEquals": lambda want, value: want == value,
        "StringEqualsIgnoreCase": lambda want, value: want.lower() == value.lower(),
        "StringLike": _like,
        "Bool": lambda want, value: want.lower() == value.lower(),
        # Both take wildcards, and compare an ARN part by part.
        "ArnEquals": _arn_like,
        "ArnLike": _arn_like,
        "NumericLessThan": lambda want, value: float(value) < float(want),
    }
    if base not in tests:
        raise ValueError(f"not known to the evaluator: {base}")
    return tests[base]


def _like(pattern: str, value: str) -> bool:
    """Case-sensitive, with * for any characters and ? for one; in a resource, too, a * goes beyond a colon."""
    parts = {"*": ".*", "?": "."}
    return re.fullmatch("".join(parts.get(each, re.escape(each)) for each in pattern), value, re.DOTALL) is not None


def _arn_like(pattern: str, value: str) -> bool:
    wanted, found = pattern.split(":", ARN_PARTS - 1), value.split(":", ARN_PARTS - 1)
    return len(wanted) == len(found) and all(_like(want, part) for want, part in zip(wanted, found, strict=True))


def _plain(value: str) -> str:
    if "${" in value:
        raise ValueError(f"not known to the evaluator: the variable in {value}")
    return value


def listed(values: str | Sequence[str]) -> list[str]:
    """The values where there may be one alone."""
    return [values] if isinstance(values, str) else [*values]
