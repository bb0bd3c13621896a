"""The linter's input to the rules: all objects together, whether the input is closed, and suppressions on objects."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, NoReturn

import pytest
from lint_runs import TAINT_RULE, UNTAINTED_POOL, WHOLE_POOL, linted, rules

from flexspot.policies import core
from flexspot.policies.lint import run as judging
from flexspot.policies.lint.configuration import Configuration
from flexspot.policies.lint.formats import as_github, as_sarif, as_text

if TYPE_CHECKING:
    from pathlib import Path

NODE_CLASS = (
    "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: NAME}\nspec: {amiSelectorTerms: [{alias: al2023@v20260101}]}\n"
)
MISSING_CLASS = "nodepool-references-missing-class"


def annotated(value: str, rule: str = TAINT_RULE) -> str:
    return UNTAINTED_POOL.replace("  name: gpu\n", f'  name: gpu\n  annotations:\n    flexspot.dev/ignore-{rule}: "{value}"\n')


def test_a_missing_class_is_undecided_unless_the_input_is_closed(tmp_path: Path) -> None:
    open_report = linted(tmp_path, pool_yaml=WHOLE_POOL)
    closed_report = linted(tmp_path, Configuration(closed=True))
    whole = linted(tmp_path, Configuration(closed=True), classes__class_yaml=NODE_CLASS.replace("NAME", "gpu"))

    assert MISSING_CLASS in {each.finding.rule for each in open_report.undecided}
    assert MISSING_CLASS in rules(closed_report)
    assert MISSING_CLASS not in {each.finding.rule for each in (*whole.open, *whole.undecided)}


def test_a_suppression_on_the_object_is_reported_and_counted(tmp_path: Path) -> None:
    report = linted(tmp_path, pool_yaml=annotated("agents need no GPU; until=2999-12-31; by=team-a"))

    [each] = [each for each in report.findings if each.finding.rule == TAINT_RULE]
    assert each.suppressed is not None
    assert str(each.suppressed) == "agents need no GPU, until 2999-12-31, by team-a"
    assert TAINT_RULE not in rules(report)
    assert "1 suppressed." in as_text(report)
    [result] = [each for each in json.loads(as_sarif(report, "0"))["runs"][0]["results"] if each["ruleId"] == TAINT_RULE]
    assert [each["kind"] for each in result["suppressions"]] == ["inSource"]


@pytest.mark.parametrize("value,rule", [("", TAINT_RULE), ("over; until=2020-01-01", TAINT_RULE), ("why", "gpu-pool-without-tain")])
def test_an_invalid_suppression_is_a_finding_at_its_line(value: str, rule: str, tmp_path: Path) -> None:
    report = linted(tmp_path, pool_yaml=annotated(value, rule))

    assert [each.line for each in report.open if each.finding.rule == "suppression"] == [5]
    assert TAINT_RULE in rules(report)


def test_suppressions_and_keys_of_kinds_without_rules_are_checked(tmp_path: Path) -> None:
    crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {annotations: {flexspot.dev/ignore-x: why}}\n"

    assert rules(linted(tmp_path, crd_yaml=f"{crd}spec: {{a: 1, a: 2}}\n")) == {"suppression", "duplicate-key"}


def test_a_broken_reader_of_objects_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_source: object) -> NoReturn:
        raise TypeError("hunter2")

    monkeypatch.setattr(judging, "judge_scopes", partial(core.judge_scopes, read=broken))
    report = linted(tmp_path, pool_yaml=UNTAINTED_POOL)

    for text in (as_text(report), as_github(report)):
        assert "no rule could judge it: TypeError" in text
        assert "hunter2" not in text


def test_every_unknown_field_of_an_object_is_reported_in_one_run(tmp_path: Path) -> None:
    report = linted(tmp_path, pool_yaml=UNTAINTED_POOL.replace("  limits:\n", "  limit: 3\n  weigth: 1\n  limits:\n"))

    [each] = [each for each in report.open if each.finding.rule == "unknown-field"]
    assert "spec.limit is not a field" in each.finding.message
    assert "spec.weigth is not a field" in each.finding.message
    assert "did you mean weight?" in each.finding.message
