"""`python -m flexspot_runtime.launch --ranks 8 -- python train.py`: the first process of a container, which passes SIGTERM on.

Kubernetes sends SIGTERM only to a container's first process. A shell there does not pass it on, and the trainer notices nothing until it is
killed. The launcher starts the ranks of one machine, in a world of NNODES machines if there are several. It passes the signal on to each
rank and collects orphans, as a first process must. Its exit code is 0 only if every rank succeeded.

Around another launcher, `python -m flexspot_runtime.launch -- torchrun ... train.py`, it does the same and repairs what torchrun loses:
torchrun exits with 1 whatever its workers exit with, and kills them 30 s after SIGTERM. See docs/guides/training.md.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from flexspot_runtime.interruption import INTERRUPTED_EXIT_CODE, MARKS_VARIABLE, Interruption, all_were_interrupted
from flexspot_runtime.schedule import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LOG = logging.getLogger("flexspot_runtime")

_SIGNALLED = 128

ADDRESS_VARIABLE, PORT_VARIABLE = "MASTER_ADDR", "MASTER_PORT"
_USUAL_PORT = "29500"
"""The default of torchrun."""

TORCHRUN_WAIT_VARIABLE = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"
"""Whole seconds between SIGTERM and SIGKILL of torchrun's workers: torch/distributed/launcher/api.py of 2.15, by default 30."""

_TORCHRUN_ENDS_SECONDS = 2.0
"""Seconds before its own deadline at which torchrun kills its workers. They run in separate sessions and would outlive it."""


@dataclass(frozen=True)
class World:
    """The machines that train together, and this machine's rank among them. Each runs the same number of ranks."""

    nodes: int = 1
    node_rank: int = 0
    address: str = "127.0.0.1"
    port: str = _USUAL_PORT

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> World:
        """Return the world that NNODES, NODE_RANK, MASTER_ADDR and MASTER_PORT describe, as rendered pods set them. Default: one machine.

        Raises ValueError for values that are not numbers, and for several machines without the address of the first.
        """
        nodes, rank = _number(environment, "NNODES", 1), _number(environment, "NODE_RANK", 0)
        if not 0 <= rank < nodes:
            raise ValueError(f"NODE_RANK is {rank} and NNODES is {nodes}; ranks of machines go from 0 to NNODES - 1")
        address = environment.get(ADDRESS_VARIABLE, "")
        if nodes > 1 and not address:
            raise ValueError(
                f"NNODES is {nodes} and {ADDRESS_VARIABLE} is not set; set it to the address at which every node reaches the first one"
            )
        return cls(nodes, rank, address or cls.address, environment.get(PORT_VARIABLE) or _USUAL_PORT)

    def variables(self, local_rank: int, ranks: int) -> dict[str, str]:
        """Return the variables of one process, by the names that torch, Lightning, accelerate and others read."""
        return {
            "RANK": str(self.node_rank * ranks + local_rank),
            "LOCAL_RANK": str(local_rank),
            "GROUP_RANK": str(self.node_rank),
            "WORLD_SIZE": str(self.nodes * ranks),
            "LOCAL_WORLD_SIZE": str(ranks),
            ADDRESS_VARIABLE: self.address,
            PORT_VARIABLE: self.port,
        }


class Ranks:
    """The processes of one machine. When one fails, the others are stopped, and killed when the grace period is over."""

    def __init__(self, command: Sequence[str], ranks: int, environment: Mapping[str, str] = os.environ) -> None:
        if ranks < 1 or not command:
            raise ValueError("a command and at least one rank are needed")
        world = World.of(environment)
        self._processes = {
            process.pid: process
            for process in (
                subprocess.Popen(command, env={**environment, **world.variables(rank, ranks)})  # noqa: S603 -- the user's command
                for rank in range(ranks)
            )
        }
        self.codes: list[int] = []
        """Exit codes of the processes that ended, in the order of their ends; 128 plus the signal's number for those that a signal ended.
        """

    def tell(self, number: signal.Signals) -> None:
        """Send a signal to each running process."""
        for pid in self._processes:
            # Not Popen.send_signal, which would reap a process that has ended, and lose its code.
            os.kill(pid, number)

    def collect(self) -> bool:
        """Collect all processes that have ended, including orphans that the first process inherits. Return whether a rank still runs."""
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
    """Run until all ranks have ended. Return the exit code.

    0 if every rank exits with 0. Otherwise 143 after a warning, or if all ranks of this machine ended as interrupted because another
    machine was. Otherwise the code of the first rank that crashed: the others were stopped or killed only as a consequence.
    """
    with Interruption(grace_seconds, clock=clock) as interruption, tempfile.TemporaryDirectory(prefix="flexspot-") as marks:
        wait = {TORCHRUN_WAIT_VARIABLE: str(max(1, int(interruption.grace_seconds - _TORCHRUN_ENDS_SECONDS)))}
        started = Ranks(command, ranks, {**wait, **os.environ, MARKS_VARIABLE: marks})
        stopped_at: float | None = None
        killed = False
        while started.collect():
            if stopped_at is None and (interruption.noticed or any(started.codes)):
                started.tell(signal.SIGTERM)
                stopped_at = clock.monotonic()
            elif stopped_at is not None and not killed and clock.monotonic() > stopped_at + interruption.grace_seconds:
                _LOG.error("ranks that did not stop in %.0f s are killed", interruption.grace_seconds)
                started.tell(signal.SIGKILL)
                killed = True
            clock.sleep(0.02)
        failed = [code for code in started.codes if code != 0]
        if failed and (interruption.noticed or all_were_interrupted(Path(marks))):
            return INTERRUPTED_EXIT_CODE
        of_others = {INTERRUPTED_EXIT_CODE, *((_SIGNALLED + signal.SIGKILL,) if killed else ())}
        crashed = [code for code in failed if code not in of_others]
        return next(iter([*crashed, *failed]), 0)


def parser_of(module: str, description: str) -> argparse.ArgumentParser:
    """Return the parser of a module that runs a command and passes SIGTERM on to it."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument(
        "--grace-seconds", type=float, default=None, help="from SIGTERM to the kill (default: $FLEXSPOT_GRACE_SECONDS or 15)"
    )
    parser.add_argument("command", nargs="+", help="what to run, after --")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Return the exit code."""
    parser = parser_of("flexspot_runtime.launch", "Starts ranks and passes SIGTERM on to them.")
    parser.add_argument("--ranks", type=int, default=1, help="processes on this machine; 1 if the command is a launcher (default: 1)")
    chosen = parser.parse_args(arguments)
    return run(chosen.command, chosen.ranks, chosen.grace_seconds)


def _number(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name) or str(default)
    if not text.isdecimal():
        raise ValueError(f"{name} is {text!r}; it must be a whole number from 0")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
