"""The workflow that judges pull requests: what it may do, and that its steps say yes to a clean branch and no to one that breaks rules."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from git_repositories import git
from github_files import UNLIMITED_POOL, actionlint, used_and_unpinned

from infra.cli.review_report import MARKER

CHECKOUT = Path(__file__).resolve().parents[2]
WORKFLOWS = CHECKOUT / ".github" / "workflows"
OWN, REVIEW = WORKFLOWS / "flexspot.yaml", WORKFLOWS / "review.yaml"
TEMPLATE = CHECKOUT / "infra" / "new_project" / "templates" / "workflow.yaml"

# A pool that the program of every stack declares beside what the stack file says.
PLANTED_RESOURCE = f'''

_declared = main


def main() -> None:
    import yaml
    from pulumi_kubernetes.apiextensions import CustomResource

    _declared()
    planted = yaml.safe_load("""{UNLIMITED_POOL}""")
    CustomResource("planted", api_version=planted["apiVersion"], kind=planted["kind"], metadata=planted["metadata"], spec=planted["spec"])
'''


def workflow(path: Path) -> dict[str, Any]:
    # YAML 1.1 reads the key `on` as true.
    return {("on" if key is True else key): value for key, value in yaml.safe_load(path.read_text()).items()}


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in workflow(path)["jobs"].values() for step in job.get("steps", ())]


def script(name: str) -> str:
    [step] = [step for step in steps(REVIEW) if step["name"] == name]
    return step["run"]


def test_what_runs_the_code_may_read_it_and_nothing_else_and_what_comments_runs_none_of_it() -> None:
    own, told = workflow(OWN), workflow(REVIEW)

    assert set(own["on"]) == {"pull_request", "push", "schedule", "workflow_dispatch"}
    assert own["permissions"] == told["permissions"] == {}
    assert {name: job["permissions"] for name, job in told["jobs"].items()} == {
        "judge": {"contents": "read"},
        "comment": {"pull-requests": "write"},
    }
    # Whoever calls it grants what its jobs may do at most; each of them has its own part of that.
    assert {name: job["permissions"] for name, job in own["jobs"].items()} == {
        "review": {"contents": "read", "pull-requests": "write"},
        "check": {"contents": "read"},
        "test": {"contents": "read"},
        "nightly": {"contents": "read"},
    }
    assert "steps" not in own["jobs"]["review"]
    assert [(step["name"], "uses" in step) for step in told["jobs"]["comment"]["steps"]] == [("Comment", False)]
    for path in (OWN, REVIEW):
        assert {step["with"]["persist-credentials"] for step in steps(path) if "checkout" in step.get("uses", "")} == {False}
        assert "secrets." not in path.read_text()
        assert "secrets:" not in path.read_text()


def test_a_new_projects_workflow_reviews_as_the_one_that_others_call() -> None:
    """A new project has it whole, since its host may not be the one that Flexspot is on."""
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


def test_the_official_engine_is_of_the_version_that_flexspot_is_tried_with() -> None:
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
    told = workflow(OWN)["jobs"][job]

    assert told["if"] == " || ".join(f"github.event_name == '{event}'" for event in events)
    assert [step["run"] for step in told["steps"] if "run" in step] == commands
    assert "needs" not in told, "nothing that fails before keeps it from running"
    assert workflow(OWN)["on"]["push"] == {"branches": ["main"]}
    targets = set(re.findall(r"^([\w-]+):.*##", (CHECKOUT / "Makefile").read_text(), re.MULTILINE))
    assert {each.removeprefix("make ") for each in commands} <= targets


def test_the_tools_are_built_anew_when_the_version_of_one_changes() -> None:
    keys = [step["with"]["key"] for step in steps(OWN) if step.get("with", {}).get("path", "").endswith("tools")]

    assert len(set(keys)) == len(keys) == 2, "what `make test` builds is a part of what is built at night"
    assert all("hashFiles('lab/tools/**/go.mod', 'lab/tools/**/go.sum', 'lab/tools/tools.yaml')" in key for key in keys)


@pytest.mark.parametrize("path,count", [(OWN, 7), (REVIEW, 1)], ids=["own", "review"])
def test_actions_are_pinned_by_commit_and_no_script_holds_an_expression_that_a_pull_request_could_fill(path: Path, count: int) -> None:
    assert used_and_unpinned(path) == (count, [])
    assert [step["name"] for step in steps(path) if "${{" in step.get("run", "")] == []


@pytest.mark.engine
@pytest.mark.nightly(held_by="test_github_takes_every_file_of_this_repository_that_is_for_it")
def test_actionlint_has_nothing_to_say_and_would_say_it(tmp_path: Path) -> None:
    workflows = tmp_path / ".github" / "workflows"
    workflows.mkdir(parents=True)
    for path in (OWN, REVIEW):
        shutil.copy(path, workflows)
    clean = actionlint(tmp_path)
    (workflows / OWN.name).write_text(OWN.read_text().replace("setup: make", "set_up: make"))
    broken = actionlint(tmp_path)

    assert (clean.returncode, clean.stdout) == (0, "")
    assert broken.returncode == 1
    assert 'input "set_up" is not defined' in broken.stdout


@pytest.fixture(scope="module")
def branches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout with two of its stacks, as branches: clean, manifest (a file breaks rules), stack (neither is deployable)."""
    copy = tmp_path_factory.mktemp("repository")
    listed = git(CHECKOUT, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    for name in filter(None, listed.split("\0")):
        if (CHECKOUT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(CHECKOUT / name, copy / name)
    for name in ("pyproject.toml", "uv.lock", "runtime/pyproject.toml"):
        # Older than the environment, which is the checkout's own and must not be made anew for the copy.
        os.utime(copy / name, (1, 1))
    (copy / ".venv").symlink_to(CHECKOUT / ".venv")
    (copy / ".tools").mkdir()
    if (CHECKOUT / ".tools" / "uv").exists():
        (copy / ".tools" / "uv").symlink_to(CHECKOUT / ".tools" / "uv")
    for path in (copy / "stacks").glob("Pulumi.*.yaml"):
        if path.name not in {"Pulumi.dev-eks.yaml", "Pulumi.dev-gke.yaml"}:
            path.unlink()
    git(copy, "init", "--quiet", "--initial-branch=clean")
    commit(copy)
    git(copy, "switch", "--quiet", "--create", "manifest")
    (copy / "team-a").mkdir()
    (copy / "team-a" / "pool.yaml").write_text(UNLIMITED_POOL)
    commit(copy)
    git(copy, "switch", "--quiet", "--create", "stack", "clean")
    program = copy / "infra" / "program.py"
    program.write_text(program.read_text() + PLANTED_RESOURCE)
    gke = copy / "stacks" / "Pulumi.dev-gke.yaml"
    gke.write_text(gke.read_text().replace("flexspot:platform:\n", "flexspot:platform:\n    no_such_setting: 1\n"))
    commit(copy)
    return copy


def commit(folder: Path) -> None:
    # The links into the checkout are no files of the branch.
    (folder / ".git" / "info" / "exclude").write_text(".venv\n.tools\n")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=branch")


def run_step(folder: Path, branch: str, name: str, **environment: str) -> tuple[int, str, str]:
    """Exit code, log and summary of a step, run as GitHub runs it."""
    git(folder, "switch", "--quiet", branch)
    temporary = folder.parent / f"runner-{branch}"
    temporary.mkdir(exist_ok=True)
    summary = temporary / "summary.md"
    environment = {
        **os.environ,
        # The copy's own modules, not those of the checkout that the environment was made for.
        "PYTHONPATH": str(folder),
        "RUNNER_TEMP": str(temporary),
        "GITHUB_STEP_SUMMARY": str(summary),
        "GITHUB_OUTPUT": str(temporary / "output.txt"),
        **environment,
    }
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script(name)]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=500)
    return ended.returncode, ended.stdout + ended.stderr, summary.read_text() if summary.exists() else ""


