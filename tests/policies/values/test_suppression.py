"""Suppressions on the object, on its pod template and in the settings, and invalid ones."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from manifests import Manifest, idle_job
from policy_server import PolicyServer

from flexspot.capacity.values.verdict import Severity, Verdict
from flexspot.policies.core import judge_all
from flexspot.policies.engine import Gate
from flexspot.policies.inventory.reading.source import from_manifest
from flexspot.policies.judging import Settings, read_settings
from flexspot.policies.rules import all_rules
from flexspot.policies.values.finding import Finding, Suppression, read_annotation

RULES = [rule for rule in all_rules() if rule.name in {"gpu-container-without-limit", "missing-owner-labels"}]
PREFIX = "flexspot.dev/ignore-"


def job(on_object: Any = None, on_template: Any = None) -> Manifest:
    """Return a job that breaks gpu-container-without-limit."""
    made = idle_job(name="train", annotations=on_object or {})
    made["spec"]["template"]["metadata"] = {"annotations": on_template or {}}
    return made


def judged(manifest: Manifest, settings: Settings | None = None) -> list[Finding]:
    [findings] = judge_all([from_manifest(manifest)], RULES, settings or Settings(today=date(2026, 6, 1)))
    return [finding for finding in findings if finding.verdict is not Verdict.NOT_APPLICABLE]


@pytest.mark.parametrize("place", [0, 1], ids=["on the object", "on the pod template"])
def test_an_annotation_with_a_reason_suppresses_and_is_reported(place: int) -> None:
    written: list[Any] = [{}, {}]
    written[place] = {f"{PREFIX}gpu-container-without-limit": "driver test; until=2026-06-01; by=team-a"}

    [finding] = judged(job(*written))

    assert finding.verdict is Verdict.SUPPRESSED
    assert finding.suppressed == Suppression("driver test", date(2026, 6, 1), "team-a")


@pytest.mark.parametrize(
    "name,text,problem",
    [
        ("gpu-container-without-limit", "", "it gives no reason"),
        ("gpu-container-without-limit", "; until=2027-01-01", "it gives no reason"),
        ("gpu-container-without-limit", "a test; until=soon", "until=soon is not a date"),
        ("gpu-container-without-limit", "a test; until=2026-05-31", "it expired on 2026-05-31"),
        ("gpu-container-without-limits", "a test", "did you mean gpu-container-without-limit?"),
        ("zzz", "a test", "there is no rule 'zzz'; allowed: "),
    ],
)
def test_an_incomplete_suppression_is_a_finding_and_suppresses_nothing(name: str, text: str, problem: str) -> None:
    found = judged(job({f"{PREFIX}{name}": text}))

    assert [(each.rule, each.verdict) for each in found] == [("gpu-container-without-limit", Verdict.FAIL), ("suppression", Verdict.FAIL)]
    assert problem in found[1].message
    assert found[1].severity is Severity.MEDIUM


def test_a_semicolon_may_belong_to_the_reason() -> None:
    assert read_annotation("first; then another; by=ann") == Suppression("first; then another", None, "ann")


def test_a_locked_rule_cannot_be_suppressed() -> None:
    settings = read_settings({"gpu-container-without-limit": {"locked": True}}, all_rules())

    found = judged(job({f"{PREFIX}gpu-container-without-limit": "please"}), settings)

    assert [each.verdict for each in found] == [Verdict.FAIL, Verdict.FAIL]
    assert "rule gpu-container-without-limit is locked" in found[1].message


@pytest.mark.parametrize("objects", ["batch/v1/Job/team-a/train", "Job/team-a/*", "Job/train", "tr*"])
def test_the_settings_suppress_by_rule_and_object(objects: str) -> None:
    entry = {"rule": "gpu-container-without-limit", "object": objects, "reason": "a driver test", "by": "ops"}

    [finding] = judged(job(), read_settings({"suppressions": [entry]}, all_rules()))

    assert str(finding.suppressed) == "a driver test, by ops"


def test_a_date_that_yaml_parses_is_accepted_as_the_last_day() -> None:
    entry = {"rule": "job-without-queue", "object": "a", "reason": "b", "until": date(2026, 12, 31)}

    assert read_settings({"suppressions": [entry]}, all_rules()).suppressions[0].suppression.until == date(2026, 12, 31)


def test_the_engine_reports_a_suppressed_violation_and_does_not_stop() -> None:
    server = PolicyServer(Gate(RULES))

    [(level, message)] = server.analyze("kubernetes:batch/v1:Job", "train", job({f"{PREFIX}gpu-container-without-limit": "a driver test"}))

    assert level == "advisory"
    assert "suppressed (a driver test): spec.template.spec runs on GPU nodes" in message


def test_the_engine_stops_at_a_violation_with_an_invalid_suppression_and_reports_both() -> None:
    server = PolicyServer(Gate(RULES))

    reported = server.analyze("kubernetes:batch/v1:Job", "train", job({f"{PREFIX}gpu-container-without-limit": ""}))

    assert [(level, message.partition(": Job")[0]) for level, message in reported] == [
        ("mandatory", "gpu-container-without-limit"),
        ("advisory", "flexspot: suppression"),
    ]
