"""What the real providers' own validation says against the inputs that a program declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lab.providers.cloud_rules.combinations import combination_problems
from lab.providers.cloud_rules.rule_checks import violations
from lab.providers.values import UNKNOWN, is_list, is_object

if TYPE_CHECKING:
    from collections.abc import Iterable

    from program_declarations import Declared


def refused_inputs(made: Iterable[Declared]) -> list[str]:
    """The violations of the clouds' resources among these, each with its resource's name."""
    of_clouds = [each for each in made if each.type.startswith(("gcp:", "aws:"))]
    found = [f"{each.name}: {violation}" for each in of_clouds for violation in violations(each.type, as_sent(each.inputs))]
    together = ((each, problem) for each in of_clouds for problem in combination_problems(each.type, as_sent(each.inputs)))
    return found + [f"{each.name}: {path} {problem}" for each, (path, problem) in together]


def as_sent(value: Any) -> Any:
    """Inputs as the engine sends them: what is not known yet, or is a secret here, is any value."""
    if is_object(value):
        return UNKNOWN if value in ({"$unknown": True}, {"$secret": True}) else {key: as_sent(each) for key, each in value.items()}
    return [as_sent(each) for each in value] if is_list(value) else value
