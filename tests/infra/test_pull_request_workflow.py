"""The workflow that judges pull requests: what it may do, and that its steps say yes to a clean branch and no to one that breaks rules."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from git_repositories import git
from github_files import UNLIMITED_POOL, actionlint, used_and_unpinned

CHECKOUT = Path(__file__).resolve().parents[2]
WORKFLOW = CHECKOUT / ".github" / "workflows" / "flexspot.yaml"

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


def workflow() -> dict[str, Any]:
    # YAML 1.1 reads the key `on` as true.
    return {("on" if key is True else key): value for key, value in yaml.safe_load(WORKFLOW.read_text()).items()}


def steps() -> list[dict[str, Any]]:
    return [step for job in workflow()["jobs"].values() for step in job["steps"]]


def script(name: str) -> str:
    [step] = [step for step in steps() if step["name"] == name]
    return step["run"]


def test_what_runs_the_code_may_read_it_and_nothing_else_and_what_comments_runs_none_of_it() -> None:
    told = workflow()

    assert set(told["on"]) == {"pull_request", "push"}
    assert told["permissions"] == {}
    assert {name: job["permissions"] for name, job in told["jobs"].items()} == {
        "judge": {"contents": "read"},
        "check": {"contents": "read"},
        "test": {"contents": "read"},
        "comment": {"pull-requests": "write"},
    }
    assert [(step["name"], "uses" in step) for step in told["jobs"]["comment"]["steps"]] == [("Comment", False)]
    checkouts = [step["with"]["persist-credentials"] for step in steps() if "checkout" in step.get("uses", "")]
    assert checkouts == [False] * (len(told["jobs"]) - 1)
    assert "secrets." not in WORKFLOW.read_text()


@pytest.mark.parametrize("job,event,commands", [("check", "pull_request", ["make check", "make docs"]), ("test", "push", ["make test"])])
def test_pull_requests_run_the_fast_checks_and_main_runs_every_test(job: str, event: str, commands: list[str]) -> None:
    told = workflow()["jobs"][job]

    assert told["if"] == f"github.event_name == '{event}'"
    assert [step["run"] for step in told["steps"] if "run" in step] == commands
    assert "needs" not in told, "nothing that fails before keeps it from running"
    assert workflow()["on"]["push"] == {"branches": ["main"]}
    targets = set(re.findall(r"^(\w+):.*##", (CHECKOUT / "Makefile").read_text(), re.MULTILINE))
    assert {each.removeprefix("make ") for each in commands} <= targets


def test_what_previews_keep_of_the_tools_does_not_stand_in_the_way_of_what_tests_need() -> None:
    kept = [step for step in steps() if step.get("with", {}).get("path", "").endswith("tools")]
    keys = {step["name"]: step["with"]["key"] for step in kept}

    assert len(set(keys.values())) == len(keys) == 2
    # Both are made anew when a tool's version changes.
    assert all("hashFiles('lab/tools/**/go.mod', 'lab/tools/**/go.sum', 'lab/tools/tools.yaml')" in key for key in keys.values())


def test_actions_are_pinned_by_commit_and_name_their_version() -> None:
    assert used_and_unpinned(WORKFLOW) == (9, [])


def test_no_script_holds_an_expression_that_a_pull_request_could_fill() -> None:
    assert [step["name"] for step in steps() if "${{" in step.get("run", "")] == []


def checked(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / ".github" / "workflows").mkdir(parents=True)
    (folder / ".github" / "workflows" / "flexspot.yaml").write_text(text)
    return actionlint(folder)


@pytest.mark.engine
def test_actionlint_has_nothing_to_say_and_would_say_it(tmp_path: Path) -> None:
    (tmp_path / "clean").mkdir()
    (tmp_path / "broken").mkdir()
    clean = checked(tmp_path / "clean", WORKFLOW.read_text())
    broken = checked(tmp_path / "broken", WORKFLOW.read_text().replace("runs-on:", "runs-no:"))

    assert (clean.returncode, clean.stdout) == (0, "")
    assert broken.returncode == 1
    assert 'unexpected key "runs-no"' in broken.stdout


@pytest.fixture(scope="module")
def branches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout with the branches clean, manifest (a file that breaks rules) and stack (two that cannot be deployed)."""
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
    git(copy, "init", "--quiet", "--initial-branch=clean")
    commit(copy)
    git(copy, "switch", "--quiet", "--create", "manifest")
    (copy / "team-a").mkdir()
    (copy / "team-a" / "pool.yaml").write_text(UNLIMITED_POOL)
    commit(copy)
    git(copy, "switch", "--quiet", "--create", "stack", "clean")
    for path in sorted((copy / "stacks").glob("Pulumi.*.yaml")):
        if path.name not in {"Pulumi.dev-eks.yaml", "Pulumi.dev-gke.yaml"}:
            path.unlink()
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


