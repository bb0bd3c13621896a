"""Which project a command works on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from made_projects import project

from capacity.values.errors import ExitCode, ExplainedError
from infra.project import project_here

if TYPE_CHECKING:
    from pathlib import Path


def test_the_project_is_the_nearest_folder_with_a_project_file_as_for_pulumi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outer, inner = project(tmp_path / "outer"), project(tmp_path / "outer" / "inner", name="inner")
    (inner / "src").mkdir()
    monkeypatch.chdir(inner / "src")

    assert project_here().folder == inner
    assert project_here().name == "inner"
    assert project_here(outer).name == "acme"


def test_stack_files_are_where_the_project_file_says_and_else_beside_it(tmp_path: Path) -> None:
    assert project_here(project(tmp_path)).stacks == tmp_path

    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "Pulumi.dev.yaml").touch()
    there = project_here(project(tmp_path, "runtime: python\nstackConfigDir: environments\n"))

    assert there.stack_names() == ["dev"]
    assert there.shown(there.stack_file("dev")) == "environments/Pulumi.dev.yaml"


def test_a_folder_outside_of_any_project_is_told_with_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(ExplainedError, match="is not in a project: neither it nor a folder above it has a Pulumi") as refused:
        project_here(tmp_path)

    assert refused.value.exit_code is ExitCode.BAD_USAGE
    assert "flexspot init" in refused.value.remedy


@pytest.mark.parametrize(
    "text,told",
    [
        pytest.param("name: [", "it cannot be read", id="no YAML"),
        pytest.param("- a\n", "it has no project settings", id="a list"),
        pytest.param("runtime: python\n", "it has no name", id="no name"),
        pytest.param("name: 7\n", "its name is 7 and must be a text", id="a number as name"),
        pytest.param("name: a\nstackConfigDir: [b]\n", "its stackConfigDir is ['b'] and must be a text", id="a list as folder"),
        pytest.param("name: \xff\n", "it cannot be read", id="another encoding"),
    ],
)
def test_a_broken_project_file_is_told(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "Pulumi.yaml").write_bytes(text.encode("latin-1"))

    with pytest.raises(ExplainedError) as refused:
        project_here(tmp_path)

    assert refused.value.problem == f"{tmp_path / 'Pulumi.yaml'} cannot be used: {told}."
    assert refused.value.exit_code is ExitCode.BAD_USAGE


@pytest.mark.parametrize("stack", ["../../secret", "dev/../dev", "*", "", "."])
def test_the_name_of_a_stack_is_no_path(tmp_path: Path, stack: str) -> None:
    there = project_here(project(tmp_path / "one"))
    (tmp_path / "one" / "Pulumi.dev.yaml").touch()
    (tmp_path / "Pulumi.secret.yaml").touch()

    with pytest.raises(ExplainedError, match="there is no stack"):
        there.stack_file(stack)


def test_where_stacks_would_be_is_named_as_a_person_says_it(tmp_path: Path) -> None:
    with pytest.raises(ExplainedError) as refused:
        project_here(project(tmp_path)).stack_file("dev")

    assert refused.value.remedy.endswith("in the project's folder.")