@pytest.mark.engine
def test_a_manifest_that_breaks_rules_is_annotated_at_its_line(branches: Path) -> None:
    code, log, _ = run_step(branches, "manifest", "Lint")

    assert code == 1, log
    assert "::error file=team-a/pool.yaml,line=4,title=gpu-pool-without-limit (FLX002%2C critical)::NodePool planted: " in log


@pytest.mark.engine
@pytest.mark.nightly(held_by="test_a_pool_that_costs_much_is_refused_by_the_budget_and_its_cost_is_told")
def test_stacks_that_cannot_be_deployed_any_more_are_refused_with_the_reason(branches: Path) -> None:
    """Each side runs its own program, in a copy that has no environment of its own."""
    code, log, summary = run_step(branches, "stack", "Review", BASE="clean")

    assert code == 1, log
    assert summary.splitlines()[1].endswith("over 2 changed stacks, 0 unchanged; 2 stacks refused"), summary
    told = {part.partition("</code>")[0]: part for part in summary.split("**<code>")[1:]}
    assert "⛔ refused: error:" in told["dev-gke"]
    assert "no&#95;such&#95;setting" in told["dev-gke"]
    assert "🔴 new: gpu-pool-without-limit, NodePool planted:" in told["dev-eks"]
    assert "created | NodePool | planted" in told["dev-eks"]
    assert (branches.parent / "runner-stack" / "output.txt").read_text().startswith("comment<<")


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
def test_the_review_is_one_comment_that_is_written_anew(comments: str, asked: str, tmp_path: Path) -> None:
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

    told = (tmp_path / "asked").read_text()
    assert asked in told
    assert told.endswith(f"{MARKER}\n### $(touch /nowhere) `x`\n")
