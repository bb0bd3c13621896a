"""`pip install flexspot` without extras: no Pulumi and no cloud SDK, and all commands that need neither."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from installed_fixtures import CHECKOUT, Installed, uv
from rule_fixtures import cases

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.engine

MOST_MB = yaml.safe_load((CHECKOUT / "tests" / "contract" / "ceilings.yaml").read_text())["product"]["base_install_mb"]
EXTRAS = ("pulumi", "grpc", "cryptography", "boto", "google", "psutil", "pyarrow", "cel_expr")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "acme"
    shutil.copytree(CHECKOUT / "stacks", folder / "stacks")
    (folder / "Pulumi.yaml").write_text("name: acme-ai\nruntime: python\nstackConfigDir: stacks\n")
    return folder


def test_the_package_has_neither_pulumi_nor_a_clouds_sdk_and_is_small(base: Installed) -> None:
    """The size is that of the wheels. Compiled modules may add about half of it."""
    packages = base.package.parent
    names = {path.name for path in packages.iterdir()}
    # Pip and setuptools are part of the environment.
    own = [path for path in packages.rglob("*") if path.is_file() and path.relative_to(packages).parts[0].partition("-")[0] != "pip"]

    assert [name for name in names if name.lower().startswith(EXTRAS)] == []
    assert sum(path.stat().st_size for path in own if path.suffix != ".pyc") < MOST_MB * 1_000_000


def test_commands_that_deploy_nothing_work_without_extras(base: Installed, project: Path) -> None:
    commands = (
        "--help",
        "--version",
        "settings check -s prod-eks",
        "settings needs -s prod-gke",
        "settings schema",
        "versions list -s dev-eks",
        "lint .",
        "rules list",
        "rules pack",
        "advise job --help",
        "chargeback report --help",
        "audit --help",
        "run --help",
        "jobs list --help",
        "render checkpointed-job -s dev-eks --team research --class training --name one --image registry.example.com/a:1.0 --gpus 1",
    )
    for command in commands:
        ended = base.flexspot(*command.split(), folder=project)
        assert ended.returncode == 0, f"{command}: {ended.stdout}{ended.stderr}"


def test_a_command_that_needs_an_extra_shows_how_to_install_it(base: Installed, project: Path) -> None:
    for command in ("preview -s local --offline", "up -s prod-eks", "destroy -s prod-gke", "lab start", "stacks", "review"):
        ended = base.flexspot(*command.split(), folder=project)
        assert ended.returncode == 2, command
        assert "run `pip install 'flexspot[platform]'` (`flexspot[gke]` and `flexspot[eks]` also include it)" in ended.stderr, command
        assert "Traceback" not in ended.stderr


def test_one_clouds_extra_lacks_the_others_sdk_and_a_stack_of_the_other_names_its_extra(eks_alone: Installed, project: Path) -> None:
    names = {path.name for path in eks_alone.package.parent.iterdir()}
    assert ("pulumi_aws" in names, "pulumi_gcp" in names) == (True, False)

    own = eks_alone.flexspot("preview", "-s", "dev-eks", "--offline", folder=project)
    other = eks_alone.flexspot("preview", "-s", "dev-gke", "--offline", folder=project)

    assert own.returncode == 0, own.stdout + own.stderr
    assert other.returncode == 2
    assert "run `pip install 'flexspot[gke]'`" in other.stderr


def test_doctor_lists_missing_pieces_for_each_purpose(base: Installed, project: Path) -> None:
    diagnoses = json.loads(base.flexspot("doctor", "--format", "json", folder=project).stdout)

    remedies = {each["for"]: " ".join(str(piece.get("remedy")) for piece in each["pieces"]) for each in diagnoses}
    assert "flexspot[platform]" in remedies["preview"]
    assert "flexspot[gke]" in remedies["gke"]
    assert "flexspot[eks]" in remedies["eks"]


def test_a_project_can_be_created(base: Installed, tmp_path: Path) -> None:
    made = base.flexspot("init", "--cloud", "local", "--owner", "ml", "--team", "research", folder=tmp_path)

    assert made.returncode == 0, made.stderr
    assert "flexspot[platform]" in (tmp_path / "requirements.txt").read_text()


def found(report: str) -> list[dict[str, Any]]:
    return json.loads(report)["findings"]


def test_lint_of_every_fixture_is_the_same_as_in_the_checkout(base: Installed, tmp_path: Path) -> None:
    """The wheel contains the rules' data and modules that only rare objects need."""
    for number, case in enumerate(cases()):
        held = [each.manifest for each in (case, *case.among)]
        if None not in held:
            # Examples are independent of each other.
            folder = tmp_path / "examples" / str(number)
            folder.mkdir(parents=True)
            (folder / "case.yaml").write_text(yaml.safe_dump_all(held))
    here = subprocess.run(
        [sys.executable, "-m", "flexspot", "lint", tmp_path, "--format", "json"], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    alone = base.flexspot("lint", tmp_path, "--format", "json", folder=tmp_path)

    assert alone.returncode == here.returncode == 1, (alone.stderr, here.stderr)
    assert found(alone.stdout) == found(here.stdout)
    assert len({each["rule"] for each in found(alone.stdout)}) > 30


def fake_wheel(folder: Path, name: str, version: str, requires: tuple[str, ...]) -> None:
    """Write the wheel of a release that no index has."""
    module = name.replace("-", "_")
    metadata = "\n".join(
        ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {each}" for each in requires)]
    )
    files = {"METADATA": metadata, "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any", "RECORD": ""}
    with zipfile.ZipFile(folder / f"{module}-{version}-py3-none-any.whl", "w") as made:
        for each, text in files.items():
            made.writestr(f"{module}-{version}.dist-info/{each}", f"{text}\n")


@pytest.mark.parametrize(
    "library,newer,refused",
    [("pulumi-aws", "7.99.0", "8.0.0"), ("pulumi-gcp", "10.99.0", "11.0.0"), ("pulumi-kubernetes", "4.99.0", "5.0.0")],
)
def test_the_wheel_resolves_with_a_newer_sdk_of_the_same_major_version(
    wheel: Path, library: str, newer: str, refused: str, tmp_path: Path
) -> None:
    for version in (newer, refused):
        fake_wheel(tmp_path, library, version, ("pulumi>=3.165.0,<4.0.0",))
    extra = "gke" if library == "pulumi-gcp" else "eks"
    (tmp_path / "requirements.in").write_text(f"flexspot[{extra}] @ {wheel.as_uri()}\n{library}>={newer}\n")

    resolved = uv("pip", "compile", "--quiet", "--find-links", tmp_path, "requirements.in", folder=tmp_path)

    assert re.search(rf"^{library}=={newer}$", resolved, re.MULTILINE)


@pytest.mark.nightly(tested_by="test_the_wheel_resolves_with_a_newer_sdk_of_the_same_major_version")
def test_a_preview_runs_with_a_newer_release_of_pulumis_sdk(eks_alone: Installed, project: Path, tmp_path: Path) -> None:
    """3.272.0 was the newest on 2026-11-29; the lock file has 3.259.0."""
    newer = Installed(tmp_path / "environment", eks_alone.wheel)
    shutil.copytree(eks_alone.environment, newer.environment, symlinks=True)
    uv("pip", "install", "--quiet", "--python", newer.python, "pulumi==3.272.0")

    previewed = newer.run(newer.python, "-m", "flexspot", "preview", "-s", "dev-eks", "--offline", folder=project)

    assert previewed.returncode == 0, previewed.stdout + previewed.stderr
