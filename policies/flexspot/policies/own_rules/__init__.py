"""An organisation's own rules, said in CEL as in the cluster's policies: reading them, judging by them, and trying them on fixtures."""

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
    """Whether a kind is one of `KIND` or `GROUP/KIND`, in which * stands for any text."""
    return fnmatchcase(f"{group}/{kind}" if "/" in pattern else kind, pattern)


@dataclass(frozen=True)
class Expressions:
    """What a rule says in CEL. `kinds` are `KIND` or `GROUP/KIND` with * for any text; `variables` may name those before them.

    `when` says whether an object is concerned, `check` what must be true of it. `message` is what is told of an object of which it is not,
    and `at` the path of the field that it is about.
    """

    kinds: tuple[str, ...]
    when: str
    variables: tuple[tuple[str, str], ...]
    check: str
    message: str
    at: str = ""

    def judge(self, view: KubernetesObject, _: Parameters) -> Outcome:
        """As the API server does: an expression that fails on an object refuses it.

        What stands beside a value that is not known yet is judged; what an expression may read of one is undecided.
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
        return self._verdict(_without_unknown(view.fields.value), told=not secret)

    def _verdict(self, written: Any, *, told: bool) -> Outcome:
        """The verdict on an object. Unless the evaluator's words are `told`, they stay out of it: they may quote what they are about."""
        from flexspot.policies.own_rules.evaluation import CelError, evaluate, used_variables  # noqa: PLC0415 -- 50 MB that only own rules need

        variables: dict[str, Any] = {}

        def worth(expression: str) -> Any:
            for name, each in self.variables:
                if name in used_variables(expression) and name not in variables:
                    variables[name] = worth(each)
            return evaluate(expression, object=written, variables={name: variables[name] for name in used_variables(expression)})

        try:
            if worth(self.when) is not True:
                return not_applicable("its condition does not hold")
            holds = worth(self.check)
        except (CelError, KeyError) as error:
            words = " ".join(str(error).partition("\nin ")[0].split())
            why = words if told else "the evaluator's message may quote the Secret"
            return fails(
                f"{self.message}; evaluating the check failed on this object, so the API server would refuse it: {why}", at=self.at
            )
        return PASSES if holds is True else fails(self.message, at=self.at)

    def _reads(self, path: tuple[str, ...]) -> bool:
        """Whether an expression may read a field: it names it, or takes what holds it as a whole, as `labels.all(...)` does."""
        if not path:
            return True
        name, holder = path[-1], path[-2] if len(path) > 1 else ""
        text = "\n".join((self.when, self.check, *(each for _, each in self.variables)))
        if name and re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text):
            return True
        return bool(holder) and re.search(rf"\b{re.escape(holder)}\b(?!\s*\.\??\s*\w+\b(?!\())", text) is not None


def _unknown_paths(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The names of the fields that lead to each value that is not known yet, empty for an element of a list."""
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
    """The value as CEL takes it, without what no expression reads; a day, which YAML may have made, as its text."""
    match value:
        case dict():
            held = cast("dict[Any, Any]", value)
            return {str(key): _without_unknown(each) for key, each in held.items() if each is not UNKNOWN and each is not None}
        case list():
            return [_without_unknown(each) for each in cast("list[Any]", value) if each is not UNKNOWN]
        case int() if not -_BEYOND_INT <= value < _BEYOND_INT:
            # As the API server reads such a number.
            return float(value) if abs(value) < _BEYOND_FLOAT else str(value)
        case str() | bool() | int() | float() | None:
            return value
        case _:
            return str(value)


@dataclass(frozen=True, kw_only=True)
class OwnRule(Rule):
    """A rule of an organisation. `fixtures` is the folder of its fixtures, relative to the configuration's."""

    expressions: Expressions = field(default_factory=lambda: Expressions((), "true", (), "true", ""))
    fixtures: str = ""

    @property
    def page(self) -> str:
        """It has none: all that is to be said stands in the configuration."""
        return ""


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
        entry = mapping_of(each)
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
        summary=f"{entry['message'].rstrip('.')}.",
        why=entry.get("why", entry["message"]),
        remediation=entry.get("remediation", "Fix the object so that the rule's check holds."),
        link=entry.get("link", ""),
        expressions=expressions,
        fixtures=entry.get("fixtures", f"flexspot-rules/{entry['name']}"),
    )


def _wrong_expressions(expressions: Expressions) -> Iterable[str]:
    """What does not compile, each with the evaluator's own words."""
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
        # As in a policy of the API server, where a variable sees those before it alone.
        before = "" if place in {"when", "check"} else " before it"
        yield from (
            f"{place}: it uses variables.{each}, which is not defined{before}" for each in sorted(used_variables(expression) - defined)
        )
        defined |= {place.removeprefix("variables.")}
        if place in {"when", "check"} and (given := other_than_truth(expression)):
            yield f"{place}: it returns {given}, but must return true or false, as `object.spec.suspend == true` does"
