"""Own rules as a configuration file has them under `own-rules`, and what is wrong with how they are written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, cast

from capacity.values.verdict import Severity
from policies.inventory.objects import KubernetesObject
from policies.judging import Level, unknown_name
from policies.own_rules.rule import Expressions, OwnRule

if TYPE_CHECKING:
    from collections.abc import Iterable

KEY: Final = "own-rules"

_TEXTS: Final = ("name", "check", "message", "severity", "level", "when", "why", "remediation", "link", "at", "fixtures", "code")
_FIELDS: Final = (*_TEXTS, "kinds", "variables")
_NEEDED: Final = ("name", "kinds", "check", "message")

_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

MISSING: Final = "the CEL evaluator is not installed: install flexspot with its extra, flexspot[own-rules]"


def read_own_rules(written: Any, shipped: Iterable[str], problems: list[str]) -> tuple[OwnRule, ...]:
    """The rules of a configuration, beside those whose names and codes are `shipped`.

    What is wrong is added to `problems`, all of it at once, and the rule is left out.
    """
    if written is None:
        return ()
    if not isinstance(written, list):
        problems.append(f"{KEY}: must be a list of rules with {', '.join(_NEEDED)}")
        return ()
    found: dict[str, OwnRule] = {}
    taken = set(shipped)
    for place, each in enumerate(cast("list[Any]", written)):
        entry = cast("dict[str, Any]", each) if isinstance(each, dict) else {}
        wrong = list(_wrong_form(entry)) if entry else [f"must be a mapping with {', '.join(_NEEDED)}"]
        if not wrong:
            rule = _rule(entry)
            # A baseline knows rules by their codes.
            wrong = [f"{key}: {text} is already taken" for key, text in (("name", rule.name), ("code", rule.code)) if text in taken]
            wrong = wrong or list(_wrong_expressions(rule.expressions))
            found[rule.name] = rule
            taken |= {rule.name, rule.code}
        problems += [f"{KEY}.{place}{'.' if entry else ': '}{problem}" for problem in wrong]
    return tuple(found.values())


def _wrong_form(entry: dict[str, Any]) -> Iterable[str]:
    for key in entry:
        if key not in _FIELDS:
            yield unknown_name(f"{key}", key, _FIELDS)
    yield from (f"{key}: it is missing" for key in _NEEDED if key not in entry)
    for key in _TEXTS:
        if key in entry and not (isinstance(entry[key], str) and entry[key].strip()):
            yield f"{key}: {entry[key]!r} is not allowed; allowed: a non-empty string"
    name = entry.get("name")
    if isinstance(name, str) and not _NAME.fullmatch(name):
        yield f"name: {name!r} is not allowed; allowed: lower-case letters, digits and dashes, such as image-of-our-registry"
    for key, allowed in (("severity", list(Severity)), ("level", list(Level))):
        if key in entry and entry[key] not in allowed:
            yield f"{key}: {entry[key]!r} is not allowed; allowed: {', '.join(allowed)}"
    kinds = entry.get("kinds")
    if "kinds" in entry and not (isinstance(kinds, list) and kinds and all(isinstance(each, str) for each in cast("list[Any]", kinds))):
        yield "kinds: must be a list of kinds such as Deployment, batch/Job or kueue.x-k8s.io/*"
    variables = entry.get("variables", {})
    if not isinstance(variables, dict) or not all(isinstance(each, str) for each in cast("dict[str, Any]", variables).values()):
        yield "variables: must be a mapping of names to expressions"


def _rule(entry: dict[str, Any]) -> OwnRule:
    expressions = Expressions(
        kinds=tuple(entry["kinds"]),
        when=entry.get("when", "true"),
        variables=tuple(entry.get("variables", {}).items()),
        check=entry["check"],
        message=entry["message"],
        at=entry.get("at", ""),
    )
    return OwnRule(
        code=entry.get("code", f"OWN-{entry['name']}"),
        name=entry["name"],
        severity=Severity(entry.get("severity", Severity.MEDIUM)),
        level=Level(entry.get("level", Level.ADVISORY)),
        looks_at=(KubernetesObject,),
        judge=expressions.judge,
        about=f"{entry['message'].rstrip('.')}.",
        why=entry.get("why", entry["message"]),
        remediation=entry.get("remediation", "Fix the object so that the rule's check holds."),
        link=entry.get("link", ""),
        expressions=expressions,
        fixtures=entry.get("fixtures", f"flexspot-rules/{entry['name']}"),
    )


def _wrong_expressions(expressions: Expressions) -> Iterable[str]:
    """What does not compile, each with the evaluator's own words."""
    try:
        from policies.own_rules.evaluation import CelError, compiled, other_than_truth, used_variables  # noqa: PLC0415 -- 50 MB that only own rules need
    except ImportError:
        yield f"check: {MISSING}"
        return
    places = {**{f"variables.{name}": each for name, each in expressions.variables}, "when": expressions.when, "check": expressions.check}
    defined: set[str] = set()
    for place, expression in places.items():
        try:
            compiled(expression)
        except CelError as error:
            yield f"{place}: it is not a CEL expression: {' '.join(str(error).split())}"
            continue
        # As in a policy of the API server, where a variable sees those before it alone.
        before = "" if place in {"when", "check"} else " before it"
        yield from (
            f"{place}: it uses variables.{each}, which is not defined{before}" for each in sorted(used_variables(expression) - defined)
        )
        defined |= {place.removeprefix("variables.")}
        if place in {"when", "check"} and (given := other_than_truth(expression)):
            yield f"{place}: it returns {given}, but must return true or false, as `object.spec.suspend == true` does"
