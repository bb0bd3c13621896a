"""Selection of rules, levels under paths, and comments that accept a violation with a reason."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from lint_runs import CONFIG_MAP, TAINT_RULE, UNTAINTED_POOL, configured, found, linted, rules
from typer.testing import CliRunner

from flexspot.capacity.values.verdict import Severity
from flexspot.infra.cli.app import app
from flexspot.policies.lint.configuration import Configuration, judged_rules, selected
from flexspot.policies.lint.formats import as_junit

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "requested,names",
    [
        (["FLX001"], {TAINT_RULE}),
        (["flx001"], {TAINT_RULE}),
        (["gpu-pool-*"], {TAINT_RULE, "gpu-pool-without-limit"}),
        (["FLX90*"], {"unreadable-manifest", "duplicate-key"}),
        ([TAINT_RULE, "FLX902"], {TAINT_RULE, "duplicate-key"}),
    ],
)
def test_rules_are_selected_by_name_by_code_and_by_patterns_of_either(requested: list[str], names: set[str]) -> None:
    assert selected(requested, judged_rules()) == names


def test_a_run_of_selected_rules_reports_no_other_rules(tmp_path: Path) -> None:
    everything = linted(tmp_path, pool_yaml=UNTAINTED_POOL, twice_yaml=CONFIG_MAP + "kind: Secret\n")
    alone = linted(tmp_path, Configuration(chosen=frozenset({TAINT_RULE})))

    assert {TAINT_RULE, "missing-owner-labels", "duplicate-key"} <= rules(everything)
    assert rules(alone) == {TAINT_RULE}


@pytest.mark.parametrize(
    "requested,code,output",
    [
        ("FLX002,job-*", 0, "no findings"),
        ("job-without-quue", 2, "job-without-queue"),
        *((nothing, 2, "flexspot rules list") for nothing in ("", ",", " , ")),
    ],
)
def test_the_command_accepts_known_rules_and_refuses_unknown_and_empty_selections(
    requested: str, code: int, output: str, tmp_path: Path
) -> None:
    (tmp_path / "pool.yaml").write_text(UNTAINTED_POOL)
    ended = CliRunner().invoke(app, ["lint", str(tmp_path), "--select", requested])

    assert ended.exit_code == code
    assert output in ended.output


def test_a_selected_rule_that_is_disabled_is_reported_and_stays_disabled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pool.yaml").write_text(UNTAINTED_POOL)
    (tmp_path / "flexspot-lint.yaml").write_text(
        "flexspot: {gpu-pool-without-taint: disabled, gpu-pool-without-limit: disabled}\n"
        "paths: [{match: [a/*], rules: {gpu-pool-without-limit: advisory}}]\n"
    )
    monkeypatch.chdir(tmp_path)

    ended = CliRunner().invoke(app, ["lint", "pool.yaml", "--select", "gpu-pool-*"])

    assert ended.exit_code == 0
    # A rule that is enabled under some path runs.
    assert " ".join(ended.stderr.split()) == "disabled by the configuration, and not checked: gpu-pool-without-taint."


@pytest.mark.slow
def test_a_run_of_selected_rules_reports_neither_uncovered_kinds_nor_resolved_baseline_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pool.yaml").write_text(f"{UNTAINTED_POOL}---\napiVersion: v1\nkind: Service\nmetadata: {{name: a}}\n")
    options = ["lint", "pool.yaml", "--baseline", "b.json"]
    written = CliRunner().invoke(app, [*options, "--write-baseline"])
    whole = CliRunner().invoke(app, ["lint", "pool.yaml"])

    part = CliRunner().invoke(app, [*options, "--select", TAINT_RULE])
    refused = CliRunner().invoke(app, [*options, "--select", TAINT_RULE, "--write-baseline"])

    assert (written.exit_code, part.exit_code, refused.exit_code) == (0, 0, 2)
    assert "no rule covers: 1 Service" in whole.output
    assert "1 suppressed." in part.output
    assert "no rule covers" not in part.output
    assert "entries of the baseline" not in part.output


PATHS = """\
paths:
  - {match: ["examples/*"], rules: {gpu-pool-without-taint: advisory, missing-owner-labels: disabled}}
  - {match: ["examples/prod/*"], rules: {gpu-pool-without-taint: mandatory}}
