"""`flexspot doctor`: what works on a machine, what is missing for the rest, and how to get it."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from flexspot.infra.cli.app import app
from flexspot.infra.deployment.prerequisites import PLUGINS, sdk_version
from flexspot.infra.project import project_here
from flexspot.lab.tools.build import families, family_named

if TYPE_CHECKING:
    from pathlib import Path

    from typer.testing import Result


@dataclass(frozen=True)
class Machine:
    """A machine with only Python and the programs that a test adds, started in a project's folder."""

    project: Path
    programs: Path
    cache: Path
    plugins: Path

    def has_program(self, name: str, script: str) -> None:
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def has_go(self, version: str, toolchain: str = "auto") -> None:
        self.has_program("go", f"echo go{version}; echo {toolchain}")

    def has_pulumi(self, version: str) -> None:
        self.has_program("pulumi", f"echo v{version}")

    def has_built(self, *names: str) -> None:
        for name in names:
            family_named(name).built_in(self.cache).mkdir(parents=True)

    def has_plugins(self, *names: str) -> None:
        for name in names:
            (self.plugins / f"resource-{name}-v{PLUGINS[name]}").mkdir(parents=True)

    def doctor(self, *options: str) -> Result:
        return CliRunner().invoke(app, ["doctor", *options])

    def found(self, purpose: str, *options: str) -> dict[str, Any]:
        report: list[dict[str, Any]] = json.loads(self.doctor("--format", "json", *options).stdout)
        return next(each for each in report if each["for"] == purpose)

    def piece(self, purpose: str, name: str) -> dict[str, str]:
        return next(each for each in self.found(purpose)["pieces"] if each["piece"] == name)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    folders = {name: tmp_path / name for name in ("project", "programs", "cache", "pulumi")}
    for each in folders.values():
        each.mkdir()
    stacks = project_here().stacks
    for name in ("dev-gke", "dev-eks"):
        shutil.copy(stacks / f"Pulumi.{name}.yaml", folders["project"])
    (folders["project"] / "Pulumi.yaml").write_text("name: own\nruntime: python\n")
    monkeypatch.setenv("PATH", str(folders["programs"]))
    monkeypatch.setenv("PULUMI_HOME", str(folders["pulumi"]))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("GOTOOLCHAIN", raising=False)
    monkeypatch.setattr("flexspot.lab.tools.build.tool_cache", lambda: folders["cache"] / "tools")
    monkeypatch.chdir(folders["project"])
    return Machine(folders["project"], folders["programs"], folders["cache"] / "tools", folders["pulumi"] / "plugins")


def test_with_only_python_stacks_are_checked_and_not_previewed(machine: Machine) -> None:
    assert machine.found("settings")["state"] == "here"
    engine = machine.piece("preview", "pulumi")
    assert engine["state"] == "missing"
    assert "must be built, but `go` is not on PATH" in engine["found"]
    assert engine["remedy"].startswith("install Go 1.26")


def test_with_go_missing_programs_are_built_when_needed(machine: Machine) -> None:
    machine.has_go("1.26.6")

    assert machine.found("preview")["state"] == "built when needed"
    lab = machine.piece("lab", "programs of the lab")
    assert lab["state"] == "built when needed"
    assert [each.name for each in families() if f"{each.name} {each.version}" not in lab["found"]] == []
    assert lab["remedy"] == "flexspot lab tools"


def full(_folder: Path) -> int:
    return 2**30


@pytest.mark.parametrize(
    "version,toolchain,state",
    [("1.21.0", "auto", "built when needed"), ("1.21.0", "local", "missing"), ("1.100.0", "local", "built when needed")],
)
def test_an_older_go_suffices_if_it_may_fetch_a_later_one(version: str, toolchain: str, state: str, machine: Machine) -> None:
    machine.has_go(version, toolchain)

    assert machine.found("lab")["state"] == state


def test_programs_built_before_need_no_go(machine: Machine) -> None:
    machine.has_built(*(each.name for each in families()))

    assert machine.found("lab")["state"] == "here"
    assert machine.found("preview")["state"] == "here"


def test_a_full_disk_is_reported_before_a_build_fails(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.has_go("1.26.6")
    monkeypatch.setattr("flexspot.infra.cli.stacks.doctor.room_in", full)

    engine = machine.piece("preview", "pulumi")
    assert engine["state"] == "missing"
    assert "only 1.0 GiB free" in engine["found"]


def test_the_official_command_line_is_used_instead_of_a_build(machine: Machine) -> None:
    machine.has_pulumi(str(sdk_version()))

    engine = machine.piece("preview", "pulumi")
    assert engine["state"] == "here"
    assert "nothing is built for a preview" in engine["found"]


def test_an_official_command_line_that_is_too_old_is_reported_with_the_alternative(machine: Machine) -> None:
    machine.has_pulumi("3.100.0")
    machine.has_go("1.26.6")

    engine = machine.piece("preview", "pulumi")
    assert engine["state"] == "built when needed"
    assert f"is 3.100.0, but the SDK needs {sdk_version()}" in engine["found"]


def test_missing_official_pieces_of_a_cloud_are_listed_with_their_commands(machine: Machine) -> None:
    machine.has_plugins("kubernetes")

    missing = [(each["found"], each["remedy"]) for each in machine.found("eks")["pieces"] if each["state"] == "missing"]
    assert [remedy for _, remedy in missing] == [
        f"install Pulumi {sdk_version()} or later from https://www.pulumi.com/docs/install",
        f"pulumi plugin install resource aws {PLUGINS['aws']}",
    ]


def test_credentials_are_checked_only_on_request(machine: Machine) -> None:
    machine.has_pulumi(str(sdk_version()))
    machine.has_plugins("gcp", "aws", "kubernetes")

    gke = machine.found("gke")
    assert gke["state"] == "not asked"
    assert [(each["piece"], each["remedy"]) for each in gke["pieces"] if each["state"] != "here"] == [
        ("credentials of dev-gke", "flexspot doctor --ask")
    ]


def test_an_unusable_stack_is_reported_with_the_command_for_details(machine: Machine) -> None:
    path = machine.project / "Pulumi.dev-gke.yaml"
    path.write_text(path.read_text().replace("  region:", "  regoin:", 1))

    piece = machine.piece("settings", "stack dev-gke")
    assert piece["state"] == "missing"
    assert "region" in piece["found"]
    assert piece["remedy"] == "flexspot settings check -s dev-gke"


def test_outside_a_project_the_next_step_is_to_create_one(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    piece = machine.piece("settings", "project")
    assert piece["state"] == "missing"
    assert "flexspot init" in piece["remedy"]


def test_the_exit_code_says_whether_requested_purposes_work(machine: Machine) -> None:
    whole = machine.doctor()

    assert [machine.doctor("--for", purpose).exit_code for purpose in ("settings", "preview")] == [0, 1]
    assert whole.exit_code == 0
    assert "✓ settings: check stacks, lint manifests, estimate costs" in whole.output
    assert "✗ gke: deploy stacks of GKE" in whole.output


def test_doctor_changes_no_file(machine: Machine) -> None:
    machine.has_go("1.26.6")
    above = machine.project.parent
    before = {path: path.stat().st_mtime_ns for path in above.rglob("*")}

    machine.doctor()

    assert {path: path.stat().st_mtime_ns for path in above.rglob("*")} == before
