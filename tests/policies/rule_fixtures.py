"""The fixtures of the rules, read once for every surface. Not a test.

A fixture file's name starts with its expected verdict. A document is a Pulumi resource if it has `resource`, else a Kubernetes object.
`among` lists the other objects of the run. The verdict is about the document only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from flexspot.capacity.values.verdict import Verdict
from flexspot.policies.rules import all_rules

if TYPE_CHECKING:
    from flexspot.policies.judging import Rule

RULES = Path(__file__).parent / "rules"

UNKNOWN_STRING = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""The engine's mark of an unknown value, written `!unknown` in a fixture."""

WORDS = {
    "passes": Verdict.PASS,
    "fails": Verdict.FAIL,
    "unknown": Verdict.UNKNOWN,
    "not_applicable": Verdict.NOT_APPLICABLE,
}


class _Loader(yaml.CSafeLoader):
    """A loader that reads `!unknown`."""


def _unknown(_loader: _Loader, _node: yaml.Node) -> str:
    return UNKNOWN_STRING


_Loader.add_constructor("!unknown", _unknown)


@dataclass(frozen=True)
class Case:
    """One object of a fixture file."""

    rule: str
    verdict: Verdict
    """Expected verdict of the rule."""
    type_token: str
    name: str
    inputs: dict[str, Any]
    manifest: dict[str, Any] | None
    """None if the object is not a Kubernetes object."""
    among: tuple[Case, ...] = ()
    """Other objects of the run."""

    def __str__(self) -> str:
        return f"{self.rule}-{self.verdict}-{self.name}"

    @property
    def urn(self) -> str:
        return f"urn:pulumi:dev::flexspot::{self.type_token}::{self}"


@cache
def cases() -> list[Case]:
    return [
        _case(path.parent.name.replace("_", "-"), verdict, document)
        for path in sorted(RULES.glob("*/*.yaml"))
        for word, verdict in WORDS.items()
        if path.name.startswith(f"{word}_")
        for document in yaml.load_all(path.read_text(), Loader=_Loader)
    ]


def cases_of(rule: str) -> list[Case]:
    """Return the cases of one rule. One test covers all cases of a rule, since a test for each would cost more than the judging."""
    return [case for case in cases() if case.rule == rule]


def _case(rule: str, verdict: Verdict, document: dict[str, Any]) -> Case:
    among = tuple(_case(rule, verdict, other) for other in document.pop("among", []))
    if "resource" in document:
        return Case(rule, verdict, document["resource"], document["name"], document["inputs"], None, among)
    api_version = document["apiVersion"] if "/" in document["apiVersion"] else f"core/{document['apiVersion']}"
    return Case(rule, verdict, f"kubernetes:{api_version}:{document['kind']}", document["metadata"]["name"], document, document, among)


def rules_named(name: str) -> list[Rule]:
    return [rule for rule in all_rules() if rule.name == name]
