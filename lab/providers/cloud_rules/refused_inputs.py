"""What a preview that asks nobody tells of inputs: what the real provider would end at, and nothing that it may take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lab.providers.cloud_rules.combinations import combination_problems
from lab.providers.cloud_rules.resource_rules import rules_by_type
from lab.providers.cloud_rules.rule_checks import check_inputs
from lab.providers.values import UNKNOWN, is_list, is_object, without_secrets

if TYPE_CHECKING:
    from lab.providers.cloud_rules.resource_rules import Attribute, ResourceRules
    from lab.providers.values import Properties

_MADE_UP = "name"
"""What Pulumi's providers make up where a program leaves it out, though Terraform's must have it."""


@dataclass(frozen=True)
class RefusedInput:
    """One input; `place` is the property in Pulumi's words, `reason` what is wrong, who says so, and what to do."""

    place: str
    reason: str


def refused_inputs(token: str, inputs: Properties) -> list[RefusedInput]:
    """The inputs of a resource that its provider refuses; none of a type that no rule file has.

    The rules are older than the providers that the SDKs bridge, so an argument that they do not know is passed over. Nor is a secret looked
    at: what is wrong with an input is told with its value, to the terminal and to whatever keeps the output.
    """
    rules = rules_by_type().get(token)
    if rules is None:
        return []
    known = _bridged(rules, "", without_secrets(inputs))
    found = [(each.path, each.problem) for each in check_inputs(rules, known) if _MADE_UP in known or each.path != _MADE_UP]
    found += combination_problems(token, known)
    remedy = "say what it allows, or preview without --offline if your provider is a newer one that takes it"
    return [RefusedInput(rules.place_of(path), f"{problem}, by the rules of {rules.source}; {remedy}") for path, problem in found]


def _bridged(rules: ResourceRules, block: str, values: dict[str, Any]) -> dict[str, Any]:
    attributes = rules.inside(block)
    return {name: _converted(rules, attributes[name], value) for name, value in values.items() if name in attributes}


def _converted(rules: ResourceRules, attribute: Attribute, value: Any) -> Any:
    """A value as it comes to the provider: Terraform takes a number or a truth value for a text, and the other way round.

    Pulumi's bridge hands them on as they are (pulumi/pulumi-terraform-bridge, pkg/tfbridge/schema.go, MakeTerraformInput; read 2026-11-26).
    """
    if is_list(value):
        return [_converted(rules, attribute, each) for each in value]
    if is_object(value):
        return _bridged(rules, attribute.path, value) if attribute.is_block else value
    if value is UNKNOWN or attribute.is_block:
        return value
    if attribute.element_type == "string" and isinstance(value, bool | int | float):
        return str(value).lower() if isinstance(value, bool) else f"{value:g}"
    return _read(attribute.element_type, value) if isinstance(value, str) else value


def _read(kind: str, text: str) -> Any:
    try:
        match kind:
            case "bool":
                return {"true": True, "false": False}.get(text, text)
            case "int":
                return int(text)
            case "float":
                return float(text)
            case _:
                return text
    except ValueError:
        return text
