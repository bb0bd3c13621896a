"""Official programs on the machine, and whether they fit the SDKs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from flexspot.capacity.catalog.platform import Platform
from flexspot.infra.deployment.prerequisites import PLUGINS, PULUMI, command_line, missing_pieces, plugin_path, sdk_version

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a machine without Pulumi, to which tests add programs."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "home"))
    return tmp_path


def put_command_line(machine: Path, version: str) -> None:
    program = machine / "bin" / "pulumi"
    program.write_text(f"#!/bin/sh\necho {version}\n")
    program.chmod(0o755)


def put_plugin(machine: Path, name: str, version: str) -> None:
    (machine / "home" / "plugins" / f"resource-{name}-v{version}").mkdir(parents=True)


def version(major: int = 0, minor: int = 0, patch: int = 0) -> str:
    return ".".join(str(of_sdk + more) for of_sdk, more in zip(sdk_version(), (major, minor, patch), strict=True))


@pytest.mark.parametrize("cloud,provider", [(Platform.GKE, "gcp"), (Platform.EKS, "aws")])
def test_a_machine_with_the_pieces_of_its_cloud_lacks_nothing(cloud: Platform, provider: str, machine: Path) -> None:
    put_command_line(machine, f"v{version()}")
    for name in (provider, "kubernetes"):
        put_plugin(machine, name, PLUGINS[name])

    assert missing_pieces(command_line(), cloud) == ([], [])


@pytest.mark.parametrize(
    "said,fits", [(version(), True), (version(minor=1), True), (version(patch=-0, minor=-1), False), (version(1), False)]
)
def test_a_command_line_fits_if_it_is_as_new_as_the_sdk(said: str, fits: bool, machine: Path) -> None:  # noqa: FBT001 -- the expectation
    put_command_line(machine, f"v{said}")

    found = command_line()

    assert found is not None
    assert (str(found.version), found.fits) == (said, fits)
    assert any("is version" in each for each in missing_pieces(command_line(), Platform.GKE)[0]) is not fits
    put_command_line(machine, "what?")
    assert (unknown := command_line()) is not None
    assert not unknown.fits


def test_a_plugin_of_another_version_is_named(machine: Path) -> None:
    put_command_line(machine, version())
    put_plugin(machine, "gcp", "9.0.0")
    put_plugin(machine, "kubernetes", PLUGINS["kubernetes"])

    assert missing_pieces(command_line(), Platform.GKE)[0] == [
        f"resource plugin gcp {PLUGINS['gcp']} is neither on PATH nor in {machine / 'home' / 'plugins'} (there: 9.0.0)"
    ]


def test_a_plugin_is_found_as_the_engine_finds_it(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert plugin_path("gcp") is None
    put_plugin(machine, "gcp", PLUGINS["gcp"])
    folder = machine / "home" / "plugins" / f"resource-gcp-v{PLUGINS['gcp']}"
    assert plugin_path("gcp") == folder / "pulumi-resource-gcp"
    folder.with_name(f"{folder.name}.partial").touch()
    assert plugin_path("gcp") is None, "its installation was interrupted"

    ambient = machine / "bin" / "pulumi-resource-gcp"
    ambient.touch(0o755)
    assert plugin_path("gcp") == ambient
    monkeypatch.setenv("PULUMI_IGNORE_AMBIENT_PLUGINS", "true")
    assert plugin_path("gcp") is None


def test_the_plugins_versions_are_those_of_the_installed_sdks() -> None:
    from importlib.metadata import version as installed  # noqa: PLC0415

    assert {name: installed(f"pulumi-{name}") for name in PLUGINS} == PLUGINS
    assert installed("pulumi") == PULUMI
