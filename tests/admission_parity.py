"""Objects that the rules in Python and in CEL must judge alike, and the messages of the rules in Python. Not a test."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from rule_fixtures import cases

from flexspot.capacity.values.verdict import Verdict
from flexspot.policies.admission.forms import all_forms
from flexspot.policies.core import RuleIndex, judge_across, judge_alone, read_source
from flexspot.policies.inventory.reading.source import from_manifest
from flexspot.policies.judging import DEFAULTS, Level, Settings
from flexspot.policies.values.field import UNKNOWN, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from flexspot.policies.core import Reading
    from flexspot.policies.values.finding import Finding

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Written:
    """An object of a fixture, with all values known, as the API server would see it."""

    rule: str
    """The first rule with this fixture."""
    name: str
    manifest: Manifest

    def __str__(self) -> str:
        return self.name


@cache
def written() -> tuple[Written, ...]:
    """Return every Kubernetes object of the rules' fixtures, including the context objects next to the judged ones."""
    found: dict[str, Written] = {}
    for case in cases():
        for number, each in enumerate((case, *case.among)):
            manifest = _without_nulls(plain(each.manifest))
            if each.manifest is not None and not _has_unknown(manifest):
                found.setdefault(repr(manifest), Written(case.rule, f"{case}{f'-{number}' if number else ''}", manifest))
    return tuple(found.values())


def _without_nulls(value: Any) -> Any:
    """Return the object without null fields, as the API server stores it."""
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in cast("dict[str, Any]", value).items() if each is not None}
    return [_without_nulls(each) for each in cast("list[Any]", value)] if isinstance(value, list) else value


def _has_unknown(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_unknown, cast("dict[str, Any]", value).values()))
    return any(map(_has_unknown, cast("list[Any]", value))) if isinstance(value, list) else value is UNKNOWN


def namespace_of(manifest: Manifest) -> str:
    return manifest["metadata"].get("namespace", "default")


def namespace_object(manifest: Manifest, labels: Mapping[str, str]) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace_of(manifest), "labels": dict(labels)}}


def rule_messages(manifest: Manifest, among: Sequence[Reading], settings: Settings = DEFAULTS) -> dict[str, list[str]]:
    """Return the messages of each rule with a form about an object that fails it, in the form's words, for the form's kinds."""
    return rule_messages_of_each([manifest], among, settings)[0]


def rule_messages_of_each(
    manifests: Sequence[Manifest], among: Sequence[Reading], settings: Settings = DEFAULTS
) -> list[dict[str, list[str]]]:
    """Return the same for several objects at once. They must not affect one another's messages: pods, quotas and ranges do not."""
    of_kinds = [_rules_of(each, settings) for each in manifests]
    readings = [read_source(from_manifest(each)) for each, rules in zip(manifests, of_kinds, strict=True) if rules]
    assert not any(reading.defect for reading in readings)
    every = [form.rule for form in all_forms()] if readings else []
    across = iter(judge_across([*readings, *among], every, settings)) if readings else iter(())
    index = RuleIndex(every, settings, among=False)
    alone = (judge_alone(reading, index, settings) for reading in readings)
    messages: list[dict[str, list[str]]] = []
    for rules in of_kinds:
        findings = [*next(alone), *next(across)] if rules else []
        messages.append({rule: _messages(rule, findings) for rule in rules})
    return messages


def _messages(rule: str, findings: Sequence[Finding]) -> list[str]:
    failing = (each for each in findings if each.rule == rule and each.verdict is Verdict.FAIL)
    return [f"{each.message}. To fix it: {each.remediation}" for each in failing]


def _rules_of(manifest: Manifest, settings: Settings) -> list[str]:
    given = (manifest["apiVersion"].rpartition("/")[0], manifest["kind"])
    forms = [form for form in all_forms() if settings.level(form.rule) is not Level.DISABLED]
    return [form.rule.name for form in forms if given in {(each.group, each.kind) for each in form.matched(settings.parameters(form.rule))}]


def agree(by_rules: Mapping[str, list[str]], by_forms: Mapping[str, list[str]]) -> bool:
    """Return whether both find the same rules violated, in the same words. A rule may stop at an object's first violation."""
    names = {name for name, said in by_rules.items() if said}
    return names == {name for name, said in by_forms.items() if said} and all(set(by_rules[name]) <= set(by_forms[name]) for name in names)


REQUIRED = ("apiVersion", "kind", "metadata")


def without_one_field(manifest: Manifest) -> Iterator[tuple[str, Manifest]]:
    """Yield copies of an object, each without one optional field or element, with the path of the missing part."""
    for path in _paths(manifest, ()):
        if path not in {(field,) for field in REQUIRED}:
            yield ".".join(map(str, path)), _without(manifest, path)


def _paths(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if isinstance(value, dict):
        for key, each in cast("dict[str, Any]", value).items():
            yield from _paths(each, (*path, key))
    elif isinstance(value, list):
        for place, each in enumerate(cast("list[Any]", value)):
            yield from _paths(each, (*path, place))


def _without(value: Any, path: tuple[Any, ...]) -> Any:
    first, *rest = path
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        changed = {} if not rest else {first: _without(fields[first], tuple(rest))}
        return {key: changed.get(key, each) for key, each in fields.items() if rest or key != first}
    listed = cast("list[Any]", value)
    if not rest:
        return [each for place, each in enumerate(listed) if place != first]
    return [_without(each, tuple(rest)) if place == first else each for place, each in enumerate(listed)]
