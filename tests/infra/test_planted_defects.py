"""The shipped stacks keep every rule, and one defect planted in their resources is found by the one rule that is about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from engine_analysis import analyzed, written_state
from planted_defects import Defect, Resources, job, planted, resources_of
from planted_table import EVERY_DEFECT, WITHOUT_ROW
from resource_edits import edits
from rule_fixtures import cases_of

from capacity.values.verdict import Verdict
from policies.core import judge_all
from policies.inventory.reading.source import from_pulumi
from policies.judging import DEFAULTS
from policies.rules import all_rules

if TYPE_CHECKING:
    from pathlib import Path

    from rule_fixtures import Case

    from policies.values.finding import Finding

pytestmark = pytest.mark.thorough

STACKS = ("local", "dev-gke", "prod-gke", "dev-eks", "prod-eks")


def broken(resources: Resources) -> list[tuple[str, Finding]]:
    """The name of the resource and the finding, of all that fail or cannot be decided."""
    sources = [from_pulumi(kind, name, inputs) for name, (kind, inputs) in resources.items()]
    judged = zip(resources, judge_all(sources, all_rules(), DEFAULTS), strict=True)
    return [(name, each) for name, findings in judged for each in findings if each.verdict in {Verdict.FAIL, Verdict.UNKNOWN}]


@pytest.mark.parametrize("stack", STACKS)
def test_a_shipped_stack_keeps_every_rule_and_nothing_hangs_on_what_is_not_known_yet(stack: str) -> None:
    assert [(name, each.rule, each.message) for name, each in broken(resources_of(stack))] == []


@pytest.mark.parametrize("defect", EVERY_DEFECT, ids=str)
def test_a_planted_defect_is_found_by_its_rule_alone_on_its_resource_alone(defect: Defect) -> None:
    _, resources = planted(defect)

    found = [(name, each) for name, each in broken(resources) if each.verdict is Verdict.FAIL]

    assert {(name, each.rule) for name, each in found} == {(defect.on, defect.rule)}, [each.message for _, each in found]


@pytest.mark.engine
@pytest.mark.parametrize("stack", STACKS)
def test_the_engine_lets_a_shipped_stack_through_without_advice_although_nothing_has_outputs(stack: str, tmp_path: Path) -> None:
    made = resources_of(stack)
    state = written_state(
        tmp_path, ((f"urn:pulumi:{stack}::flexspot::{kind}::{name}", kind, inputs) for name, (kind, inputs) in made.items())
    )

    code, events, printed = analyzed(tmp_path, state)

    assert (code, events) == (0, []), printed


@pytest.mark.parametrize("stack", ["dev-gke", "dev-eks"])
def test_a_job_that_keeps_every_rule_is_let_through(stack: str) -> None:
    resources = resources_of(stack)
    job(resources)

    assert [(each.rule, each.message) for _, each in broken(resources)] == []


@pytest.mark.parametrize("rule", WITHOUT_ROW)
def test_a_rule_without_a_row_finds_a_failing_fixture_of_its_own_beside_a_whole_stack(rule: str) -> None:
    stack = [from_pulumi(kind, name, inputs) for name, (kind, inputs) in resources_of("dev-eks").items()]

    def found(case: Case) -> bool:
        beside = [from_pulumi(each.type_token, each.name, each.inputs) for each in (case, *case.among)]
        findings = judge_all([*stack, *beside], all_rules(), DEFAULTS)[len(stack)]
        return any(each.rule == rule and each.verdict is Verdict.FAIL for each in findings)

    assert any(found(case) for case in cases_of(rule) if case.verdict is Verdict.FAIL)


def test_the_edits_of_a_defect_make_the_one_of_the_other() -> None:
    before = {"a": {"b": 1, "c": [1, {"d": 2}]}, "e": [1], "f": 0}
    after = {"a": {"c": [1, {"d": 3}]}, "e": [1, 2], "f": 0, "g": {"h": 1}}

    assert edits(before, after) == [
        {"path": ("a", "b")},
        {"path": ("a", "c", 1, "d"), "value": 3},
        {"path": ("e",), "value": [1, 2]},
        {"path": ("g",), "value": {"h": 1}},
    ]
