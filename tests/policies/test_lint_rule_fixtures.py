"""Every rule against its fixtures as files: the linter gives the verdict that the core and the engine give."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from rule_fixtures import cases_of

from capacity.values.verdict import Severity, Verdict
from policies.judging import Level, Settings
from policies.lint.configuration import Configuration
from policies.lint.run import lint
from policies.rules import all_rules

if TYPE_CHECKING:
    from pathlib import Path

    from policies.judging import AnyRule


def of_rule(name: str) -> Configuration:
    """Only this rule."""
    return Configuration(Settings(levels={rule.name: Level.DISABLED for rule in all_rules() if rule.name != name}))


@pytest.mark.parametrize("rule", [rule.name for rule in all_rules()])
def test_a_fixture_gets_its_verdict_from_the_linter(rule: str, tmp_path: Path) -> None:
    """Those that Kubernetes objects alone make up."""
    configuration, file = of_rule(rule), tmp_path / "fixture.yaml"
    for case in cases_of(rule):
        objects: list[Any] = [case.manifest, *(other.manifest for other in case.among)]
        if all(objects):
            file.write_text("\n---\n".join(json.dumps(each) for each in objects))

            report = lint([str(file)], configuration)

            told = {each.finding.verdict: each.finding.message for each in (*report.undecided, *report.open) if each.line <= 1}
            assert (Verdict.FAIL in told) == (case.verdict is Verdict.FAIL), (case.name, told)
            assert (Verdict.UNKNOWN in told) == (case.verdict is Verdict.UNKNOWN) or case.verdict is Verdict.FAIL, (case.name, told)


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.name)
def test_what_a_preview_stops_at_fails_the_linter_and_nothing_else_does(rule: AnyRule, tmp_path: Path) -> None:
    configuration, file = of_rule(rule.name), tmp_path / "fixture.yaml"
    for case in cases_of(rule.name):
        objects: list[Any] = [case.manifest, *(other.manifest for other in case.among)]
        if all(objects) and case.verdict is Verdict.FAIL:
            file.write_text("\n---\n".join(json.dumps(each) for each in objects))

            assert lint([str(file)], configuration).failed is (rule.level is Level.MANDATORY), case.name
            return


def test_no_advisory_rule_is_as_grave_as_what_stops_a_deployment() -> None:
    assert [rule.name for rule in all_rules() if rule.level is Level.ADVISORY and rule.severity in {Severity.CRITICAL, Severity.HIGH}] == []
