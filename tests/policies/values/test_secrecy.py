"""Rules judge the value of a secret and never reveal it, through the engine's protocol and in manifests."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inventories import Resource, runs
from manifests import found, idle_job
from policy_server import PolicyServer
from rule_fixtures import UNKNOWN_STRING, Case, cases

from flexspot.capacity.values.engine_marks import SECRET, SIGNATURE
from flexspot.capacity.values.verdict import Verdict
from flexspot.policies.core import judge_all
from flexspot.policies.engine import Gate, violation_text
from flexspot.policies.inventory.reading.source import from_manifest, from_pulumi
from flexspot.policies.judging import DEFAULTS
from flexspot.policies.rules import all_rules
from flexspot.policies.values.finding import SHOWN, Secrets, Suppression, secrets_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flexspot.policies.judging import Rule

Path = tuple[str | int, ...]
Report = tuple[str, str]
"""Level and message."""

HUNTER = "hunter2-17x"


def marked(value: Any) -> dict[str, Any]:
    return {SIGNATURE: SECRET, "value": value}


def leaves(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of scalars, except apiVersion and kind."""
    if isinstance(value, dict):
        for key, each in cast("dict[str, Any]", value).items():
            if (*path, key) not in {("apiVersion",), ("kind",)}:
                yield from leaves(each, (*path, key))
    elif isinstance(value, list):
        for place, each in enumerate(cast("list[Any]", value)):
            yield from leaves(each, (*path, place))
    elif value is not None and value != UNKNOWN_STRING:
        yield path


def changed(inputs: dict[str, Any], path: Path, change: Callable[[Any], Any]) -> dict[str, Any]:
    whole = copy.deepcopy(inputs)
    place: Any = whole
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = change(place[path[-1]])
    return whole


def judged(resources: list[Resource]) -> str:
    """Return the texts of all findings about the resources, as one run."""
    found = judge_all([from_pulumi(*each) for each in resources], all_rules(), DEFAULTS)
    return "\n".join(f"{violation_text(each)} {each.at}" for findings in found for each in findings)


def reported(resources: list[Resource]) -> list[Report]:
    """Return the pack's diagnostics about the resources as one stack, through the engine's protocol."""
    server = PolicyServer(Gate())
    alone = [each for resource in resources for each in server.analyze(*resource)]
    return [*alone, *((level, message) for level, _, message in server.analyze_stack([(*each[:2], {}) for each in resources]))]


def resources_of(case: Case) -> list[Resource]:
    return [(each.type_token, each.name, each.inputs) for each in (case, *case.among)]


@given(st.sampled_from(cases()), st.data())
def test_no_secret_is_revealed_wherever_in_an_object_it_is(case: Case, data: st.DataObject) -> None:
    resources = resources_of(case)
    number = data.draw(st.integers(0, len(resources) - 1))
    token, name, inputs = resources[number]
    for place, path in enumerate(data.draw(st.lists(st.sampled_from(list(leaves(inputs)) or [()]), max_size=3, unique=True))):
        if path:
            inputs = changed(inputs, path, lambda _, place=place: marked(f"{HUNTER}-{place}"))
    resources[number] = (token, name, inputs)

    assert HUNTER not in judged(resources)


@pytest.mark.slow
@given(runs(), st.data())
def test_no_secret_of_a_compared_object_is_revealed(run: list[Resource], data: st.DataObject) -> None:
    hidden: list[Resource] = []
    for token, name, inputs in run:
        path = data.draw(st.sampled_from(list(leaves(inputs)) or [()]))
        hidden.append((token, name, changed(inputs, path, lambda _: marked(HUNTER)) if path else inputs))

    assert HUNTER not in judged(hidden)


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.name)
def test_no_secret_is_revealed_through_the_engines_protocol_if_every_value_of_a_violating_object_is_secret(rule: Rule) -> None:
    case = next(case for case in cases() if case.rule == rule.name and case.verdict is Verdict.FAIL)
    inputs = case.inputs
    for place, path in enumerate(leaves(case.inputs)):
        inputs = changed(inputs, path, lambda was, place=place: marked(f"{HUNTER}-{place}" if isinstance(was, str) else was))

    reports = reported([(case.type_token, case.name, inputs), *resources_of(case)[1:]])

    assert HUNTER not in str(reports)


