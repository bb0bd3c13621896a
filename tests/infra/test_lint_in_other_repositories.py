"""The linter in other repositories: the pre-commit hook and the GitHub action, on a repository with a defect and one without."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Sequence

CHECKOUT = Path(__file__).resolve().parents[2]
ACTION = CHECKOUT / "action.yml"


UNLIMITED_POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: planted}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: planted}
      requirements: [{key: karpenter.k8s.aws/instance-family, operator: In, values: [g6]}]
"""


def repository(folder: Path, *, broken: bool) -> Path:
    (folder / "a b").mkdir(parents=True)
    (folder / "a b" / "settings.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    if broken:
        (folder / "a b" / "pool.yaml").write_text(UNLIMITED_POOL)
    return folder


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Return an environment in which `uvx` runs this checkout's command. test_small_install.py tests the real installation."""
    uvx = folder.parent / "bin" / "uvx"
    uvx.parent.mkdir(exist_ok=True)
    uvx.write_text(
        f'#!/usr/bin/env bash\n[ "$1 $2 $3" = "--from $SOURCE flexspot" ] || exit 3\nshift 3\nexec {sys.executable} -m flexspot "$@"\n'
    )
    uvx.chmod(0o755)
    path = os.pathsep.join([str(uvx.parent), str(CHECKOUT / ".venv" / "bin"), os.environ["PATH"]])
    return {**os.environ, "PATH": path, **more}


def ran(command: Sequence[str], folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=environment(folder, **more),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )


def action() -> dict[str, Any]:
    return yaml.safe_load(ACTION.read_text())


def lint_step(folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run the action's own script with inputs, or their defaults, filled in as GitHub does."""
    [step] = [each for each in action()["runs"]["steps"] if "run" in each]
    given = {name: inputs.get(name, declared["default"]) for name, declared in action()["inputs"].items()}
    filled = {
        name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda match: given[match[1]], value).replace("${{ github.action_path }}", str(CHECKOUT))
        for name, value in step["env"].items()
    }
    return ran(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]], folder, **filled)


def hook() -> dict[str, Any]:
    [found] = yaml.safe_load((CHECKOUT / ".pre-commit-hooks.yaml").read_text())
    return found


def test_the_hook_runs_for_exactly_the_files_that_lint_reads() -> None:
    from flexspot.policies.lint.run import ENDINGS  # noqa: PLC0415 -- for its one test

    wanted = re.compile(hook()["files"])
    assert all(wanted.search(f"a/b{ending}") for ending in ENDINGS)
    assert not wanted.search("a/b.py")
    assert not hook()["pass_filenames"]


def test_the_hook_lints_the_whole_repository_with_the_base_install(tmp_path: Path) -> None:
    """pre-commit installs the repository's root (`language: python`). tests/infra/test_small_install.py tests what that installs."""
    assert hook()["language"] == "python"
    command = [*hook()["entry"].split(), *hook()["args"]]

    broken, clean = (ran(command, repository(tmp_path / name, broken=name == "broken")) for name in ("broken", "clean"))

    assert (broken.returncode, clean.returncode) == (1, 0), (broken, clean)
    assert "gpu-pool-without-limit" in broken.stdout


@pytest.mark.engine
def test_the_action_annotates_violations_and_writes_sarif(tmp_path: Path) -> None:
    broken = repository(tmp_path / "broken", broken=True)

    ended = lint_step(broken, sarif="found.sarif")

    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "::error file=a b/pool.yaml,line=4,title=gpu-pool-without-limit (FLX002%2C critical)::NodePool planted: " in ended.stdout
    results = json.loads((broken / "found.sarif").read_text())["runs"][0]["results"]
    assert "gpu-pool-without-limit" in {each["ruleId"] for each in results}


@pytest.mark.engine
def test_the_action_passes_a_clean_repository_and_forwards_options(tmp_path: Path) -> None:
    clean = lint_step(repository(tmp_path / "clean", broken=False))
    chosen = lint_step(repository(tmp_path / "chosen", broken=True), arguments="--select job-*")
    wrong = lint_step(repository(tmp_path / "wrong", broken=False), paths="nowhere", sarif="found.sarif")

    assert (clean.returncode, chosen.returncode, wrong.returncode > 0) == (0, 0, True), (clean, chosen, wrong)
    assert "there is no file or folder nowhere" in wrong.stderr
