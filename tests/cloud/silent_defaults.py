"""What a provider sends in our place: its own defaults of arguments that a program leaves out, which no reader of it sees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lab.providers.cloud_rules.resource_rules import rules_by_type
from lab.providers.values import UNKNOWN, is_list, is_object, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from program_declarations import Declared

    from lab.providers.cloud_rules.resource_rules import ResourceRules

NOTHING = (None, "", 0, False, [], {})
"""Defaults by which nothing is asked for."""


def silent_defaults(resources: Iterable[Declared]) -> dict[str, dict[str, Any]]:
    """By type and Terraform path the defaults that are sent for at least one of the resources, but those that ask for nothing."""
    found: dict[str, dict[str, Any]] = {}
    for each in resources:
        rules = rules_by_type().get(each.type)
        for path, default in _sent(rules, "", plain(each.inputs)) if rules else ():
            found.setdefault(each.type, {})[path] = default
    return {token: dict(sorted(found[token].items())) for token in sorted(found)}


def _sent(rules: ResourceRules, block: str, values: Any) -> Iterator[tuple[str, Any]]:
    for name, attribute in rules.inside(block).items():
        value, default = values.get(name), attribute.facts.get("default")
        if value is None and default not in NOTHING:
            yield attribute.path, default
        if attribute.is_block and value is not None and value is not UNKNOWN:
            for item in value if is_list(value) else [value]:
                if is_object(item):
                    yield from _sent(rules, attribute.path, item)
