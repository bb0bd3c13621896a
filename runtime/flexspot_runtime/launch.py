"""`python -m flexspot_runtime.launch --ranks 4 -- python train.py`: the first process of a container, which passes SIGTERM on.

Kubernetes sends SIGTERM to a container's first process alone. A shell there does not pass it on, and the trainer learns nothing until it is
killed. This starts the ranks of one machine with RANK, LOCAL_RANK and WORLD_SIZE, passes the signal on to each, collects orphans as
a first process must, and ends with a code that no Job takes for success unless every rank succeeded.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from flexspot_runtime.interruption import INTERRUPTED_EXIT_CODE, Interruption
from flexspot_runtime.schedule import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    from collections.abc import Sequence

_LOG = logging.getLogger("flexspot_runtime")

_SIGNALLED = 128


class Ranks:
    """The processes of one machine. When one fails the others are told to stop, and killed when the grace period is over."""

    def __init__(self, command: Sequence[str], ranks: int) -> None:
        if ranks < 1 or not command:
            raise ValueError("a command and at least one rank are needed")
        self._processes = {
            process.pid: process
            for process in (
                subprocess.Popen(command, env={**os.environ, **_variables(rank, ranks)})  # noqa: S603 -- what the user asked for
                for rank in range(ranks)
            )
        }
        self.codes: list[int] = []
        """Of those that ended, in the order of their ends; 128 and the signal's number for those that a signal ended."""

    def tell(self, number: signal.Signals) -> None:
        """Sends a signal to each that still runs."""
        for pid in self._processes:
            # Not Popen.send_signal, which would take the end of one that has ended, and its code with it.
            os.kill(pid, number)

    def collect(self) -> bool:
        """Takes the ends of all that have ended, orphans that came to the first process included; whether a rank still runs."""
        while self._processes:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self._processes.clear()
                break
            if pid == 0:
                break
            if process := self._processes.pop(pid, None):
                code = os.waitstatus_to_exitcode(status)
                process.returncode = code
                self.codes.append(code if code >= 0 else _SIGNALLED - code)
        return bool(self._processes)


def run(command: Sequence[str], ranks: int, grace_seconds: float | None = None, clock: Clock = SYSTEM_CLOCK) -> int:
    """Runs until all ranks have ended; the exit code: 0 when every rank's is, else 143 after a warning, else the first that is not 0."""
    with Interruption(grace_seconds, clock=clock) as interruption:
        started = Ranks(command, ranks)
        told_at: float | None = None
        killed = False
        while started.collect():
            if told_at is None and (interruption.noticed or any(started.codes)):
                started.tell(signal.SIGTERM)
                told_at = clock.monotonic()
            elif told_at is not None and not killed and clock.monotonic() > told_at + interruption.grace_seconds:
                _LOG.error("ranks that did not stop in %.0f s are killed", interruption.grace_seconds)
                started.tell(signal.SIGKILL)
                killed = True
            clock.sleep(0.02)
        failed = [code for code in started.codes if code != 0]
        if failed and interruption.noticed:
            return INTERRUPTED_EXIT_CODE
        return failed[0] if failed else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m flexspot_runtime.launch", description="Starts ranks and passes SIGTERM on to them.")
    parser.add_argument("--ranks", type=int, default=1, help="processes on this machine (default: 1)")
    parser.add_argument(
        "--grace-seconds", type=float, default=None, help="from SIGTERM to the kill (default: $FLEXSPOT_GRACE_SECONDS or 15)"
    )
    parser.add_argument("command", nargs="+", help="what to run, after --")
    chosen = parser.parse_args(arguments)
    return run(chosen.command, chosen.ranks, chosen.grace_seconds)


def _variables(rank: int, ranks: int) -> dict[str, str]:
    return {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks)}


if __name__ == "__main__":
    sys.exit(main())
