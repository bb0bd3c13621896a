"""The CEL forms of rules: rules.yaml with the rules' parameters.

A rule has no form if it is about objects that only the platform's program creates, if it compares objects with each other, or if the API
server or Kueue already checks it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from flexspot.policies.admission.pods import MATCHED
from flexspot.policies.admission.variables import NAMES, TEXT
from flexspot.policies.inventory.pod_gpus import ObjectKind
from flexspot.policies.rules import all_rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexspot.policies.judging import Parameters, Rule


@dataclass(frozen=True)
class Form:
    """A rule in CEL. Name, code and messages are those of the rule."""

    rule: Rule
    matches: tuple[ObjectKind, ...]
    """Kinds of objects that it judges."""
    written: Sequence[dict[str, Any]]
    """Its problems, as in rules.yaml."""
    kinds: str = ""
    """Name of the rule's parameter that lists its kinds. Empty: all of `matches`."""

    def matched(self, parameters: Parameters) -> tuple[ObjectKind, ...]:
        """Return the kinds that the rule judges."""
        return tuple(each for each in self.matches if not self.kinds or each.kind in parameters.texts(self.kinds))

    def problems(self, parameters: Parameters) -> str:
        """Return CEL for a list of problems of `object`, each a text. Empty if the object passes."""
        given = {f"parameters.{name}": value for name, value in parameters.settings.items()}
        given |= {f"parameters.{name}-sorted": sorted(value) for name, value in parameters.settings.items() if isinstance(value, tuple)}
        names = NAMES.but(remediation=self.rule.remediation, **given)
        return " + ".join(map(names.problems, self.written))


@cache
def all_forms() -> tuple[Form, ...]:
    """Return all forms, by code of their rule."""
    rules = {rule.name: rule for rule in all_rules()}
    forms = (Form(rules[each["rule"]], _matches(each.get("matches")), each["problems"], each.get("kinds", "")) for each in TEXT["rules"])
    return tuple(sorted(forms, key=lambda form: form.rule.code))


def _matches(written: Any) -> tuple[ObjectKind, ...]:
    if written == "jobs":
        return tuple(maker for maker in MATCHED if maker.makes_jobs)
    return tuple(ObjectKind(**each) for each in written) if written else MATCHED
