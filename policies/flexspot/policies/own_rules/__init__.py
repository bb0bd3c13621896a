"""An organisation's own rules, written in CEL as in the cluster's policies: reading them from a configuration and judging by them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, cast

from flexspot.capacity.values.verdict import PASSES, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.objects import KubernetesObject
from flexspot.policies.judging import Level, Rule, unknown_name
from flexspot.policies.values.field import UNKNOWN, mapping_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flexspot.capacity.values.verdict import Outcome
    from flexspot.policies.judging import Parameters


def is_of_kind(pattern: str, group: str, kind: str) -> bool:
    """Return whether a kind matches a pattern `KIND` or `GROUP/KIND`, in which * stands for any text."""
    return fnmatchcase(f"{group}/{kind}" if "/" in pattern else kind, pattern)


@dataclass(frozen=True)
class Expressions:
    """The CEL expressions of one rule, and the message of its violations."""

    kinds: tuple[str, ...]
    """Patterns `KIND` or `GROUP/KIND`, with * for any text."""
    when: str
    """True for objects that the rule applies to."""
    variables: tuple[tuple[str, str], ...]
    """Names and expressions. An expression may use the variables before it."""
    check: str
    """True for objects that keep the rule."""
    message: str
    """Message about an object that does not."""
    at: str = ""
    """Path of the field concerned."""

    def judge(self, view: KubernetesObject, _: Parameters) -> Outcome:
        """Judge an object as the API server does: an expression that fails on it rejects it.

        Values that are not known yet leave the verdict undecided if an expression may read them. The rest of the object is judged.
        """
        kind = view.identity.kind
        if not any(is_of_kind(pattern, view.group, kind) for pattern in self.kinds):
            return not_applicable("it is of another kind")
        if view.partial:
            return not_applicable("only part of the object is written here")
        for path in _unknown_paths(view.fields.value):
            if self._reads(path):
                return undecided(f"{'.'.join(filter(None, path))} is not known yet")
        secret = (view.group, kind) == ("", "Secret")
        return self._verdict(_without_unknown(view.fields.value), quote_errors=not secret)

    def _verdict(self, written: Any, *, quote_errors: bool) -> Outcome:
        """Return the verdict on an object. Without `quote_errors` it omits the evaluator's messages, which may quote the object."""
        from flexspot.policies.own_rules.evaluation import CelError, evaluate, used_variables  # noqa: PLC0415 -- 50 MB that only own rules need

        variables: dict[str, Any] = {}

        def value_of(expression: str) -> Any:
            for name, each in self.variables:
                if name in used_variables(expression) and name not in variables:
                    variables[name] = value_of(each)
            return evaluate(expression, object=written, variables={name: variables[name] for name in used_variables(expression)})

        try:
            if value_of(self.when) is not True:
                return not_applicable("its condition does not hold")
            holds = value_of(self.check)
        except (CelError, KeyError) as error:
            words = " ".join(str(error).partition("\nin ")[0].split())
            why = words if quote_errors else "the evaluator's message may quote the Secret"
            return fails(
                f"{self.message}; evaluating the check failed on this object, so the API server would refuse it: {why}", at=self.at
            )
        return PASSES if holds is True else fails(self.message, at=self.at)

    def _reads(self, path: tuple[str, ...]) -> bool:
        """Return whether an expression may read a field: it names the field, or uses its whole parent, as `labels.all(...)` does."""
        if not path:
            return True
        name, holder = path[-1], path[-2] if len(path) > 1 else ""
        text = "\n".join((self.when, self.check, *(each for _, each in self.variables)))
        if name and re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text):
            return True
        return bool(holder) and re.search(rf"\b{re.escape(holder)}\b(?!\s*\.\??\s*\w+\b(?!\())", text) is not None


