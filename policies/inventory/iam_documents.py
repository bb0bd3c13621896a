"""What documents of AWS IAM say: their statements, and how many of their characters AWS counts."""

from __future__ import annotations

import json
import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from policies.values.field import Field
from policies.values.unknown import UNKNOWN, Tri, all_of, any_of, plain

if TYPE_CHECKING:
    from policies.values.unknown import Unknown

_WHITE_SPACE = re.compile(r"\s")

# arn:aws:s3:::* and arn:aws:iam::123456789012:*: all of a service.
_EVERY_ARN = re.compile(r"\*|arn:[^:]*:[^:]*:[^:]*:[^:]*:\*")


def characters_of(document: Field) -> int | Unknown:
    """How many characters AWS counts: all but white space. Source: IAM user guide, "IAM and AWS STS quotas"."""
    if not _all_known(document):
        return UNKNOWN
    written = document.value if isinstance(document.value, str) else json.dumps(document.value, separators=(",", ":"))
    return len(_WHITE_SPACE.sub("", written))


def _all_known(field: Field) -> bool:
    return field.known and (not isinstance(field.value, dict | list) or all(_all_known(each) for each in field.parts().fields))


def statements_of(document: Field) -> tuple[tuple[str, Field], ...] | Unknown:
    """The statements with their places; UNKNOWN for a document that is not known yet, none for what is no document."""
    if not document.known:
        return UNKNOWN
    if isinstance(document.value, str):
        try:
            document = Field(plain(json.loads(document.value)))
        except (ValueError, RecursionError):
            return ()
    listed = document.at("Statement")
    if not listed.known:
        return UNKNOWN
    return (("0", listed),) if isinstance(listed.value, dict) else listed.parts().named


def _texts(field: Field) -> tuple[Field, ...]:
    """One text, or a list of them."""
    return field.parts().fields if isinstance(field.value, list) else (() if field.absent else (field,))


def allows_everything_of(statement: Field) -> tuple[Tri, str]:
    """Whether a statement allows all actions, or all of one service, on everything there is, without a condition; and which."""
    open_to_all = _on_everything(statement)
    found: list[tuple[Tri, str]] = []
    for action in _texts(statement.at("Action")):
        text = action.text()
        wide = UNKNOWN if text is UNKNOWN else bool(text) and str(text).rpartition(":")[2] == "*"
        found.append((all_of([wide, open_to_all]), str(text) if isinstance(text, str) else "an action"))
    if not statement.at("NotAction").absent:
        found.append((open_to_all, "all but its NotAction"))
    return _first(found)


def passes_any_role(statement: Field) -> tuple[Tri, str]:
    """Whether a statement lets its holder pass any role to any service: with that goes whatever those roles may do."""
    found: list[tuple[Tri, str]] = []
    for action in _texts(statement.at("Action")):
        text = action.text()
        passing = UNKNOWN if text is UNKNOWN else fnmatchcase("iam:passrole", str(text).lower())
        found.append((all_of([passing, _on_everything(statement)]), str(text)))
    return _first(found)


def open_to_everybody(statement: Field) -> Tri:
    """Whether a statement allows something to anybody at all, without a condition."""
    principal = statement.at("Principal")
    anybody = [principal, *_texts(principal.at("AWS"))] if isinstance(principal.value, dict) else [principal]
    return all_of([_unconditional(statement), any_of(each.equals("*") for each in anybody)])


def faults_of(statement: Field, *, trust: bool) -> list[tuple[Tri, str, str]]:
    """What may be too broad in a statement, be it of a `trust` policy: whether it is, what it does, and what to write instead."""
    if trust:
        return [(open_to_everybody(statement), "lets everybody take the role", "name who may take it in Principal")]
    wide, action = allows_everything_of(statement)
    passing, by = passes_any_role(statement)
    return [
        (wide, f"allows {action} on every resource", "list the actions and the resources"),
        (passing, f"allows {by} on every role", "name the role in Resource"),
    ]


def _on_everything(statement: Field) -> Tri:
    def everything(resource: Field) -> Tri:
        text = resource.text()
        return UNKNOWN if text is UNKNOWN else _EVERY_ARN.fullmatch(str(text)) is not None

    return all_of([_unconditional(statement), any_of(everything(each) for each in _texts(statement.at("Resource")))])


def _unconditional(statement: Field) -> Tri:
    condition = statement.at("Condition")
    return all_of([statement.at("Effect").equals("Allow"), condition.absent or condition.value == {} if condition.known else UNKNOWN])


def _first(found: list[tuple[Tri, str]]) -> tuple[Tri, str]:
    answer = any_of(each for each, _ in found)
    return answer, next((name for each, name in found if each is answer), "")
