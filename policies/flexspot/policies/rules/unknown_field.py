"""A field that the object's kind does not have."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final, cast

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.field_schemas import KINDS, TYPES, fields
from flexspot.policies.inventory.objects import KubernetesObject
from flexspot.policies.judging import Parameters, Rule
from flexspot.policies.values.field import UNKNOWN, Unknown


def judge(written: KubernetesObject, _: Parameters) -> Outcome:
    """Every field of the object is one of its kind, down to where the kind takes anything. Lists are judged element by element."""
    api = f"{written.group}/{written.version}" if written.group else written.version
    kind = f"{api}/{written.identity.kind}"
    known = fields()
    schema = known[KINDS].get(kind)
    if schema is None:
        return not_applicable("Flexspot does not know the fields of its kind")
    found = list(_walk(written.fields.value, schema, known[TYPES], ""))
    wrong = [_told(path, allowed) for path, allowed in found if path]
    if wrong:
        told = [f"{path} is not a field of {kind}; {hint}" for path, hint, _ in wrong]
        more = f"; and {len(told) - _TOLD} more" if len(told) > _TOLD else ""
        return fails("; ".join(told[:_TOLD]) + more, "; ".join(remedy for _, _, remedy in wrong[:_TOLD]), wrong[0][0])
    return undecided("a part of it is not known yet") if found and not written.partial else PASSES


_TOLD = 10
"""How many fields of one object are named."""

_ALLOWED = 12
"""How many allowed fields are named."""


def _told(path: str, allowed: dict[str, Any]) -> tuple[str, str, str]:
    """The path of a field, what may be meant, and what to do."""
    near = get_close_matches(path.rpartition(".")[2], allowed, n=1)
    if near:
        return path, f"did you mean {near[0]}?", f"use {near[0]} instead"
    names = sorted(allowed)
    more = f" and {len(names) - _ALLOWED} more" if len(names) > _ALLOWED else ""
    return path, f"allowed: {', '.join(names[:_ALLOWED])}{more}", f"remove {path}"


_NESTED: Final = frozenset({dict, list, Unknown})
"""What may hold fields, or hold them once it is known."""


def _walk(written: Any, schema: Any, types: Mapping[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The path of each field that is not allowed, with those that are; an empty path for a part that is not known yet.

    Over plain values, and not over Fields: every field of every object of a known kind is asked for.
    """
    allowed = types.get(schema) if isinstance(schema, str) else schema
    if allowed is None or written is None:
        return
    if written is UNKNOWN:
        yield "", {}
    elif isinstance(written, list):
        for place, element in enumerate(cast("list[Any]", written)):
            if type(element) in _NESTED:
                yield from _walk(element, schema, types, f"{path}[{place}]")
    elif isinstance(written, dict):
        for name, value in cast("dict[str, Any]", written).items():
            if name not in allowed:
                yield f"{path}.{name}" if path else name, allowed
            elif type(value) in _NESTED:
                yield from _walk(value, allowed[name], types, f"{path}.{name}" if path else name)


RULE = Rule(
    code="FLX025",
    severity=Severity.MEDIUM,
    judge=judge,
    why="An unknown field is dropped, or refused when it is applied: what it was meant to do, such as set a limit, does not happen.",
    remediation="Use a field that the kind has in this version.",
    link="https://kubernetes.io/docs/reference/using-api/api-concepts/#field-validation",
    sources=(
        "The definitions of Kueue 0.19.0, Karpenter 1.14.1, its AWS provider 1.14.1 and JobSet 0.12.0.",
        "The models of the Kubernetes client 37.",
    ),
)
