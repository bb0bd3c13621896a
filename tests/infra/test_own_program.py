"""The program of a project, which declares its stacks."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING

import pulumi
import pytest
from user_projects import project

from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.infra.declaring import program
from flexspot.infra.declaring.program import program_of, settled
from flexspot.infra.project import project_here

if TYPE_CHECKING:
    from pathlib import Path

WRITES = """\
import os, declared_beside
with open('ran', 'a') as file:
    print(__name__, os.path.basename(os.getcwd()), declared_beside.TIMES, file=file)
"""
BESIDE = "import builtins\nbuiltins.times_beside = TIMES = getattr(builtins, 'times_beside', 0) + 1\n"


def programmed(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "__main__.py").write_text(WRITES)
    (folder / "declared_beside.py").write_text(BESIDE)
    return folder


@pytest.fixture(autouse=True)
def times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.times_beside", 0, raising=False)


@pytest.mark.parametrize("written", ["runtime: python\n", "runtime:\n  name: python\n  options: {virtualenv: .venv}\n"])
def test_a_projects_program_runs_as_in_a_language_host_and_reloads_its_modules(tmp_path: Path, written: str) -> None:
    """A preview and the `up` after it both load the modules, so that resources declared at import are declared both times."""
    folder = programmed(project(tmp_path / "acme", written))
    before, here = list(sys.path), os.getcwd()  # noqa: PTH109 -- as the process has it

    run = program_of(project_here(folder))
    run()
    run()

    assert (folder / "ran").read_text() == "__main__ acme 1\n__main__ acme 2\n"
    assert (sys.path, os.getcwd()) == (before, here)  # noqa: PTH109
    assert "declared_beside" not in sys.modules


@pytest.mark.parametrize("main", ["program", "program/__main__.py", "./program/"])
def test_a_program_in_another_folder_is_found_as_pulumi_finds_it(tmp_path: Path, main: str) -> None:
    folder = project(tmp_path / "acme", f"runtime: python\nmain: {main}\n")
    programmed(folder / "program")

    program_of(project_here(folder))()

    assert (folder / "program" / "ran").read_text() == "__main__ program 1\n"


def test_modules_installed_below_the_project_stay_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The project's folder has a Python environment, with Flexspot itself in it."""
    folder = programmed(project(tmp_path / "acme"))
    monkeypatch.setattr(sys, "prefix", str(folder))

    program_of(project_here(folder))()

    assert sys.modules.pop("declared_beside").TIMES == 1


def test_a_program_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = programmed(project(tmp_path / "acme"))
    (folder / "__main__.py").write_text("import declared_beside\nraise KeyError('mine')\n")
    before = list(sys.path)

    with pytest.raises(KeyError, match="mine"):
        program_of(project_here(folder))()

    assert sys.path == before
    assert "declared_beside" not in sys.modules


def test_a_project_without_a_program_has_the_platform_of_its_stack_file(tmp_path: Path) -> None:
    assert program_of(project_here(project(tmp_path))) is program.main


@pytest.mark.parametrize("runtime", ["runtime: yaml\n", "runtime: {name: nodejs}\n", "description: none\n"])
def test_a_program_in_another_language_is_refused_with_the_way_to_run_it(tmp_path: Path, runtime: str) -> None:
    with pytest.raises(ExplainedError, match="runs only programs in Python") as refused:
        program_of(project_here(project(tmp_path, runtime)))

    assert refused.value.exit_code is ExitCode.BAD_USAGE
    assert "pulumi preview" in refused.value.remedy
    assert "None" not in refused.value.problem


def test_flexspot_itself_is_never_part_of_the_program() -> None:
    assert program._is_installed(program._OWN / "infra" / "flexspot" / "infra" / "declaring" / "gke.py")  # noqa: SLF001 -- a checkout depends on it


def test_a_program_ends_when_all_outputs_are_known_including_later_ones() -> None:
    known: list[str] = []

    async def later(name: str) -> str:
        await asyncio.sleep(0)
        return name

    def program() -> None:
        first = pulumi.Output.from_input(later("first"))
        first.apply(lambda name: pulumi.Output.from_input(later(f"after {name}")).apply(known.append))

    asyncio.run(settled(program)())

    assert known == ["after first"]


def test_an_output_that_fails_ends_the_wait_and_is_left_to_the_sdk() -> None:
    async def forever() -> None:
        await asyncio.Event().wait()

    async def failing() -> None:
        raise KeyError("mine")

    async def run() -> None:
        outputs = [pulumi.Output.from_input(each()) for each in (forever, failing)]
        await asyncio.wait_for(settled(lambda: None)(), timeout=60)
        # As the SDK does, which reports it.
        with pytest.raises(KeyError, match="mine"):
            await outputs[1].future()

    asyncio.run(run())
