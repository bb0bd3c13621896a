"""Output formats of a report: text, JSON, SARIF, and annotations of pull requests."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest
from lint_runs import TAINT_RULE, UNTAINTED_POOL, WHOLE_POOL, linted, shortened, valid_sarif

from flexspot.capacity.values.verdict import ObjectIdentity, Severity, Verdict
from flexspot.policies.lint.file_reading import Skipped
from flexspot.policies.lint.formats import as_github, as_json, as_sarif, as_text
from flexspot.policies.lint.report import LintReport, Placed
from flexspot.policies.values.finding import Finding, Suppression

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def placed(name: str = "gpu", path: str = "a.yaml", severity: Severity = Severity.HIGH, **more: Any) -> Placed:
    about = ObjectIdentity("karpenter.sh/v1", "NodePool", name)
    finding = Finding(
        "gpu-pool-without-taint", "FLX001", severity, Verdict.FAIL, about, "it has no taint", "add one", "https://example.test"
    )
    return Placed(finding, path, 3, **more)


def report_of(findings: Iterable[Placed], undecided: Iterable[Placed] = ()) -> LintReport:
    skipped = {Skipped.TEMPLATE: 2}
    return LintReport(tuple(findings), tuple(undecided), Severity.HIGH, files=1, documents=2, objects=2, skipped=skipped)


ACCEPTED = Suppression("kept empty", date(2030, 1, 31), "team-a")


def test_json_has_the_keys_that_programs_rely_on(tmp_path: Path) -> None:
    report = shortened(linted(tmp_path, pool_yaml=UNTAINTED_POOL, values_yaml="a: 1\n"), tmp_path)
    printed = json.loads(as_json(report))

    [finding] = [each for each in printed["findings"] if each["rule"] == TAINT_RULE]
    assert finding == {
        "rule": "gpu-pool-without-taint",
        "code": "FLX001",
        "severity": "high",
        "fails": True,
        "path": "pool.yaml",
        "line": 9,
        "object": "karpenter.sh/v1/NodePool/gpu",
        "clusters": [],
        "message": "it creates GPU nodes (by its requirement on karpenter.k8s.aws/instance-family), "
        "but spec.template.spec.taints has no taint on nvidia.com/gpu that keeps other pods off",
        "remediation": "add {key: nvidia.com/gpu, value: present, effect: NoSchedule} to spec.template.spec.taints",
        "references": "docs/rules/gpu-pool-without-taint.md; "
        "https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/#example-use-cases",
        "fixable": False,
        "suppressed": None,
    }
    assert {each["rule"] for each in printed["findings"] if each["fixable"]} == {"missing-owner-labels", "spot-pool-without-taint"}
    assert set(printed) == {"findings", "summary"}
    assert {key: printed["summary"][key] for key in ("files", "documents", "objects", "suppressed", "skipped", "fail_on", "failed")} == {
        "files": 2,
        "documents": 2,
        "objects": 1,
        "suppressed": 0,
        "skipped": {"not-kubernetes": 1},
        "fail_on": "mandatory",
        "failed": True,
    }


def test_json_lists_suppressed_findings_with_their_reason() -> None:
    printed = json.loads(as_json(report_of([placed(suppressed=ACCEPTED)])))

    assert printed["findings"][0]["suppressed"] == {"reason": "kept empty", "until": "2030-01-31"}
    assert (printed["summary"]["suppressed"], printed["summary"]["findings"]["high"], printed["summary"]["failed"]) == (1, 0, False)


def test_text_is_lines_with_place_rule_and_remedy_and_a_summary() -> None:
    report = report_of([placed(), placed("b", suppressed=ACCEPTED)], [placed("c")])

    assert as_text(report).splitlines() == [
        "a.yaml:3: high gpu-pool-without-taint (FLX001): NodePool gpu: it has no taint",
        "  To fix it: add one",
        "  See https://example.test",
        "1 high in 2 objects of 1 files.",
        "1 suppressed.",
        "1 could not be decided from these files.",
        "not judged: 2 templates that must be rendered first.",
    ]
    details = as_text(report, details=True)
    assert "suppressed gpu-pool-without-taint (FLX001): NodePool b: it has no taint (kept empty, until 2030-01-31, by team-a)" in details
    assert "undecided gpu-pool-without-taint (FLX001): NodePool c" in details


def test_colours_do_not_change_the_text() -> None:
    report = report_of([placed()])
    coloured = as_text(report, colours=True)

    assert "\x1b[31mhigh\x1b[0m" in coloured
    assert coloured.replace("\x1b[31m", "").replace("\x1b[1m", "").replace("\x1b[2m", "").replace("\x1b[0m", "") == as_text(report)


@pytest.mark.parametrize("name", ["\x1b[2Jgone", "a\n::error::planted", "a\r::stop-commands::x", "a\u2028b"])
def test_no_name_in_a_file_can_write_to_the_terminal_or_begin_a_line(name: str) -> None:
    report = report_of([placed(name, path=f"{name}.yaml")])

    for text in (as_text(report), as_github(report)):
        assert "\x1b" not in text
        assert "\r" not in text
        assert "\u2028" not in text
        assert not [line for line in text.split("\n") if line.startswith("::") and not line.startswith("::error file=")]


def test_annotations_carry_severity_place_and_remedy() -> None:
    findings = [placed(path="a,b.yaml"), placed(severity=Severity.MEDIUM), placed(severity=Severity.LOW), placed("d", suppressed=ACCEPTED)]

    lines = as_github(report_of(findings)).splitlines()

    assert lines[0] == (
        "::error file=a%2Cb.yaml,line=3,title=gpu-pool-without-taint (FLX001%2C high)::NodePool gpu: it has no taint."
        "%0ATo fix it: add one%0ASee https://example.test"
    )
    assert [line.split(" ")[0] for line in lines[:3]] == ["::error", "::warning", "::notice"]
    assert lines[3] == "1 high, 1 medium, 1 low in 2 objects of 1 files."


def test_sarif_is_valid_and_names_rules_places_fingerprints_and_suppressions(tmp_path: Path) -> None:
    linted_report = shortened(linted(tmp_path, pool_yaml=UNTAINTED_POOL, broken_yaml="apiVersion: v1\nkind: Pod\nspec: [\n"), tmp_path)
    report = replace(linted_report, findings=(*linted_report.findings, placed("b", "a folder/ä#1.yaml", suppressed=ACCEPTED)))
    printed = json.loads(as_sarif(report, "0.1.0"))

    valid_sarif(printed)
    [run] = printed["runs"]
    rules = run["tool"]["driver"]["rules"]
    results = run["results"]
    assert all(rules[each["ruleIndex"]]["id"] == each["ruleId"] for each in results)
    assert {"unreadable-manifest", TAINT_RULE} <= {each["ruleId"] for each in results}
    assert len({each["partialFingerprints"]["flexspot/v1"] for each in results}) == len(results)
    assert results[-1]["suppressions"] == [
        {"kind": "external", "status": "accepted", "justification": "kept empty, until 2030-01-31, by team-a"}
    ]
    assert results[-1]["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "a%20folder/%C3%A4%231.yaml"},
        "region": {"startLine": 3},
    }


def test_sarif_of_nothing_and_of_a_rule_that_is_not_listed_is_valid_too() -> None:
    odd = placed()
    odd = replace(odd, finding=replace(odd.finding, rule="suppression"))

    for report in (report_of([]), report_of([odd])):
        valid_sarif(json.loads(as_sarif(report, "0.1.0")))


def test_details_in_json_list_undecided_findings(tmp_path: Path) -> None:
    report = linted(tmp_path, pool_yaml=WHOLE_POOL)

    printed = json.loads(as_json(report, details=True))
    assert [each["rule"] for each in printed["undecided"]] == [each.finding.rule for each in report.undecided] != []
    assert printed["summary"]["undecided"] == len(printed["undecided"])
    assert "undecided" not in json.loads(as_json(report))


def test_objects_that_no_rule_covers_are_counted_by_kind(tmp_path: Path) -> None:
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: NAME}\nspec: {}\n"
    report = linted(tmp_path, a_yaml=service.replace("NAME", "a"), b_yaml=service.replace("NAME", "b"), pool_yaml=UNTAINTED_POOL)

    assert report.unjudged == {"Service": 2}
    assert "no rule covers: 2 Service." in as_text(report)
    assert json.loads(as_json(report))["summary"]["unjudged"] == {"Service": 2}
