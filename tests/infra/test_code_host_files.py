"""Files for GitHub and GitLab, of this repository and of new projects, checked by both hosts' schemas; and GitLab's script."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from check_jsonschema.builtin_schemas import get_builtin_schema
from jsonschema.validators import validator_for
from new_projects import LOCAL, init
from ruamel.yaml import YAML

pytestmark = pytest.mark.slow

CHECKOUT = Path(__file__).resolve().parents[2]
ACTIONLINT = CHECKOUT / ".tools" / "bin" / "actionlint"
WORKFLOWS = [str(each.relative_to(CHECKOUT)) for each in sorted(CHECKOUT.glob(".github/workflows/*.yaml"))]
PINNED = re.compile(r"[\w-]+/[\w-]+(/[\w-]+)?@[0-9a-f]{40} # v\d+\.\d+\.\d+")
GITLAB = CHECKOUT / "infra" / "flexspot" / "infra" / "new_project" / "templates" / "gitlab.yaml"


def refusals(schema: str, path: Path) -> list[str]:
    """Return the errors of the file by a schema of check-jsonschema."""
    found = get_builtin_schema(schema)
    return [each.message for each in validator_for(found)(found).iter_errors(YAML(typ="safe").load(path))]


@pytest.mark.parametrize(
    "schema,written",
    [
        ("vendor.github-workflows", ".github/workflows/*.yaml"),
        ("vendor.github-actions", "action.yml"),
        ("vendor.github-issue-forms", ".github/ISSUE_TEMPLATE/*.yaml"),
        ("vendor.github-issue-config", ".github/ISSUE_TEMPLATE/config.yml"),
    ],
)
def test_files_for_github_match_its_schemas(schema: str, written: str) -> None:
    files = sorted(CHECKOUT.glob(written))

    assert files
    assert {path.name: refused for path in files if (refused := refusals(schema, path))} == {}


def test_a_new_project_has_a_valid_workflow_for_only_one_host(tmp_path: Path) -> None:
    """The files that judge changes are the same for every cloud."""
    init(tmp_path / "github", *LOCAL)
    init(tmp_path / "gitlab", *LOCAL, ci="gitlab")
    workflow, pipeline = tmp_path / "github" / ".github" / "workflows" / "flexspot.yaml", tmp_path / "gitlab" / ".gitlab-ci.yml"

    assert refusals("vendor.github-workflows", workflow) == []
    assert refusals("vendor.gitlab-ci", pipeline) == []
    assert not (tmp_path / "gitlab" / ".github").exists()
    assert not (tmp_path / "github" / ".gitlab-ci.yml").exists()
    assert "`.gitlab-ci.yml`" in (tmp_path / "gitlab" / "README.md").read_text()


@pytest.mark.parametrize("name", [*WORKFLOWS, "action.yml", "infra/flexspot/infra/new_project/templates/workflow.yaml"])
def test_actions_are_pinned_by_commit_and_scripts_contain_no_expression(name: str) -> None:
    text = (CHECKOUT / name).read_text()
    content = yaml.safe_load(text)
    steps = content["runs"]["steps"] if "runs" in content else [each for job in content["jobs"].values() for each in job.get("steps", ())]

    # Actions of the same commit begin with a dot.
    used = re.findall(r"^[ -]+uses: ([^.].*)$", text, re.MULTILINE)
    assert used
    assert [each for each in used if not PINNED.fullmatch(each)] == []
    assert [each["name"] for each in steps if "${{" in each.get("run", "")] == []


@pytest.mark.engine
@pytest.mark.nightly(tested_by="test_files_for_github_match_its_schemas")
def test_actionlint_accepts_the_workflows_the_action_and_a_new_projects_workflow(tmp_path: Path) -> None:
    workflows = tmp_path / ".github" / "workflows"
    shutil.copytree(CHECKOUT / ".github" / "workflows", workflows)
    shutil.copy(CHECKOUT / "action.yml", tmp_path)
    init(tmp_path / "new", *LOCAL)
    shutil.copy(tmp_path / "new" / ".github" / "workflows" / "flexspot.yaml", workflows / "new.yaml")
    use = "on: push\njobs:\n  lint:\n    runs-on: ubuntu-24.04\n    steps: [{uses: ./, with: {paths: ., sarif: a.sarif}}]\n"
    (workflows / "lint.yaml").write_text(use)
    # actionlint looks for the root of a repository.
    (tmp_path / ".git").mkdir()

    checked = subprocess.run([ACTIONLINT, "-no-color"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)

    assert (checked.returncode, checked.stdout) == (0, "")


def test_gitlabs_pipeline_has_no_secret_and_no_token() -> None:
    text = GITLAB.read_text()

    assert "TOKEN" not in text
    assert "id_tokens" not in text
    # The pipeline reads two of GitLab's variables: the documented base of a merge request, and the trigger.
    assert {word.strip('"') for word in text.split() if word.startswith(("$CI_", '"$CI_'))} == {
        "$CI_PIPELINE_SOURCE",
        "$CI_MERGE_REQUEST_DIFF_BASE_SHA",
    }


@pytest.mark.parametrize("lint,review", [(0, 0), (1, 0), (0, 1)])
def test_gitlabs_script_always_shows_the_review_and_fails_if_either_command_fails(lint: int, review: int, tmp_path: Path) -> None:
    script: list[str] = yaml.safe_load(GITLAB.read_text())["flexspot"]["script"]
    command = tmp_path / ".venv" / "bin" / "flexspot"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\necho "said by $*"\ncase "$1" in lint) exit {lint};; *) exit {review};; esac\n')
    command.chmod(0o755)

    # GitLab's runner executes the script line by line until one fails.
    job = ["bash", "-eo", "pipefail", "-c", "\n".join(script)]
    environment = os.environ | {"CI_MERGE_REQUEST_DIFF_BASE_SHA": "base"}
    done = subprocess.run(job, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=60)

    assert (done.returncode, done.stdout) == (max(lint, review), "said by review --base base --format text\n")
    assert (tmp_path / "lint.xml").read_text() == "said by lint --format junit .\n"
