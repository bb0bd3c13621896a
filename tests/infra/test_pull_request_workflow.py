"""The workflow that reviews pull requests: its permissions and its scripts."""

from __future__ import annotations

import os
import re
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml

from flexspot.infra.cli.stacks.review import MARKER

CHECKOUT = Path(__file__).resolve().parents[2]
WORKFLOWS = CHECKOUT / ".github" / "workflows"
OWN, REVIEW = WORKFLOWS / "flexspot.yaml", WORKFLOWS / "review.yaml"
TEMPLATE = CHECKOUT / "infra" / "flexspot" / "infra" / "new_project" / "templates" / "workflow.yaml"


def workflow(path: Path) -> dict[str, Any]:
    # YAML 1.1 reads the key `on` as true.
    return {("on" if key is True else key): value for key, value in yaml.safe_load(path.read_text()).items()}


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in workflow(path)["jobs"].values() for step in job.get("steps", ())]


def script(name: str) -> str:
    [step] = [step for step in steps(REVIEW) if step["name"] == name]
    return step["run"]


def test_the_job_that_runs_code_only_reads_and_the_job_that_comments_runs_no_code() -> None:
    own, called = workflow(OWN), workflow(REVIEW)

    assert set(own["on"]) == {"pull_request", "push", "schedule", "workflow_dispatch"}
    assert own["permissions"] == called["permissions"] == {}
    assert {name: job["permissions"] for name, job in called["jobs"].items()} == {
        "judge": {"contents": "read"},
        "comment": {"pull-requests": "write"},
    }
    # The caller grants the most that all jobs may do. Each job has only a part of it.
    assert {name: job["permissions"] for name, job in own["jobs"].items()} == {
        "review": {"contents": "read", "pull-requests": "write"},
        "check": {"contents": "read"},
        "test": {"contents": "read"},
        "nightly": {"contents": "read"},
    }
    assert "steps" not in own["jobs"]["review"]
    assert [(step["name"], "uses" in step) for step in called["jobs"]["comment"]["steps"]] == [("Comment", False)]
    for path in (OWN, REVIEW):
        assert {step["with"]["persist-credentials"] for step in steps(path) if "checkout" in step.get("uses", "")} == {False}
        assert "secrets." not in path.read_text()
        assert "secrets:" not in path.read_text()


def test_a_new_projects_workflow_reviews_like_the_reusable_one() -> None:
    """A new project has its own copy, since its Git host may not be Flexspot's."""
    inputs = workflow(REVIEW)["on"]["workflow_call"]["inputs"]
    filled = REVIEW.read_text()
    for there, then in (
        ("${{ inputs.pulumi }}", "<<pulumi>>"),
        (
            '        env:\n          SETUP: ${{ inputs.setup }}\n        run: bash -euo pipefail -c "$SETUP"',
            f"        run: {inputs['setup']['default']}",
        ),
    ):
        assert there in filled
        filled = filled.replace(there, then)

    assert filled.partition("\njobs:\n")[2] == TEMPLATE.read_text().partition("\njobs:\n")[2]
    assert workflow(TEMPLATE)["permissions"] == {}


@pytest.mark.parametrize("code", [0, 1])
def test_the_review_is_shown_whether_or_not_it_fails(code: int, tmp_path: Path) -> None:
    program = tmp_path / ".venv" / "bin" / "flexspot"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@"\nexit {code}\n')
    program.chmod(0o755)
    summary, output = tmp_path / "summary", tmp_path / "output"
    named = {"BASE": "main", "RUNNER_TEMP": tmp_path, "GITHUB_STEP_SUMMARY": summary, "GITHUB_OUTPUT": output}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script("Review")]
    environment = os.environ | {name: str(value) for name, value in named.items()}
    ended = subprocess.run(command, cwd=tmp_path, env=environment, check=False, timeout=60)

    said = "review\n--base\nmain\n--format\nmarkdown\n"
    assert (ended.returncode, summary.read_text()) == (code, said)
    assert re.fullmatch(rf"comment<<(\w+)\n{re.escape(said)}\1\n", output.read_text())


def test_the_official_engine_has_the_tested_version() -> None:
    assert workflow(REVIEW)["on"]["workflow_call"]["inputs"]["pulumi"]["default"] == version("pulumi")


@pytest.mark.parametrize(
    "job,events,commands",
    [
        ("check", ["pull_request", "push"], ["make check", "make docs"]),
        ("test", ["pull_request", "push"], ["make test"]),
        ("nightly", ["schedule", "workflow_dispatch"], ["make test-all"]),
    ],
)
def test_every_change_is_checked_and_tested_and_all_tests_run_at_night(job: str, events: list[str], commands: list[str]) -> None:
    described = workflow(OWN)["jobs"][job]

    assert described["if"] == " || ".join(f"github.event_name == '{event}'" for event in events)
    assert [step["run"] for step in described["steps"] if "run" in step] == commands
    assert "needs" not in described, "nothing that fails before keeps it from running"
    assert workflow(OWN)["on"]["push"] == {"branches": ["main"]}
    targets = set(re.findall(r"^([\w-]+):.*##", (CHECKOUT / "Makefile").read_text(), re.MULTILINE))
    assert {each.removeprefix("make ") for each in commands} <= targets


def test_the_tools_are_rebuilt_when_the_version_of_one_changes() -> None:
    keys = [step["with"]["key"] for step in steps(OWN) if step.get("with", {}).get("path", "").endswith("tools")]

    assert len(set(keys)) == len(keys) == 2, "what `make test` builds is a part of what is built at night"
    assert all(
        "hashFiles('lab/flexspot/lab/tools/**/go.mod', 'lab/flexspot/lab/tools/**/go.sum', 'lab/flexspot/lab/tools/tools.yaml')" in key
        for key in keys
    )


GH = """\
#!/usr/bin/env bash
# Stands in for GitHub: it has the comments of $COMMENTS, and notes what it is asked to write.
case "$*" in
  *--paginate*) cat "$COMMENTS" ;;
  *) printf '%s\\n' "$*" >> "$ASKED"; for each in "$@"; do case "$each" in body=@*) cat "${each#body=@}" >> "$ASKED" ;; esac; done ;;
esac
"""


@pytest.mark.parametrize(
    "comments,asked",
    [("", "--method POST repos/acme/platform/issues/7/comments"), ("11\n12\n", "--method PATCH repos/acme/platform/issues/comments/11")],
    ids=["the first time", "again"],
)
def test_the_review_is_one_comment_that_is_rewritten(comments: str, asked: str, tmp_path: Path) -> None:
    (tmp_path / "gh").write_text(GH)
    (tmp_path / "gh").chmod(0o755)
    (tmp_path / "comments").write_text(comments)
    environment = {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "RUNNER_TEMP": str(tmp_path),
        "REPOSITORY": "acme/platform",
        "NUMBER": "7",
        "COMMENT": f"{MARKER}\n### $(touch /nowhere) `x`",
        "COMMENTS": str(tmp_path / "comments"),
        "ASKED": str(tmp_path / "asked"),
    }

    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script("Comment")]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=60)

    received = (tmp_path / "asked").read_text()
    assert asked in received
    assert received.endswith(f"{MARKER}\n### $(touch /nowhere) `x`\n")
