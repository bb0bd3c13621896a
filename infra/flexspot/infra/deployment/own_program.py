"""The program of a project, run as a language host runs it: `flexspot up` deploys what plain `pulumi up` does."""

from __future__ import annotations

import asyncio
import runpy
import sys
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pulumi.runtime.settings import SETTINGS

from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.infra.declaring import program
from flexspot.infra.project import FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

    from flexspot.infra.project import Project

_ENTRY = "__main__.py"
_OWN = Path(__file__).resolve().parents[4]


def program_of(project: Project) -> Callable[[], None]:
    """What declares the resources of a project: its `__main__.py`, or the platform of the stack file alone where it has none.

    Raises ExplainedError for a project in another language: its program runs under `pulumi` itself.
    """
    runtime = project.content.get("runtime")
    language = runtime.get("name") if isinstance(runtime, dict) else runtime
    if language != "python":
        what = f"the program of {project.folder / FILE} is in {language}" if language else f"{project.folder / FILE} names no runtime"
        first = "" if language else "write `runtime: python` there, or "
        raise ExplainedError(
            f"{what}, and this command runs programs in Python.",
            f"{first}run `pulumi preview` and `pulumi up`, with --policy-pack $(flexspot rules pack).",
            exit_code=ExitCode.BAD_USAGE,
        )
    named = project.folder / str(project.content.get("main") or "")
    entry = named if named.is_file() else named / _ENTRY
    if not entry.is_file():
        return program.main

    def run() -> None:
        with _as_a_language_host_does(entry.parent):
            runpy.run_path(str(entry), run_name="__main__")

    return run


def settled(program: Callable[[], None]) -> Callable[[], Coroutine[Any, Any, None]]:
    """Return `program`, followed by one wait for all outputs that it has left pending.

    The SDK itself waits anew for all of them whenever one is known, which takes time with the square of their number: a tenth of the CPU
    of a preview of prod-eks (3.259.0, 2026-11-28). An output that fails ends the wait, and the SDK reports it.
    """
    settings: Any = SETTINGS

    async def run() -> None:
        program()
        while True:
            with settings.lock:
                outputs = list(settings.outputs)
            pending = [each for each in outputs if not each.done()]
            if not pending or any(each.done() and (each.cancelled() or each.exception()) for each in outputs):
                return
            await asyncio.wait(pending, return_when=asyncio.FIRST_EXCEPTION)

    return run


@contextmanager
def _as_a_language_host_does(folder: Path) -> Generator[None]:
    """Starts in the program's folder and imports from there first, and imports its modules anew the next time, in which they declare."""
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        with chdir(folder):
            yield
    finally:
        sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file is not None and Path(file).is_relative_to(folder) and not _is_installed(Path(file)):
                del sys.modules[name]


def _is_installed(file: Path) -> bool:
    """Whether a module is of the environment, which may lie in the project's folder, or of Flexspot itself."""
    return file.is_relative_to(sys.prefix) or file.resolve().is_relative_to(_OWN)
