"""Folders of `flexspot init`: existing files are untouched, and an unusable folder is reported before anything is written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from new_projects import GKE, init
from typer.testing import CliRunner

from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.infra.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("there", ["Pulumi.yaml", ".github/workflows/flexspot.yaml"])
def test_nothing_is_written_if_a_file_of_the_project_exists(there: str, tmp_path: Path) -> None:
    (tmp_path / there).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / there).write_text("mine\n")

    with pytest.raises(ExplainedError, match=f"already contains {re.escape(there)}. Nothing was written"):
        init(tmp_path, *GKE)

    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / there]
    assert (tmp_path / there).read_text() == "mine\n"


def test_a_symbolic_link_to_another_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme" / "__main__.py").symlink_to(tmp_path / "elsewhere.py")

    with pytest.raises(ExplainedError, match=r"already contains __main__\.py"):
        init(tmp_path / "acme", *GKE)

    assert not (tmp_path / "elsewhere.py").exists()


def test_an_existing_readme_and_gitignore_are_kept_and_reported(tmp_path: Path) -> None:
    for name in ("README.md", ".gitignore"):
        (tmp_path / name).write_text("mine\n")

    output = init(tmp_path, *GKE)

    assert "README.md existed before and is unchanged." in output
    assert ".gitignore existed before and is unchanged." in output
    assert {(tmp_path / name).read_text() for name in ("README.md", ".gitignore")} == {"mine\n"}
    assert (tmp_path / "stacks" / "Pulumi.prod.yaml").is_file()


@pytest.mark.parametrize("blocking", ["acme", "acme/.github/workflows"])
def test_a_file_in_place_of_a_folder_is_reported_and_nothing_is_written(blocking: str, tmp_path: Path) -> None:
    """Earlier versions wrote half of a project before they met the file."""
    (tmp_path / blocking).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / blocking).write_text("a file\n")

    with pytest.raises(ExplainedError, match=f"{re.escape(blocking)} is not a folder, but files of the project must be in it. Nothing was"):
        init(tmp_path / "acme", *GKE)

    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / blocking]


def test_a_circular_symbolic_link_is_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / "acme").symlink_to(tmp_path / "acme")

    with pytest.raises(ExplainedError, match="acme is not a folder"):
        init(tmp_path / "acme", *GKE)


def test_a_folder_with_a_name_that_is_too_long_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ExplainedError, match="cannot be written: File name too long"):
        init(tmp_path / ("a" * 300), *GKE)


@pytest.mark.parametrize("command", [("init", ".", *GKE), ("settings", "check", "-s", "dev"), ("rules", "test")])
def test_a_deleted_current_folder_is_reported(command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()

    with pytest.raises(ExplainedError, match="the current folder cannot be read") as refused:
        CliRunner().invoke(app, list(command), catch_exceptions=False)

    assert refused.value.exit_code is ExitCode.BAD_USAGE