"""


def test_levels_apply_under_their_paths_and_the_last_match_wins(tmp_path: Path) -> None:
    files = {"pool_yaml": UNTAINTED_POOL, "examples__pool_yaml": UNTAINTED_POOL, "examples__prod__pool_yaml": UNTAINTED_POOL}
    report = linted(tmp_path, configured(tmp_path, PATHS), **files)

    binding = {each.path.removeprefix(f"{tmp_path}/"): each.binding for each in report.open if each.finding.rule == TAINT_RULE}
    assert binding == {"pool.yaml": True, "examples/pool.yaml": False, "examples/prod/pool.yaml": True}
    assert [path for path, _, rule in found(report, tmp_path) if rule == "missing-owner-labels"] == ["pool.yaml"]


def test_a_path_can_enable_a_disabled_rule(tmp_path: Path) -> None:
    text = "flexspot: {gpu-pool-without-taint: disabled}\npaths:\n- {match: ['a/*'], rules: {gpu-pool-without-taint: mandatory}}\n"
    report = linted(tmp_path, configured(tmp_path, text), a__pool_yaml=UNTAINTED_POOL, b__pool_yaml=UNTAINTED_POOL)

    assert [(path, rule) for path, _, rule in found(report, tmp_path) if rule == TAINT_RULE] == [("a/pool.yaml", TAINT_RULE)]
    assert report.failed


def commented(comment: str, place: str) -> str:
    """Return the pool with a comment above it, at the line of its taints' parent, or below it."""
    if place == "above":
        return f"# Written by hand.\n# {comment}\n{UNTAINTED_POOL}"
    if place == "at the line":
        return UNTAINTED_POOL.replace("    spec:\n", f"    spec:  # {comment}\n")
    return f"{UNTAINTED_POOL}# {comment}\n"


@pytest.mark.parametrize("place", ["above", "at the line"])
def test_a_comment_with_a_reason_accepts_a_violation(place: str, tmp_path: Path) -> None:
    text = commented("flexspot.dev/ignore-gpu-pool-without-taint: the pool is gone in May; until=2999-05-31; by=team-a", place)
    report = linted(tmp_path, pool_yaml=text)

    [accepted] = [each for each in report.findings if each.finding.rule == TAINT_RULE]
    assert accepted.suppressed is not None
    assert str(accepted.suppressed) == "the pool is gone in May, until 2999-05-31, by team-a"
    assert accepted.suppressed.in_source
    assert "missing-owner-labels" in rules(report)


@pytest.mark.parametrize(
    "comment,message",
    [
        ("flexspot.dev/ignore-gpu-pool-without-taint:", "it gives no reason"),
        ("flexspot.dev/ignore-gpu-pool-without-taint", "it gives no reason"),
        ("flexspot.dev/ignore-gpu-pool-without-taint: for now; until=2020-01-01", "it expired on 2020-01-01"),
        ("flexspot.dev/ignore-gpu-pool-without-tain: for now", "did you mean gpu-pool-without-taint?"),
    ],
)
def test_an_invalid_comment_is_a_finding_at_its_line(comment: str, message: str, tmp_path: Path) -> None:
    report = linted(tmp_path, pool_yaml=commented(comment, "above"))

    assert TAINT_RULE in rules(report)
    [problem] = [each for each in report.open if each.finding.rule == "suppression"]
    assert (problem.line, message in problem.message) == (2, True), problem.message


def test_a_comment_elsewhere_in_the_file_or_of_another_rule_accepts_nothing(tmp_path: Path) -> None:
    elsewhere = commented("flexspot.dev/ignore-gpu-pool-without-taint: for now", "below")
    other = commented("flexspot.dev/ignore-missing-owner-labels: for now", "above")
    report = linted(tmp_path, a_yaml=elsewhere, b_yaml=other)

    assert [path for path, _, rule in found(report, tmp_path) if rule == TAINT_RULE] == ["a.yaml", "b.yaml"]
    assert [path for path, _, rule in found(report, tmp_path) if rule == "missing-owner-labels"] == ["a.yaml"]


