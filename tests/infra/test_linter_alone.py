"""The linter's own distribution: built, installed alone into a fresh environment, and run as a person, pre-commit and the action run it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from git_repositories import git
from installed_fixtures import CHECKOUT, Installed, uv
from rule_fixtures import cases

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.engine

GOOD = CHECKOUT / "tests" / "policies" / "lint" / "good"
FOREIGN = ("pulumi", "grpc", "google", "boto", "kubernetes", "cryptography", "pydantic", "flexspot-")
MOST_MB = 40


@pytest.fixture(scope="module")
def linter(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """An environment in which nothing is but the linter and what it needs, compiled as installers do."""
    place = tmp_path_factory.mktemp("linter")
    uv("build", "--quiet", "--wheel", "--out-dir", place, CHECKOUT / "policies" / "lint")
    locked = ("export", "--quiet", "--frozen", "--no-dev", "--all-extras", "--no-emit-workspace", "--no-hashes")
    uv(*locked, "--output-file", place / "locked.txt")
    uv("venv", "--quiet", "--python", sys.executable, place / "environment")
    [wheel] = place.glob("*.whl")
    made = Installed(place / "environment", wheel)
    uv("pip", "install", "--quiet", "--compile-bytecode", "--python", made.python, "--constraints", place / "locked.txt", wheel)
    return made


def lint(linter: Installed, *arguments: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return linter.run(linter.environment / "bin" / "flexspot-lint", "lint", *arguments, folder=folder)


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """A repository with good manifests, one of which has lost its taints."""
    folder = tmp_path / "scratch"
    shutil.copytree(GOOD / "eks", folder / "eks")
    nodes = folder / "eks" / "nodes.yaml"
    text = nodes.read_text()
    taint = "      taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}]\n"
    assert taint in text
    nodes.write_text(text.replace(taint, ""))
    for command in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "--message", "one")):
        git(folder, *command)
    return folder


def test_it_brings_neither_pulumi_nor_the_clouds_and_is_small(linter: Installed) -> None:
    packages = linter.package.parent
    names = {path.name for path in packages.iterdir()}
    size = sum(path.stat().st_size for path in packages.rglob("*") if path.is_file())

    assert not [name for name in names if name.startswith(FOREIGN)]
    assert {name for name in names if name.startswith("flexspot")} == {"flexspot_lint", f"{linter.wheel.name.rsplit('-', 3)[0]}.dist-info"}
    assert size < MOST_MB * 1_000_000
    assert linter.wheel.stat().st_size < 1_000_000


def told(report: str) -> list[dict[str, Any]]:
    return json.loads(report)["findings"]


def test_it_says_of_every_fixture_what_the_checkout_says(linter: Installed, tmp_path: Path) -> None:
    """The data that rules read came along, and no module is missing that only a rare object needs."""
    for number, case in enumerate(cases()):
        held = [each.manifest for each in (case, *case.among)]
        if None not in held:
            # Examples have nothing to do with one another.
            folder = tmp_path / "examples" / str(number)
            folder.mkdir(parents=True)
            (folder / "case.yaml").write_text(yaml.safe_dump_all(held))
    here = subprocess.run(
        [sys.executable, "-m", "flexspot", "lint", tmp_path, "--format", "json"], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    alone = lint(linter, tmp_path, "--format", "json", folder=tmp_path)

    assert alone.returncode == here.returncode == 1, (alone.stderr, here.stderr)
    assert told(alone.stdout) == told(here.stdout)
    assert len({each["rule"] for each in told(alone.stdout)}) > 30


def test_it_reports_in_each_form(linter: Installed, scratch: Path) -> None:
    reports = {form: lint(linter, ".", "--format", form, folder=scratch) for form in ("text", "json", "sarif", "github", "junit")}

    assert {form: done.stderr for form, done in reports.items() if done.returncode != 1} == {}
    assert [form for form, done in reports.items() if "gpu-pool-without-taint" not in done.stdout] == []


def test_its_other_commands_are_there(linter: Installed, scratch: Path) -> None:
    program = linter.environment / "bin" / "flexspot-lint"
    version = linter.run(program, "--version", folder=scratch)
    listed = linter.run(program, "rules", "list", "--format", "json", folder=scratch)

    assert version.stdout.split() == ["flexspot-lint", linter.wheel.name.split("-")[1]]
    assert len(json.loads(listed.stdout)) > 70
