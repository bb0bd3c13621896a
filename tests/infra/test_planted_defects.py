"""The shipped stacks keep every rule, and a defect planted in their resources is found only by its rule."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from auto_mode_settings import auto_mode_settings
from autopilot_settings import autopilot_settings
from planted_defects import DEFECTS, Defect, Resources, planted, resources_in, resources_of
from program_declarations import STACKS, declared, shipped
from rule_fixtures import cases_of

from flexspot.capacity.values.verdict import Verdict
from flexspot.policies.core import judge_all
from flexspot.policies.inventory.reading.source import from_pulumi
from flexspot.policies.judging import DEFAULTS
from flexspot.policies.rules import all_rules

if TYPE_CHECKING:
    from rule_fixtures import Case

    from flexspot.policies.values.finding import Finding

pytestmark = pytest.mark.slow

FILES = {"storage": {"checkpoints": "efs", "datasets": "lustre", "lustre": {"capacity_gib": 2400}}}


def broken(resources: Resources) -> list[tuple[str, Finding]]:
    """Return the resource's name and the finding for all failed and undecided ones."""
    sources = [from_pulumi(kind, name, inputs) for name, (kind, inputs) in resources.items()]
    judged = zip(resources, judge_all(sources, all_rules(), DEFAULTS), strict=True)
    return [(name, each) for name, findings in judged for each in findings if each.verdict in {Verdict.FAIL, Verdict.UNKNOWN}]


@pytest.mark.parametrize("stack", ["local", "dev-gke", "prod-gke", "dev-eks", "prod-eks"])
def test_a_shipped_stack_keeps_every_rule_without_undecided_findings(stack: str) -> None:
    assert [(name, each.rule, each.message) for name, each in broken(resources_of(stack))] == []


def auto_mode_of_the_guide() -> dict[str, Any]:
    """Return the settings of the stack file for Auto Mode in the guide of EKS."""
    guide = (STACKS.parent / "docs" / "guides" / "eks.md").read_text(encoding="utf-8")
    [block, *_] = re.findall(r"(?:^    .*\n)+", guide.partition("\n## Auto Mode\n")[2], re.MULTILINE)
    return yaml.safe_load(block)["config"]["flexspot:platform"]


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(shipped("dev-eks", **FILES), id="file systems"),
        pytest.param(auto_mode_of_the_guide(), id="Auto Mode as the guide shows it"),
        pytest.param(auto_mode_settings(), id="Auto Mode"),
        pytest.param(autopilot_settings(), id="Autopilot"),
    ],
)
def test_a_stack_of_another_kind_keeps_every_rule(settings: dict[str, Any]) -> None:
    assert [(name, each.rule, each.message) for name, each in broken(resources_in(declared("test", settings)))] == []


@pytest.mark.parametrize("defect", DEFECTS, ids=str)
def test_a_planted_defect_is_found_only_by_its_rule_and_on_its_resource(defect: Defect) -> None:
    found = [(name, each) for name, each in broken(planted(defect)) if each.verdict is Verdict.FAIL]

    assert {(name, each.rule) for name, each in found} == {(defect.on, defect.rule)}, [each.message for _, each in found]


# Kueue ignores a threshold if fair sharing is on, as in every stack.
WITHOUT_DEFECT = sorted({rule.name for rule in all_rules()} - {each.rule for each in DEFECTS} - {"borrow-threshold-misread"})


@pytest.mark.parametrize("rule", WITHOUT_DEFECT)
def test_a_rule_without_a_row_finds_its_failing_fixture_next_to_a_whole_stack(rule: str) -> None:
    stack = [from_pulumi(kind, name, inputs) for name, (kind, inputs) in resources_of("dev-eks").items()]

    def found(case: Case) -> bool:
        beside = [from_pulumi(each.type_token, each.name, each.inputs) for each in (case, *case.among)]
        findings = judge_all([*stack, *beside], all_rules(), DEFAULTS)[len(stack)]
        return any(each.rule == rule and each.verdict is Verdict.FAIL for each in findings)

    assert any(found(case) for case in cases_of(rule) if case.verdict is Verdict.FAIL)
