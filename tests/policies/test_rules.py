"""Every rule judges its fixtures as their file names say, as resources and as manifests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from rule_fixtures import WORDS, cases_of, rules_named

from flexspot.capacity.values.verdict import Severity, Verdict
from flexspot.policies import rules
from flexspot.policies.core import judge_all
from flexspot.policies.inventory.reading.source import from_manifest, from_pulumi
from flexspot.policies.judging import DEFAULTS, Level
from flexspot.policies.rules import all_rules

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from flexspot.policies.judging import Rule
    from flexspot.policies.values.finding import Finding


NAMES = [rule.name for rule in all_rules()]


def verdict_of(findings: Sequence[Finding]) -> Verdict:
    """Return the most severe verdict about an object with several views, or not-applicable if it has no view."""
    found = {finding.verdict for finding in findings}
    return next((each for each in (Verdict.FAIL, Verdict.UNKNOWN, Verdict.PASS) if each in found), Verdict.NOT_APPLICABLE)


@pytest.mark.parametrize("rule", NAMES)
def test_a_resource_and_the_same_object_as_a_manifest_get_the_verdict_of_their_fixture_file(rule: str) -> None:
    for case in cases_of(rule):
        whole = (case, *case.among)
        readings = [[from_pulumi(each.type_token, each.name, each.inputs) for each in whole]]
        if all(each.manifest for each in whole):
            readings.append([from_manifest(each.manifest or {}) for each in whole])
        for sources in readings:
            findings = judge_all(sources, rules_named(rule), DEFAULTS)[0]

            assert verdict_of(findings) is case.verdict, (case.name, findings)
            assert "the rule itself is broken" not in str(findings)


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.name)
def test_a_rule_has_fixtures_of_every_verdict_and_complete_texts(rule: Rule) -> None:
    assert {case.verdict for case in cases_of(rule.name)} == set(WORDS.values())
    assert rule.code.startswith("FLX")
    assert rule.severity in Severity
    assert rule.link.startswith("https://")
    assert min(len(rule.why), len(rule.remediation)) > 40


def test_codes_and_names_are_unique() -> None:
    rules = all_rules()

    assert len({rule.code for rule in rules}) == len({rule.name for rule in rules}) == len(rules) >= 3


@pytest.mark.parametrize(
    "rule,remediation",
    [
        ("gpu-pool-without-taint", "add {key: nvidia.com/gpu, value: present, effect: NO_SCHEDULE} to nodeConfig.taints"),
        ("missing-owner-labels", "add owner to nodeConfig.resourceLabels"),
    ],
)
def test_a_remediation_uses_the_field_names_of_the_pool(rule: str, remediation: str) -> None:
    """For the labels that Google Cloud accepts, see docs.cloud.google.com/compute/docs/labeling-resources#requirements (2026-11-25)."""
    pool = from_pulumi("gcp:container/nodePool:NodePool", "l4", {"nodeConfig": {"machineType": "g2-standard-8"}})
    [[finding]] = judge_all([pool], rules_named(rule), DEFAULTS)

    assert finding.remediation == remediation
    assert str(finding.object) == "gcp:container/nodePool/NodePool/l4"


def test_no_advisory_rule_has_critical_or_high_severity() -> None:
    assert [rule.name for rule in all_rules() if rule.level is Level.ADVISORY and rule.severity in {Severity.CRITICAL, Severity.HIGH}] == []


def test_a_file_without_a_rule_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nameless_problem.py").write_text("")
    monkeypatch.setattr(rules, "__path__", [str(tmp_path)])

    with pytest.raises(TypeError, match=r"nameless_problem\.py has no rule"):
        rules.all_rules.__wrapped__()
