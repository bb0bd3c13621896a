"""The project that a command works on, and placeholders for the secrets of its stack files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml
from user_projects import project

from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.infra.project import STAND_IN, project_here, without_secrets

if TYPE_CHECKING:
    from pathlib import Path


def test_the_project_is_the_nearest_folder_with_a_project_file_as_for_pulumi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outer, inner = project(tmp_path / "outer"), project(tmp_path / "outer" / "inner", name="inner")
    (inner / "src").mkdir()
    monkeypatch.chdir(inner / "src")

    assert project_here().folder == inner
    assert project_here().name == "inner"
    assert project_here(outer).name == "acme"


def test_stack_files_are_in_the_configured_folder_or_next_to_the_project_file(tmp_path: Path) -> None:
    assert project_here(project(tmp_path)).stacks == tmp_path

    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "Pulumi.dev.yaml").touch()
    there = project_here(project(tmp_path, "runtime: python\nstackConfigDir: environments\n"))

    assert there.stack_names() == ["dev"]
    assert there.shown(there.stack_file("dev")) == "environments/Pulumi.dev.yaml"


def test_a_folder_outside_of_any_project_is_refused_with_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(ExplainedError, match="is not in a project: neither it nor a folder above it has a Pulumi") as refused:
        project_here(tmp_path)

    assert refused.value.exit_code is ExitCode.BAD_USAGE
    assert "flexspot init" in refused.value.remedy


@pytest.mark.parametrize(
    "text,problem",
    [
        pytest.param("name: [", "it cannot be read", id="no YAML"),
        pytest.param("- a\n", "it has no project settings", id="a list"),
        pytest.param("runtime: python\n", "it has no name", id="no name"),
        pytest.param("name: 7\n", "its name must be a string, not 7", id="a number as name"),
        pytest.param("name: a\nstackConfigDir: [b]\n", "its stackConfigDir must be a string, not ['b']", id="a list as folder"),
        pytest.param("name: \xff\n", "it cannot be read", id="another encoding"),
    ],
)
def test_a_broken_project_file_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "Pulumi.yaml").write_bytes(text.encode("latin-1"))

    with pytest.raises(ExplainedError) as refused:
        project_here(tmp_path)

    assert refused.value.problem == f"{tmp_path / 'Pulumi.yaml'} cannot be used: {problem}."
    assert refused.value.exit_code is ExitCode.BAD_USAGE


@pytest.mark.parametrize("stack", ["../../secret", "dev/../dev", "*", "", "."])
def test_a_path_as_stack_name_is_refused(tmp_path: Path, stack: str) -> None:
    there = project_here(project(tmp_path / "one"))
    (tmp_path / "one" / "Pulumi.dev.yaml").touch()
    (tmp_path / "Pulumi.secret.yaml").touch()

    with pytest.raises(ExplainedError, match="there is no stack"):
        there.stack_file(stack)


def test_the_folder_of_stacks_is_shown_relative_to_the_project(tmp_path: Path) -> None:
    with pytest.raises(ExplainedError) as refused:
        project_here(project(tmp_path)).stack_file("dev")

    assert refused.value.remedy.startswith("name a stack in the project's folder; ")


CIPHER = "v1:3Ac1Cx3n5xRk7l0J:bDE9t0b5cUYcXw8mOQ0l4yCUnzM="
FILE = f"""
secretsprovider: awskms://alias/platform
encryptedkey: {CIPHER}
encryptionsalt: v1:8C8zBb4Bd+s=:{CIPHER}
config:
  trial:plain: a word
  trial:token: {{secure: "{CIPHER}"}}
  trial:nested: [{{key: {{secure: "{CIPHER}"}}, day: "2026-11-26"}}]
  trial:named: {{secure: "no cipher", beside: 1}}
"""


def test_each_secret_has_a_placeholder_and_nothing_needs_decryption() -> None:
    written, secret = without_secrets(FILE)

    assert secret == ("trial:token", "trial:nested")
    assert CIPHER not in written
    assert yaml.safe_load(written) == {
        "config": {
            "trial:plain": "a word",
            "trial:token": STAND_IN,
            "trial:nested": [{"key": STAND_IN, "day": "2026-11-26"}],
            "trial:named": {"secure": "no cipher", "beside": 1},
        }
    }


@pytest.mark.parametrize("written", ["", "config:\n  trial:plain: 1  # as it is\n", "config:\n"])
def test_a_file_without_secrets_is_unchanged(written: str) -> None:
    assert without_secrets(written) == (written, ())
