"""Files for GitHub and GitLab, this repository's and a new project's, by the schemas of both; and what GitLab's script says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml
from git_repositories import git
from new_projects import LOCAL, init

from capacity.values.errors import ExplainedError

pytestmark = pytest.mark.slow

OTHER_FILES = pytest.mark.nightly(held_by="test_github_takes_every_file_of_this_repository_that_is_for_it")
CHECKOUT = Path(__file__).resolve().parents[2]
ENVIRONMENT = Path(sys.executable).parents[1]


def refusals(schema: str, path: Path) -> str:
    """What the schema of that name, as check-jsonschema carries it, has against the file."""
    command = [ENVIRONMENT / "bin" / "check-jsonschema", "--color", "never", "--builtin-schema", schema, path]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode == 0) == done.stdout.startswith("ok"), done.stderr
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.mark.parametrize(
    "schema,written",
    [
        ("vendor.github-workflows", ".github/workflows/*.yaml"),
        pytest.param("vendor.github-actions", "action.yml", marks=OTHER_FILES),
        pytest.param("vendor.github-issue-forms", ".github/ISSUE_TEMPLATE/*.yaml", marks=OTHER_FILES),
        pytest.param("vendor.github-issue-config", ".github/ISSUE_TEMPLATE/config.yml", marks=OTHER_FILES),
    ],
)
def test_github_takes_every_file_of_this_repository_that_is_for_it(schema: str, written: str) -> None:
    files = sorted(CHECKOUT.glob(written))

    assert files
    assert {path.name: refused for path in files if (refused := refusals(schema, path))} == {}


def test_each_host_takes_what_judges_changes_of_a_new_project_and_no_project_has_both(tmp_path: Path) -> None:
    """What judges changes is the same for every cloud."""
    init(tmp_path / "github", *LOCAL)
    init(tmp_path / "gitlab", *LOCAL, ci="gitlab")
    workflow, pipeline = tmp_path / "github" / ".github" / "workflows" / "flexspot.yaml", tmp_path / "gitlab" / ".gitlab-ci.yml"

    assert refusals("vendor.github-workflows", workflow) == ""
    assert refusals("vendor.gitlab-ci", pipeline) == ""
    assert not (tmp_path / "gitlab" / ".github").exists()
    assert not (tmp_path / "github" / ".gitlab-ci.yml").exists()
    assert "`.gitlab-ci.yml`" in (tmp_path / "gitlab" / "README.md").read_text()


def test_another_host_is_told_what_is_allowed_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(ExplainedError) as told:
        init(tmp_path / "new", *LOCAL, ci="bitbucket")

    assert (told.value.problem, told.value.remedy) == (
        "--ci 'bitbucket' is not a supported host.",
        "give --ci: github or gitlab.",
    )
    assert not (tmp_path / "new").exists()


def test_gitlabs_pipeline_has_no_secret_and_no_token() -> None:
    text = (CHECKOUT / "infra" / "new_project" / "templates" / "gitlab.yaml").read_text()

    assert "TOKEN" not in text
    assert "id_tokens" not in text
    # Of GitLab's own variables it reads the one that is documented as the base of a merge request, and which trigger it was.
    assert {word.strip('"') for word in text.split() if word.startswith(("$CI_", '"$CI_'))} == {
        "$CI_PIPELINE_SOURCE",
        "$CI_MERGE_REQUEST_DIFF_BASE_SHA",
    }


@pytest.mark.parametrize("lint,review", [(0, 0), (1, 0), (0, 1)])
def test_gitlabs_script_shows_the_review_whatever_the_linter_found_and_fails_where_either_does(
    lint: int, review: int, tmp_path: Path
) -> None:
    init(tmp_path, *LOCAL, ci="gitlab")
    command = tmp_path / ".venv" / "bin" / "flexspot"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\necho "said by $*"\ncase "$1" in lint) exit {lint};; *) exit {review};; esac\n')
    command.chmod(0o755)

    assert run_job(tmp_path, "base") == (max(lint, review), "said by review --base base --format text\n")
    assert (tmp_path / "lint.xml").read_text() == "said by lint --format junit .\n"


@pytest.mark.engine
@pytest.mark.nightly(held_by="test_gitlabs_script_shows_the_review_whatever_the_linter_found_and_fails_where_either_does")
def test_gitlabs_script_leaves_a_review_and_findings_and_fails_where_a_rule_is_broken(tmp_path: Path) -> None:
    init(tmp_path, *LOCAL, ci="gitlab")
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "the platform")
    base = git(tmp_path, "rev-parse", "HEAD")
    (tmp_path / ".venv").symlink_to(ENVIRONMENT)
    stack = tmp_path / "stacks" / "Pulumi.local.yaml"
    stack.write_text(stack.read_text().replace("max_nodes: ", "max_nodes: 1", 1))
    (tmp_path / "pod.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: train, namespace: vision}\n"
        "spec: {containers: [{name: main, image: train:1.0, resources: {requests: {nvidia.com/gpu: 1}}}]}\n"
    )
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "ten times as many nodes, and a pod without a limit")

    code, told = run_job(tmp_path, base)

    assert code == 1, told
    assert "local" in (tmp_path / "review.txt").read_text()
    assert (tmp_path / "review.txt").read_text() in told
    assert ET.parse(tmp_path / "lint.xml").findall(".//failure")  # noqa: S314 -- likewise


def run_job(folder: Path, base: str) -> tuple[int, str]:
    """What the job's script does, as GitLab's runner has a shell do it: line by line, until one fails."""
    script: list[str] = yaml.safe_load((folder / ".gitlab-ci.yml").read_text())["flexspot"]["script"]
    command = ["bash", "-eo", "pipefail", "-c", "\n".join(script)]
    done = subprocess.run(
        command,
        cwd=folder,
        env={"PATH": f"{ENVIRONMENT / 'bin'}:/usr/bin:/bin", "HOME": str(Path.home()), "CI_MERGE_REQUEST_DIFF_BASE_SHA": base},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return done.returncode, done.stdout + done.stderr
