"""The real providers' validation, applied to the inputs that a program declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexspot.lab.providers.cloud_rules.resource_rules import rules_by_type
from flexspot.lab.providers.cloud_rules.rule_checks import RefusedInput, check_inputs, combination_problems
from flexspot.lab.providers.values import UNKNOWN, is_list, is_object

if TYPE_CHECKING:
    from collections.abc import Iterable

    from program_declarations import Declared


def violations(token: str, inputs: dict[str, Any]) -> list[RefusedInput]:
    """Return the provider's objections to a resource's inputs. A type without rules has none."""
    rules = rules_by_type().get(token)
    return [] if rules is None else check_inputs(rules, inputs)


def refused_inputs(made: Iterable[Declared]) -> list[str]:
    """Return the violations of the clouds' resources among these, each with its resource's name."""
    of_clouds = [each for each in made if each.type.startswith(("gcp:", "aws:"))]
    found: list[str] = []
    for each in of_clouds:
        inputs = as_sent(each.inputs)
        problems = (*violations(each.type, inputs), *combination_problems(each.type, inputs))
        found += [f"{each.name}: {path} {problem}" for path, problem in problems]
    return found


def as_sent(value: Any) -> Any:
    """Return inputs as the engine sends them. Unknown and secret values become any value."""
    if is_object(value):
        return UNKNOWN if value in ({"$unknown": True}, {"$secret": True}) else {key: as_sent(each) for key, each in value.items()}
    return [as_sent(each) for each in value] if is_list(value) else value
