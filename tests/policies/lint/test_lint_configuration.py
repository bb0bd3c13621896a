"""The linter's configuration file: it includes the policy pack's settings, is read strictly, and is found in parent folders."""

from __future__ import annotations

from pathlib import Path

import pytest
from lint_runs import TAINT_RULE, UNTAINTED_POOL, configured, linted

from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.capacity.values.verdict import Severity
from flexspot.policies.judging import Level, Settings
from flexspot.policies.lint.configuration import FILE_NAME, Configuration, find_configuration, read_configuration
from flexspot.policies.lint.yaml_reading import markdown_chunks
from flexspot.policies.rules import all_rules

WHOLE = """\
flexspot:
  gpu-pool-without-taint: advisory
  gpu-pool-without-limit: {level: mandatory, most: 4}
  duplicate-key: disabled
  suppressions:
    - {rule: unreadable-manifest, object: "Pod*", reason: a fixture of the parser, until: 2999-12-31, by: team-a}
exclude: [tests/*]
fail-on: medium
closed: true
baseline: lint-baseline.json
"""


def test_every_key_takes_effect(tmp_path: Path) -> None:
    read = configured(tmp_path, WHOLE)
    report = linted(
        tmp_path / "files",
        read,
        pool_yaml=UNTAINTED_POOL,
        twice_yaml="apiVersion: v1\nkind: Pod\nkind: Pod\n",
        broken_yaml="apiVersion: v1\nkind: Pod\nspec: [\n",
    )

    assert (read.exclude, read.fail_on, read.closed) == (("tests/*",), Severity.MEDIUM, True)
    assert read.baseline == tmp_path / "lint-baseline.json"
    by_rule = {each.finding.rule: each for each in report.findings}
    assert by_rule[TAINT_RULE].binding is False
    assert "set to a number from 0 to 4" in by_rule["gpu-pool-without-limit"].finding.message
    assert by_rule["unreadable-manifest"].suppressed is not None
    assert by_rule["unreadable-manifest"].suppressed.reason == "a fixture of the parser"
    assert "duplicate-key" not in by_rule


def test_an_expired_or_locked_suppression_has_no_effect(tmp_path: Path) -> None:
    entry = "flexspot:\n  suppressions: [{{rule: duplicate-key, object: '*', reason: kept{until}}}]\n{more}"
    text = "apiVersion: v1\nkind: Pod\nkind: Pod\nmetadata: {name: a}\n"
    kept = linted(tmp_path / "a", configured(tmp_path, entry.format(until="", more="")), twice_yaml=text)
    over = linted(tmp_path / "b", configured(tmp_path, entry.format(until=", until: 2020-01-01", more="")), twice_yaml=text)
    locked = configured(tmp_path, entry.format(until="", more="  duplicate-key: {locked: true}\n"))
    barred = linted(tmp_path / "c", locked, twice_yaml=text)

    assert [len(report.open) for report in (kept, over, barred)] == [0, 1, 1]


@pytest.mark.parametrize(
    "text,message",
    [
        ("flexspto: {}\n", "flexspto: there is no such key; allowed: flexspot, exclude"),
        ("flexspot: {gpu-pool-without-tain: advisory}\n", "flexspot.gpu-pool-without-tain: there is no"),
        ("flexspot: [a]\n", "flexspot: must be a mapping"),
        ("fail-on: grave\n", "fail-on: 'grave' is not allowed; allowed: critical, high, medium, low"),
        ("exclude: tests\n", "exclude: must be a list of path patterns"),
        ("exclude: [1]\n", "exclude: must be a list of path patterns"),
        ("closed: maybe\n", "closed: must be true or false"),
        ("baseline: 3\n", "baseline: must be the path of a file"),
        ("paths: tests", "paths: must be a list of entries"),
        ("paths: [{match: [a]}]", "paths.0: must be an entry with `match`"),
        ("paths: [{match: [a], rules: {gpu-pool-without-tain: advisory}}]", "did you mean gpu-pool-without-taint?"),
        ("paths: [{match: [a], rules: {gpu-pool-without-taint: loud}}]", "'loud' is not allowed"),
        ("paths: [{match: [], rules: {}}]", "paths.0.match: [] is not allowed; allowed: a list of patterns"),
        ("paths: [{match: [1, a], rules: {}}]", "paths.0.match: [1, 'a'] is not allowed; allowed: a list of patterns"),
        ("pages: [a]", "pages: must be the URL"),
        ("closed: true\nclosed: false\n", "line 2: duplicate key closed"),
        ("a: [\n", "line 2: it is not YAML"),
        ("- a\n", "it must be one mapping"),
    ],
)
def test_an_error_in_the_configuration_is_reported(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ExplainedError) as error:
        configured(tmp_path, text)

    assert error.value.exit_code is ExitCode.BAD_USAGE
    assert message in " ".join(error.value.evidence)


def test_a_missing_configuration_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ExplainedError, match="cannot be used") as error:
        read_configuration(tmp_path / "none.yaml")

    assert error.value.evidence == ("it cannot be read: No such file or directory",)


def test_the_nearest_configuration_within_the_repository_is_found(tmp_path: Path) -> None:
    deep = tmp_path / "repository" / "teams" / "a"
    deep.mkdir(parents=True)
    (tmp_path / FILE_NAME).touch()
    assert find_configuration(deep) == tmp_path / FILE_NAME

    (tmp_path / "repository" / ".git").mkdir()
    assert find_configuration(deep) is None

    (tmp_path / "repository" / FILE_NAME).touch()
    assert find_configuration(deep) == tmp_path / "repository" / FILE_NAME


def test_the_example_in_the_guide_is_a_valid_configuration(tmp_path: Path) -> None:
    guide = Path(__file__).resolve().parents[3] / "docs" / "lint.md"
    [example] = [chunk.text.decode() for chunk in markdown_chunks(guide.read_bytes()) if chunk.text.startswith(b"flexspot:")]

    read = configured(tmp_path, example)

    assert (read.fail_on, read.closed, len(read.settings.suppressions)) == (Severity.MEDIUM, True, 1)


@pytest.mark.parametrize(
    "level,bar,fails",
    [
        (Level.MANDATORY, Severity.CRITICAL, True),
        (Level.MANDATORY, None, True),
        (Level.ADVISORY, Severity.LOW, False),
        (Level.ADVISORY, None, False),
        (None, None, True),
        (None, Severity.CRITICAL, False),
        (None, Severity.HIGH, True),
    ],
)
def test_the_level_of_a_rule_takes_precedence_over_fail_on(
    level: Level | None, bar: Severity | None, *, fails: bool, tmp_path: Path
) -> None:
    levels = {rule.name: Level.DISABLED for rule in all_rules()}
    del levels[TAINT_RULE]
    settings = Settings(levels={**levels, **({TAINT_RULE: level} if level else {})})

    assert linted(tmp_path, Configuration(settings, fail_on=bar), pool_yaml=UNTAINTED_POOL).failed is fails
