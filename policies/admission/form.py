"""A rule's form in CEL: what makes a ValidatingAdmissionPolicy of it. Name, code and words are the rule's own.

A rule without a form says why in `without_cel`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from policies.admission.cel import sentence, text
from policies.admission.pod_sets import MATCHED

if TYPE_CHECKING:
    from policies.judging.rule import AnyRule


@dataclass(frozen=True)
class Matched:
    """A kind of object that the API server shows to a policy; `resource` is how its paths call the kind."""

    group: str
    kind: str
    resource: str


POD_MAKERS = tuple(Matched(maker.group, maker.kind, maker.resource) for maker in MATCHED)
"""Whatever makes pods, bare pods included."""


@dataclass(frozen=True)
class Form:
    """`problems` is CEL for a list of what is wrong with `object`, each a text that `told` makes; empty for an object that keeps the rule.

    It may use `request`, `namespaceObject` and the variables of policies.admission.variables.
    """

    rule: AnyRule
    matches: tuple[Matched, ...]
    problems: str


def told(message: str, remedy: str, **parts: str) -> str:
    """CEL for one problem in the words of the rule: sentences with fields in braces, and CEL for what goes there."""
    return sentence(f"{message}. To fix it: {remedy}", **parts)


def of_each(pods: str, problem: str) -> str:
    """The problems of a list of pod sets: `problem` is CEL for the one of the pod set `p`, an empty text where there is none."""
    return f"{pods}.map(p, {problem}).filter(s, s != {text('')})"
