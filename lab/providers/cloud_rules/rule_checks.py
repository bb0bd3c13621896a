"""Refusing inputs as a provider's own validation does, before the cloud is asked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lab.providers.cloud_rules.resource_rules import rules_by_type
from lab.providers.cloud_rules.value_formats import has_format
from lab.providers.values import UNKNOWN, is_list, is_object, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.providers.cloud_rules.resource_rules import Attribute, ResourceRules

_KINDS: dict[str, tuple[type, ...]] = {"string": (str,), "int": (int,), "float": (int, float), "bool": (bool,)}


@dataclass(frozen=True, order=True)
class Violation:
    """One input that the provider refuses; `path` is the rule files'."""

    token: str
    path: str
    problem: str

    def __str__(self) -> str:
        return f"{self.token}: {self.path}: {self.problem}"


def violations(token: str, inputs: dict[str, Any]) -> list[Violation]:
    """What the provider refuses of a resource's inputs. A type without rules refuses nothing; a value that is not known yet is none."""
    rules = rules_by_type().get(token)
    return [] if rules is None else check_inputs(rules, inputs)


def check_inputs(rules: ResourceRules, inputs: dict[str, Any]) -> list[Violation]:
    """The same with rules at hand."""
    known: dict[str, Any] = plain(inputs)
    return sorted({Violation(rules.token, path, problem) for path, problem in _block(rules, "", known, known)})


def _block(rules: ResourceRules, block: str, values: dict[str, Any], everything: dict[str, Any]) -> Iterator[tuple[str, str]]:
    attributes = rules.inside(block)
    for name in values:
        if name not in attributes:
            yield ".".join(filter(None, (block, name))), "is no argument"
    for name, attribute in attributes.items():
        value = values.get(name)
        yield from _relations(rules, attribute, everything, given=value is not None)
        if value is None:
            if attribute.facts.get("required"):
                yield attribute.path, "is required"
        elif not attribute.may_be_given:
            yield attribute.path, "is read only"
        elif value is not UNKNOWN:
            yield from _value(rules, attribute, value, everything)


def _value(rules: ResourceRules, attribute: Attribute, value: Any, everything: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if str(attribute.facts["type"]).startswith("map"):
        if not is_object(value):
            yield attribute.path, f"is {value!r}, not a map"
        return
    if attribute.is_one:
        yield from _item(rules, attribute, value, everything, "")
        return
    if not is_list(value):
        yield attribute.path, f"is {value!r}, not a list"
        return
    if len(value) < attribute.facts.get("min_items", 0):
        yield attribute.path, f"has {len(value)} items, fewer than {attribute.facts['min_items']}"
    if len(value) > attribute.facts.get("max_items", len(value)):
        yield attribute.path, f"has {len(value)} items, more than {attribute.facts['max_items']}"
    for item in value:
        if item is not UNKNOWN:
            yield from _item(rules, attribute, item, everything, "elem_")


def _item(rules: ResourceRules, attribute: Attribute, value: Any, everything: dict[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    if attribute.is_block:
        if is_object(value):
            yield from _block(rules, attribute.path, value, everything)
        else:
            yield attribute.path, f"is {value!r}, not a block"
        return
    kinds = _KINDS.get(attribute.element_type)
    if kinds and (not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)):
        yield attribute.path, f"is {value!r}, not of type {attribute.element_type}"
        return
    facts = {key.removeprefix(prefix): each for key, each in attribute.facts.items() if key.startswith(prefix)}
    yield from ((attribute.path, problem) for problem in _bounds(facts, value))


def _bounds(facts: dict[str, Any], value: Any) -> Iterator[str]:
    if "allowed" in facts and value not in facts["allowed"]:
        yield f"is {value!r}; allowed: {', '.join(map(str, facts['allowed']))}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        if value < facts.get("min", value):
            yield f"is {value}, less than {facts['min']}"
        if value > facts.get("max", value):
            yield f"is {value}, more than {facts['max']}"
    if isinstance(value, str):
        yield from _text(facts, value)


def _text(facts: dict[str, Any], value: str) -> Iterator[str]:
    if not value and facts.get("rejects_empty"):
        yield "may not be empty"
        return
    if len(value) < facts.get("min_length", 0):
        yield f"is {value!r}, shorter than {facts['min_length']} characters"
    if len(value) > facts.get("max_length", len(value)):
        yield f"is {value!r}, longer than {facts['max_length']} characters"
    for pattern in facts.get("regex", []):
        if re.search(pattern, value) is None:
            yield f"is {value!r}, which does not match {pattern}"
    if "format" in facts and not has_format(facts["format"], value):
        yield f"is {value!r}, which is not of the form {facts['format']}"


def _relations(rules: ResourceRules, attribute: Attribute, everything: dict[str, Any], *, given: bool) -> Iterator[tuple[str, str]]:
    """What arguments say of each other. One that is not known yet may turn out to be nothing, so it conflicts with none."""
    exactly, any_of = attribute.facts.get("exactly_one_of"), attribute.facts.get("at_least_one_of")
    if exactly is not None:
        yield from ((attribute.path, problem) for problem in _exactly_one(rules, exactly, everything))
    if any_of is not None and not any(_at(rules, path, everything) is not None for path in any_of):
        yield attribute.path, f"at least one of {', '.join(any_of)} must be given"
    if given:
        for path in attribute.facts.get("conflicts_with", []):
            if _at(rules, path, everything) not in (None, UNKNOWN):
                yield attribute.path, f"conflicts with {path}"
        for path in attribute.facts.get("required_with", []):
            if _at(rules, path, everything) is None:
                yield attribute.path, f"needs {path}"


def _exactly_one(rules: ResourceRules, paths: list[str], everything: dict[str, Any]) -> Iterator[str]:
    values = [value for path in paths if (value := _at(rules, path, everything)) is not None]
    known = [value for value in values if value is not UNKNOWN]
    if len(known) > 1 or not values:
        yield f"exactly one of {', '.join(paths)} must be given"


def _at(rules: ResourceRules, path: str, values: Any) -> Any:
    """The value at a Terraform path, the first that there is where a list lies on the way; None when there is none."""
    found, walked = values, ""
    for part in (each for each in path.split(".") if not each.isdecimal()):
        walked = f"{walked}.{part}".lstrip(".")
        attribute = rules.attributes.get(walked)
        if is_list(found):
            found = next((each for each in found if is_object(each)), None)
        if found is UNKNOWN:
            return UNKNOWN
        if attribute is None or not is_object(found):
            return None
        found = found.get(attribute.pulumi_name)
    return found
