"""Every rule against its fixtures, through the core, as resources and as manifests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from rule_fixtures import WORDS, Case, cases_of, rules_named

from capacity.values.verdict import Severity, Verdict
from policies.core import judge, judge_all
from policies.inventory.reading.source import from_manifest, from_pulumi
from policies.judging import DEFAULTS, Level
from policies.rules import all_rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policies.inventory.reading.source import Source
    from policies.judging import AnyRule
    from policies.values.finding import Finding


NAMES = [rule.name for rule in all_rules()]


def verdict_of(findings: Sequence[Finding]) -> Verdict:
    """One verdict for an object of several views: the gravest, and not-applicable where there is no view at all."""
    found = {finding.verdict for finding in findings}
    return next((each for each in (Verdict.FAIL, Verdict.UNKNOWN, Verdict.PASS) if each in found), Verdict.NOT_APPLICABLE)


def judged(case: Case, sources: list[Source]) -> tuple[Verdict, list[str]]:
    findings = judge_all(sources, rules_named(case.rule), DEFAULTS)[0]
    assert not [finding.message for finding in findings if "the rule itself is broken" in finding.message]
    return verdict_of(findings), [finding.message for finding in findings]


@pytest.mark.parametrize("rule", NAMES)
def test_the_core_gives_a_resource_the_verdict_of_its_fixture_file(rule: str) -> None:
    for case in cases_of(rule):
        verdict, messages = judged(case, [from_pulumi(each.type_token, each.name, each.inputs) for each in (case, *case.among)])

        assert verdict is case.verdict, (case.name, messages)


@pytest.mark.parametrize("rule", NAMES)
def test_the_core_gives_the_same_object_as_a_manifest_the_same_verdict(rule: str) -> None:
    for case in cases_of(rule):
        if all(each.manifest for each in (case, *case.among)):
            verdict, messages = judged(case, [from_manifest(each.manifest or {}) for each in (case, *case.among)])

            assert verdict is case.verdict, (case.name, messages)


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.name)
def test_a_rule_has_fixtures_of_every_verdict_and_speaks_to_a_person(rule: AnyRule) -> None:
    assert {case.verdict for case in cases_of(rule.name)} == set(WORDS.values())
    assert rule.code.startswith("FLX")
    assert rule.severity in Severity
    assert rule.clouds
    assert rule.link.startswith("https://")
    assert min(len(rule.why), len(rule.remediation)) > 40


def test_codes_and_names_are_unique() -> None:
    rules = all_rules()

    assert len({rule.code for rule in rules}) == len({rule.name for rule in rules}) == len(rules) >= 3


def test_a_failing_pool_is_told_what_to_write_in_its_own_spelling() -> None:
    pool = {"nodeConfig": {"machineType": "g2-standard-8"}}
    findings = judge(from_pulumi("gcp:container/nodePool:NodePool", "l4", pool), rules_named("gpu-pool-without-taint"), DEFAULTS)

    assert [finding.remediation for finding in findings] == [
        "add {key: nvidia.com/gpu, value: present, effect: NO_SCHEDULE} to nodeConfig.taints"
    ]
    assert str(findings[0].object) == "gcp:container/nodePool/NodePool/l4"


def test_a_gke_pool_is_advised_a_label_that_google_cloud_takes() -> None:
    """docs.cloud.google.com/compute/docs/labeling-resources#requirements: keys have small letters, digits, _ and - alone (2026-11-25)."""
    pool = {"nodeConfig": {"machineType": "g2-standard-8"}}
    [findings] = judge_all([from_pulumi("gcp:container/nodePool:NodePool", "l4", pool)], rules_named("missing-owner-labels"), DEFAULTS)

    assert [finding.remediation for finding in findings] == ["add owner to nodeConfig.resourceLabels"]


def test_no_advisory_rule_is_as_grave_as_what_stops_a_deployment() -> None:
    assert [rule.name for rule in all_rules() if rule.level is Level.ADVISORY and rule.severity in {Severity.CRITICAL, Severity.HIGH}] == []