def run_step(folder: Path, branch: str, name: str) -> tuple[int, str, str]:
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
    }
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script(name)]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=500)
    return ended.returncode, ended.stdout + ended.stderr, summary.read_text() if summary.exists() else ""


@pytest.mark.engine
def test_a_clean_branch_passes_every_step(branches: Path) -> None:
    assert run_step(branches, "clean", "Set up")[0] == 0
    code, log, _ = run_step(branches, "clean", "Lint manifests")
    assert (code, "::error" in log) == (0, False), log

    code, log, summary = run_step(branches, "clean", "Preview stacks")
    assert (code, "::error" in log) == (0, False), log
    assert summary.count("can be deployed") == len(list((CHECKOUT / "stacks").glob("Pulumi.*.yaml")))

    code, log, summary = run_step(branches, "clean", "Say what it costs")
    assert (code, log) == (0, "")
    assert [line.partition(":")[0] for line in summary.splitlines() if line.startswith("###")] == [
        f"### Cost of <code>{stack}</code>" for stack in ("dev-eks", "dev-gke", "prod-eks", "prod-gke")
    ]
    assert (branches.parent / "runner-clean" / "output.txt").read_text().startswith("comment<<")


@pytest.mark.engine
def test_a_manifest_that_breaks_rules_is_annotated_at_its_line(branches: Path) -> None:
    code, log, _ = run_step(branches, "manifest", "Lint manifests")

    assert code == 1, log
    assert "::error file=team-a/pool.yaml,line=4,title=gpu-pool-without-limit (FLX002%2C critical)::NodePool planted: " in log


@pytest.mark.engine
def test_a_stack_that_cannot_be_deployed_is_annotated_with_the_reason(branches: Path) -> None:
    code, log, summary = run_step(branches, "stack", "Preview stacks")

    assert code == 1, log
    annotations = {line.partition("::error file=")[2].partition(",")[0]: line for line in log.splitlines() if line.startswith("::error")}
    assert "no_such_setting" in annotations["stacks/Pulumi.dev-gke.yaml"], log
    assert "gpu-pool-without-limit" in annotations["stacks/Pulumi.dev-eks.yaml"], log
    assert summary.splitlines() == ["- stack `dev-eks` is refused", "- stack `dev-gke` is refused"]


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
def test_the_cost_is_one_comment_that_is_written_anew(comments: str, asked: str, tmp_path: Path) -> None:
    (tmp_path / "gh").write_text(GH)
    (tmp_path / "gh").chmod(0o755)
    (tmp_path / "comments").write_text(comments)
    environment = {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "RUNNER_TEMP": str(tmp_path),
        "REPOSITORY": "acme/platform",
        "NUMBER": "7",
        "COST": "### Cost of $(touch /nowhere) `x`",
        "COMMENTS": str(tmp_path / "comments"),
        "ASKED": str(tmp_path / "asked"),
    }

    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script("Comment")]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=60)

    told = (tmp_path / "asked").read_text()
    assert asked in told
    assert told.endswith("<!-- flexspot cost -->\n### Cost of $(touch /nowhere) `x`\n")
