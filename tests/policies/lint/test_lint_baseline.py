"""Baselines: existing findings are suppressed and new ones reported, even if lines move."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from lint_runs import CONFIG_MAP, UNTAINTED_POOL, linted

from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.policies.lint.report import with_baseline, written_baseline

if TYPE_CHECKING:
    from pathlib import Path

SECOND = UNTAINTED_POOL.replace("name: gpu", "name: second")


def accepted(tmp_path: Path, text: str) -> Path:
    """Return the path of a baseline of a folder with this single file."""
    path = tmp_path / "baseline.json"
    path.write_text(written_baseline(linted(tmp_path / "files", pool_yaml=text), path))
    return path


def test_findings_in_the_baseline_are_suppressed_with_that_reason(tmp_path: Path) -> None:
    path = accepted(tmp_path, UNTAINTED_POOL)
    report = with_baseline(linted(tmp_path / "files"), path)

    assert (report.open, report.failed, report.settled) == ((), False, 0)
    assert {each.suppressed.reason for each in report.findings if each.suppressed} == {"in the baseline baseline.json"}


def test_the_baseline_still_covers_findings_when_lines_move_and_objects_are_added(tmp_path: Path) -> None:
    path = accepted(tmp_path, UNTAINTED_POOL)
    report = with_baseline(linted(tmp_path / "files", pool_yaml=f"# moved\n\n{CONFIG_MAP}---\n{UNTAINTED_POOL}"), path)

    assert report.open == ()


def test_a_new_finding_is_open_and_a_fixed_one_is_counted(tmp_path: Path) -> None:
    path = accepted(tmp_path, UNTAINTED_POOL)
    report = with_baseline(linted(tmp_path / "files", pool_yaml=SECOND), path)

    assert {each.finding.object.name for each in report.open} == {"second"}
    assert report.settled == len(json.loads(path.read_text())["findings"]) > 0


def test_a_second_object_of_the_same_name_is_not_covered_by_the_first(tmp_path: Path) -> None:
    path = accepted(tmp_path, UNTAINTED_POOL)
    before = len(with_baseline(linted(tmp_path / "files"), path).findings)
    report = with_baseline(linted(tmp_path / "files", pool_yaml=f"{UNTAINTED_POOL}---\n{UNTAINTED_POOL}"), path)

    assert len(report.open) == before


def test_each_entry_is_one_line_that_names_its_finding(tmp_path: Path) -> None:
    entries = [line for line in accepted(tmp_path, UNTAINTED_POOL).read_text().splitlines() if "fingerprint" in line]

    assert any(
        '"rule": "gpu-pool-without-taint", "path": "files/pool.yaml", "object": "karpenter.sh/v1/NodePool/gpu"' in line for line in entries
    )


@pytest.mark.parametrize(
    "text,why",
    [
        (None, "it does not exist"),
        ("[" * 100_000, "it is not JSON"),
        ("[]", "it is not a baseline of version 1"),
        ('{"version": 2, "findings": []}', "it is not a baseline of version 1"),
        ('{"version": 1, "findings": [{"rule": "a"}]}', "it is not a baseline of version 1"),
    ],
    ids=lambda each: str(each)[:20],
)
def test_a_file_that_is_not_a_baseline_is_bad_usage(text: str | None, why: str, tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    if text is not None:
        path.write_text(text)

    with pytest.raises(ExplainedError, match=why) as error:
        with_baseline(linted(tmp_path / "files", pool_yaml=UNTAINTED_POOL), path)
    assert error.value.exit_code is ExitCode.BAD_USAGE
