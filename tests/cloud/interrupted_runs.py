"""One interrupted run: a command line that is ended at a random moment, by Ctrl-C or by killing it, alone or with all that it started."""

from __future__ import annotations

import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_PATIENCE_SECONDS = 180.0


class Blow(StrEnum):
    """How a run is ended: as by Ctrl-C; its own process killed, which leaves the engine alone; or all of its processes killed."""

    INTERRUPT = "SIGINT"
    KILL = "SIGKILL"
    KILL_ALL = "SIGKILL to all"


@dataclass(frozen=True)
class Ended:
    """What an interrupted run had come to: after how many seconds, how it ended, and the last line that it printed."""

    seconds: float
    returncode: int
    last_line: str
    in_time: bool


@dataclass(frozen=True)
class Run:
    """A command to start: where, with which environment, and the file for what it prints."""

    command: list[str]
    folder: Path
    environment: Mapping[str, str]
    log: Path


def run_and_interrupt(run: Run, after: float, blow: Blow) -> Ended:
    """Starts a command, ends it `after` seconds, and returns once nothing of it runs any more.

    `in_time` is False where it was done before.
    """
    begun = time.monotonic()
    with run.log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(  # a group of its own: a real Ctrl-C at the terminal of the tests is not for it
            run.command,
            cwd=run.folder,
            env=dict(run.environment),
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        with suppress(subprocess.TimeoutExpired):
            process.wait(after)
            return Ended(time.monotonic() - begun, process.returncode, _last_line(run.log), in_time=False)
        seconds, last = time.monotonic() - begun, _last_line(run.log)
        family = _strike(process.pid, blow)
        returncode = process.wait(_PATIENCE_SECONDS)
    _wait_until_gone(family)
    return Ended(seconds, returncode, last, in_time=True)


def _strike(pid: int, blow: Blow) -> list[psutil.Process]:
    """Ends the process, and returns all that it had started."""
    main = psutil.Process(pid)
    family = main.children(recursive=True)
    if blow is Blow.INTERRUPT:
        main.send_signal(signal.SIGINT)
        return family
    main.kill()
    if blow is Blow.KILL_ALL:
        for each in family:
            with suppress(psutil.NoSuchProcess):
                each.kill()
    return family


def _wait_until_gone(family: list[psutil.Process]) -> None:
    """An engine that lost its program ends by itself, but finishes first what it is about."""
    _, left = psutil.wait_procs(family, timeout=_PATIENCE_SECONDS)
    if left:
        raise TimeoutError(f"still running {_PATIENCE_SECONDS:g} s after the program was ended: {left}")


def _last_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
    return next((line for line in reversed(lines) if line and not line.startswith("@")), "")
