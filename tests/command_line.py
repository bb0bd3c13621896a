"""The `flexspot` command in a process of its own that begins with its libraries loaded: loading them takes longer than most commands."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext

CHECKOUT = Path(__file__).resolve().parents[1]

# What is loaded is no part of the project's own command line: each process loads `infra` and `lab` itself, from the checkout it is told.
LOADED = (
    "capacity.chargeback.report",
    "capacity.cost.plan_cost",
    "capacity.plan.build",
    "capacity.workloads.requests",
    "components.kueue.controller",
    "jsonschema",
    "policies.admission.forms",
    "policies.core",
    "policies.lint.run",
    "policies.rules",
    "pulumi",
    "pulumi_kubernetes.apps.v1",
    "pulumi_kubernetes.core.v1",
    "rich.progress",
    "rich.table",
    "typer",
)

_CONTEXT: ForkServerContext = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(list(LOADED))


def flexspot(
    *arguments: str | Path,
    checkout: Path = CHECKOUT,
    folder: Path | None = None,
    given: bytes = b"",
    environment: dict[str, str] | None = None,
    timeout: float = 300,
) -> subprocess.CompletedProcess[str]:
    """What `flexspot ARGUMENTS` of `checkout` prints and ends with, called in `folder`, with `given` as its standard input."""
    command = ["flexspot", *map(str, arguments)]
    with tempfile.TemporaryDirectory() as streams:
        places = [Path(streams) / name for name in ("in", "out", "err")]
        places[0].write_bytes(given)
        values = {**os.environ, **(environment or {})}
        process = _CONTEXT.Process(
            target=_run, args=(command, str(checkout), str(folder or Path.cwd()), values, [str(each) for each in places])
        )
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(command, timeout, places[1].read_bytes(), places[2].read_bytes())
        return subprocess.CompletedProcess(command, process.exitcode, places[1].read_text(), places[2].read_text())


def _run(command: list[str], checkout: str, folder: str, environment: dict[str, str], streams: list[str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for number, (stream, flags) in enumerate(zip(streams, (os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_CREAT), strict=True)):
        os.dup2(os.open(stream, flags), number)
    sys.stdin = os.fdopen(0, encoding="utf-8")
    sys.stdout, sys.stderr = (os.fdopen(number, "w", encoding="utf-8") for number in (1, 2))
    sys.argv = command
    sys.path.insert(0, checkout)

    from infra.cli.app import main  # noqa: PLC0415

    main()