def _unknown_paths(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path to each value that is not known yet, as field names. A list's element has an empty name."""
    if value is UNKNOWN:
        yield path
    elif isinstance(value, dict):
        for key, each in cast("dict[Any, Any]", value).items():
            yield from _unknown_paths(each, (*path, str(key)))
    elif isinstance(value, list):
        for each in cast("list[Any]", value):
            yield from _unknown_paths(each, (*path, ""))


_BEYOND_INT: Final = 2**63
_BEYOND_FLOAT: Final = 2**1023


def _without_unknown(value: Any) -> Any:
    """Return the value as CEL accepts it, without unknown values and null fields. A date parsed from YAML becomes text."""
    match value:
        case dict():
            held = cast("dict[Any, Any]", value)
            return {str(key): _without_unknown(each) for key, each in held.items() if each is not UNKNOWN and each is not None}
        case list():
            return [_without_unknown(each) for each in cast("list[Any]", value) if each is not UNKNOWN]
        case int() if not -_BEYOND_INT <= value < _BEYOND_INT:
            # The API server reads such a number in the same way.
            return float(value) if abs(value) < _BEYOND_FLOAT else str(value)
        case str() | bool() | int() | float() | None:
            return value
        case _:
            return str(value)


@dataclass(frozen=True, kw_only=True)
class OwnRule(Rule):
    """A rule of an organisation."""

    expressions: Expressions = field(default_factory=lambda: Expressions((), "true", (), "true", ""))
    fixtures: str = ""
    """Folder of its fixtures, relative to the configuration's folder."""

    @property
    def page(self) -> str:
        """Empty: the configuration is the rule's only documentation."""
        return ""


KEY: Final = "own-rules"

_TEXTS: Final = ("name", "check", "message", "severity", "level", "when", "why", "remediation", "link", "at", "fixtures", "code")
_FIELDS: Final = (*_TEXTS, "kinds", "variables")
_NEEDED: Final = ("name", "kinds", "check", "message")

_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

MISSING: Final = "the CEL evaluator is not installed: install flexspot with its extra, flexspot[own-rules]"


def read_own_rules(written: Any, shipped: Iterable[str], problems: list[str]) -> tuple[OwnRule, ...]:
    """Return the valid rules of a configuration, and add all problems of the others to `problems`.

    `shipped`: names and codes of Flexspot's own rules, which are already taken.
    """
    if written is None:
        return ()
    if not isinstance(written, list):
        problems.append(f"{KEY}: must be a list of rules with {', '.join(_NEEDED)}")
        return ()
    found: dict[str, OwnRule] = {}
    taken = set(shipped)
    for place, each in enumerate(cast("list[Any]", written)):
        entry = mapping_of(each)
        wrong = list(_wrong_form(entry)) if entry else [f"must be a mapping with {', '.join(_NEEDED)}"]
        if not wrong:
            rule = _rule(entry)
            # Codes must be unique because a baseline identifies rules by them.
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
        summary=f"{entry['message'].rstrip('.')}.",
        why=entry.get("why", entry["message"]),
        remediation=entry.get("remediation", "Fix the object so that the rule's check holds."),
        link=entry.get("link", ""),
        expressions=expressions,
        fixtures=entry.get("fixtures", f"flexspot-rules/{entry['name']}"),
    )


def _wrong_expressions(expressions: Expressions) -> Iterable[str]:
    """Yield a problem for each expression that does not compile, with the evaluator's message."""
    try:
        from flexspot.policies.own_rules.evaluation import CelError, compiled, other_than_truth, used_variables  # noqa: PLC0415 -- 50 MB that only own rules need
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
        # In a policy of the API server, a variable sees only the variables before it.
        before = "" if place in {"when", "check"} else " before it"
        yield from (
            f"{place}: it uses variables.{each}, which is not defined{before}" for each in sorted(used_variables(expression) - defined)
        )
        defined |= {place.removeprefix("variables.")}
        if place in {"when", "check"} and (given := other_than_truth(expression)):
            yield f"{place}: it returns {given}, but must return true or false, as `object.spec.suspend == true` does"