@given(st.sampled_from(cases()), st.data())
def test_a_secret_value_gets_the_same_verdict_as_a_plain_one(case: Case, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(list(leaves(case.inputs)) or [()]))
    inputs = changed(case.inputs, path, marked) if path else case.inputs

    def verdicts(of: dict[str, Any]) -> list[tuple[str, Verdict]]:
        sources = [from_pulumi(case.type_token, case.name, of), *(from_pulumi(*each) for each in resources_of(case)[1:])]
        return [(each.rule, each.verdict) for findings in judge_all(sources, all_rules(), DEFAULTS) for each in findings]

    assert verdicts(inputs) == verdicts(case.inputs)


def test_nothing_is_remediated_with_or_without_secrets() -> None:
    server = PolicyServer(Gate())

    assert server.remediate("kubernetes:core/v1:Secret", "plain", {"data": {"a": "b"}}) == 0
    assert server.remediate("kubernetes:core/v1:Secret", "secret", {"data": marked({"a": "b"})}) == 0


def test_values_of_a_secret_mapping_and_keys_that_are_no_field_names_are_secret() -> None:
    inputs = {
        "spec": marked({"maxNodeCount": 3.0, "labels": {"hunter.dev/tier": True}, "memory": "2Ki", "late": UNKNOWN_STRING, "no": None})
    }

    assert secrets_in(inputs).texts == {"3", "hunter.dev/tier", "true", "2Ki", "2048"}
    assert secrets_in([inputs, {"plain": ["text"]}]) == secrets_in(inputs)


@pytest.mark.parametrize(
    "secret,text,shown",
    [
        ("l4", "pool l4 of l4-spot, not nl4s", f"pool {SHOWN} of {SHOWN}-spot, not nl4s"),
        ("8", "8 of 18", f"{SHOWN} of 18"),
        ("spot", "a spotless pool", f"a {SHOWN}less pool"),
        ("a.b*", "what a.b* is", f"what {SHOWN} is"),
    ],
)
def test_a_short_secret_is_hidden_as_a_whole_word_and_a_long_one_everywhere(secret: str, text: str, shown: str) -> None:
    assert Secrets(frozenset({secret})).hidden_in(text) == shown


def test_a_secret_that_is_a_prefix_of_another_leaves_no_rest_of_it() -> None:
    assert Secrets(frozenset({"hunter", "hunter2"})).hidden_in("hunter2 and hunter") == f"{SHOWN} and {SHOWN}"


def test_everything_in_a_finding_that_comes_from_an_object_is_hidden() -> None:
    [judged_one] = found(idle_job(name=HUNTER, namespace=HUNTER), rule="gpu-container-without-limit")
    accepted = Suppression(HUNTER, by=HUNTER)
    finding = replace(judged_one, message=HUNTER, remediation=f"write {HUNTER}", at=f'spec["{HUNTER}"]', suppressed=accepted)

    hidden = Secrets(frozenset({HUNTER})).hide(finding)

    assert HUNTER not in repr(hidden)
    assert repr(hidden).count(SHOWN) == 7
    assert Secrets().hide(finding) is finding


CONTAINERS = (("spec",), ("spec", "template", "spec"))
SECRETIVE = ("env", "args", "command", "envFrom", "lifecycle")


@given(st.sampled_from([case for case in cases() if case.manifest]), st.sampled_from(SECRETIVE), st.sampled_from(["name", "value", "data"]))
def test_variables_commands_secrets_and_scripts_of_a_manifest_are_never_revealed(case: Case, field: str, key: str) -> None:
    manifest = copy.deepcopy(case.manifest or {})
    for path in CONTAINERS:
        place: Any = manifest
        for step in path:
            place = place.get(step) if isinstance(place, dict) else None
        for container in place.get("containers", ()) if isinstance(place, dict) else ():
            if isinstance(container, dict):
                container[field] = [{"name": "TOKEN", key: HUNTER}] if field == "env" else [HUNTER]
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": HUNTER}, "data": {"a": HUNTER}}
    script = {"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "c"}, "spec": {"userData": HUNTER}}
    sources = [from_manifest(each) for each in (manifest, secret, script, *(each.manifest or {} for each in case.among))]

    judged_all = judge_all(sources, all_rules(), DEFAULTS, closed=True)

    assert HUNTER not in "\n".join(f"{each.message} {each.remediation} {each.at}" for findings in judged_all for each in findings)
