"""The `flexspot` command in a separate process with its libraries preloaded, since loading takes longer than most commands."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import pkgutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from flexspot import components

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext

CHECKOUT = Path(__file__).resolve().parents[1]
SOURCE_ROOTS = ("capacity", "components", "policies", "infra", "lab")

# The server preloads no module of the project's command line: each process loads `infra` and `lab` itself, from its own checkout.
# Preloading the components loads the clouds' SDKs, which would take seconds of CPU in each deployment.
LOADED = (
    "boto3",
    "flexspot.capacity.chargeback.report",
    "flexspot.capacity.cost.plan_cost",
    "flexspot.capacity.plan.build",
    "flexspot.capacity.workloads.requests",
    *(each.name for each in pkgutil.walk_packages(components.__path__, f"{components.__name__}.") if not each.ispkg),
    "google.auth",
    "jsonschema",
    "flexspot.policies.admission.forms",
    "flexspot.policies.core",
    "flexspot.policies.lint.run",
    "flexspot.policies.rules",
    "pulumi.automation",
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
    """Run `flexspot ARGUMENTS` of `checkout` in `folder`, with `given` as its standard input, and return its result.

    `environment` is the whole environment; default: that of the tests. Raises TimeoutError, with the place where it hangs, after `timeout`
    seconds.
    """
    command = ["flexspot", *map(str, arguments)]
    with tempfile.TemporaryDirectory() as streams:
        places = [Path(streams) / name for name in ("in", "out", "err")]
        places[0].write_bytes(given)
        values = dict(os.environ) if environment is None else environment
        process = _CONTEXT.Process(
            target=_run, args=(command, str(checkout), str(folder or Path.cwd()), values, [str(each) for each in places])
        )
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            assert process.pid is not None
            listed = _abort(process.pid)
            process.join()
            stdout, stderr = (each.read_text(errors="replace") for each in places[1:])
            raise TimeoutError(f"{' '.join(command)} did not end within {timeout} s\n{listed}\n{stdout[-3000:]}\n{stderr[-20_000:]}")
        return subprocess.CompletedProcess(command, process.exitcode, places[1].read_text(), places[2].read_text())


def _abort(pid: int) -> str:
    """End a command and its child processes, and return a list of them. Python processes first print the stacks of their threads."""
    family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    listed = "\n".join(f"{each.pid} {each.status()} {' '.join(each.cmdline())[:200]}" for each in family)
    for each in family:
        each.send_signal(signal.SIGABRT)
    return listed


def _run(command: list[str], checkout: str, folder: str, environment: dict[str, str], streams: list[str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for number, (stream, flags) in enumerate(zip(streams, (os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_CREAT), strict=True)):
        os.dup2(os.open(stream, flags), number)
    sys.stdin = os.fdopen(0, encoding="utf-8")
    sys.stdout, sys.stderr = (os.fdopen(number, "w", encoding="utf-8") for number in (1, 2))
    faulthandler.enable()
    sys.argv = command
    sys.path[:0] = [str(Path(checkout, each)) for each in ("", *SOURCE_ROOTS)]

    from flexspot.infra.cli.app import main  # noqa: PLC0415

    main()
