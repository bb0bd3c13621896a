"""All rules. Each is a function decorated with `Rule`; a file contains the rules about one subject."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from flexspot.policies.judging import Rule


@cache
def all_rules() -> tuple[Rule, ...]:
    """Return all rules, by code. Raises TypeError for a file in this folder without rules."""
    found: list[Rule] = []
    for module in iter_modules(__path__):
        rules = [each for each in vars(import_module(f"{__name__}.{module.name}")).values() if isinstance(each, Rule)]
        if not rules:
            raise TypeError(f"flexspot/policies/rules/{module.name}.py has no rule")
        found += rules
    return tuple(sorted(found, key=lambda rule: rule.code))
