"""The rules, one a file: the file is named after the rule and holds it as RULE."""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import cast

from flexspot.policies.judging import AnyRule, Rule


@cache
def all_rules() -> tuple[AnyRule, ...]:
    """Every rule, by code. Raises TypeError for a file in this folder that holds none."""
    found: list[AnyRule] = []
    for module in iter_modules(__path__):
        rule = getattr(import_module(f"{__name__}.{module.name}"), "RULE", None)
        if not isinstance(rule, Rule):
            raise TypeError(f"flexspot/policies/rules/{module.name}.py holds no RULE")
        found.append(cast("AnyRule", rule))
    return tuple(sorted(found, key=lambda rule: rule.code))