def test_an_invalid_comment_fails_a_run_like_an_annotation_and_refers_to_the_same_page(tmp_path: Path) -> None:
    configuration = replace(configured(tmp_path, "pages: https://git.acme.com/flexspot\n"), fail_on=Severity.LOW)
    annotated = UNTAINTED_POOL.replace("  name: gpu\n", "  name: gpu\n  annotations: {flexspot.dev/ignore-gpu-pool-without-taint: ''}\n")
    comment = commented("flexspot.dev/ignore-gpu-pool-without-taint:", "above")
    misspelt = commented("flexspot.dev/ignore-gpu-pool-without-tain: for now", "above")

    report = linted(tmp_path, configuration, a_yaml=annotated, b_yaml=comment, c_yaml=misspelt)

    reported = [(each.path.rpartition("/")[2], each.binding, each.references) for each in report.open if each.finding.rule == "suppression"]
    assert reported == [(each, True, "https://git.acme.com/flexspot/docs/policies.md") for each in ("a.yaml", "b.yaml", "c.yaml")]


def test_a_comment_does_not_suppress_a_locked_rule(tmp_path: Path) -> None:
    configuration = configured(tmp_path, "flexspot: {gpu-pool-without-taint: {locked: true}}\n")
    text = commented("flexspot.dev/ignore-gpu-pool-without-taint: for now", "above")
    report = linted(tmp_path, configuration, pool_yaml=text)

    assert TAINT_RULE in rules(report)
    assert any("is locked" in each.message for each in report.open if each.finding.rule == "suppression")


def test_a_comment_accepts_a_duplicate_key(tmp_path: Path) -> None:
    text = f"{CONFIG_MAP}data:\n  a: b\n  # flexspot.dev/ignore-duplicate-key: an old tool writes it\n  a: c\n"

    assert rules(linted(tmp_path, a_yaml=text)) == set()


ADVISED = "flexspot: {spot-pool-without-taint: advisory, on-demand-fallback-uncapped: disabled}\n"


def parsed(text: str) -> ET.Element:
    return ET.fromstring(text)  # noqa: S314 -- our own text


def test_junit_has_failures_only_for_findings_that_fail_the_run(tmp_path: Path) -> None:
    text = commented("flexspot.dev/ignore-missing-owner-labels: for now", "above")
    report = linted(tmp_path, configured(tmp_path, ADVISED), pool_yaml=text)

    suite = parsed(as_junit(report))[0]
    cases = {case.get("name", "").partition(" ")[0]: [each.tag for each in case] for case in suite}
    assert cases == {TAINT_RULE: ["failure"], "missing-owner-labels": ["skipped"], "spot-pool-without-taint": ["system-out"]}
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "1", "1")
    failure = next(case for case in suite if case.get("name", "").startswith(TAINT_RULE))
    assert (failure.get("file"), failure.get("line")) == (f"{tmp_path}/pool.yaml", "11")
    assert "To fix it: add {key: nvidia.com/gpu, value: present, effect: NoSchedule} to spec.template.spec.taints" in (
        failure[0].text or ""
    )


def test_junit_passes_for_a_clean_run_and_is_valid_xml_for_hostile_names(tmp_path: Path) -> None:
    clean = parsed(as_junit(linted(tmp_path / "a", a_yaml=CONFIG_MAP)))
    hostile = UNTAINTED_POOL.replace("name: gpu", 'name: "a\\u0001<&\\"b"')
    report = linted(tmp_path / "b", a_yaml=hostile)
    strange = replace(report, findings=tuple(replace(each, path="b\udc80/\x00.yaml") for each in report.findings))

    assert [case.get("name") for suite in clean for case in suite] == ["1 objects of 1 files"]
    assert len(parsed(as_junit(strange))[0]) == len(report.findings)
