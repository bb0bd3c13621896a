"""Pods of ranks as forks of a process that has loaded torch. A life takes a second; loading torch takes ten on a small machine.

Such a pod does what flexspot_runtime.launch does: it passes SIGTERM on, and ends with 143 when its ranks were interrupted. There are real
pods, too: the launcher around a command, such as torchrun's.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PODS, RANKS = 2, 2
LIFE_SECONDS = 240
"""A life that takes longer hangs: on a busy machine loading torch alone takes a minute."""

KILLS = int(os.environ.get("KILLS", "50"))
"""Number of kills of a run by SIGTERM, and the same number by SIGKILL."""

PARTS = int(os.environ.get("PARTS", "1"))
"""Number of tests among which the kills of a slow run are divided: a machine with many cores runs several at once."""

KILLS_OF_A_PART = max(1, KILLS // PARTS)

POD_VARIABLE = "TRIAL_POD"
"""Variable by which the processes of a pod are found when it is killed: torchrun's workers are in separate sessions."""


class Pod(Protocol):
    """Processes that begin and end together."""

    codes: list[int]
    """Exit codes of its processes that have ended."""

    @property
    def whole(self) -> bool:
        """True if none has ended, as far as `collect` has seen."""
        ...

    @property
    def ended(self) -> bool:
        """True if all have ended."""
        ...

    def signal(self, number: signal.Signals) -> None:
        """Send a warning, or end its machine."""
        ...

    def collect(self) -> None:
        """Collect the processes that have ended."""
        ...


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return str(server.getsockname()[1])


def forked(work: Callable[[], object]) -> int:  # pyrefly: ignore[bad-return] -- the child does not return
    """Run `work` in a child that ends as a program would. Return the child's pid."""
    if pid := os.fork():
        return pid
    code = 1
    try:
        work()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001 -- printed, and the code says it
        if os.environ.get("SHOW"):
            traceback.print_exc()
    finally:
        os._exit(code)


class ForkedPod:
    """Some ranks of one world. A single rank gets no variables of a world."""

    def __init__(self, number: int, port: str, train: Callable[[], object], pods: int, ranks: int) -> None:
        def rank_of(local: int) -> Callable[[], object]:
            def work() -> None:
                if pods * ranks > 1:
                    os.environ.update(
                        RANK=str(number * ranks + local),
                        LOCAL_RANK=str(local),
                        WORLD_SIZE=str(pods * ranks),
                        LOCAL_WORLD_SIZE=str(ranks),
                        MASTER_ADDR="127.0.0.1",
                        MASTER_PORT=port,
                    )
                train()

            return work

        self.ranks = {forked(rank_of(local)): local for local in range(ranks)}
        self.codes: list[int] = []

    @property
    def whole(self) -> bool:
        return not self.codes

    @property
    def ended(self) -> bool:
        return not self.ranks

    def signal(self, number: signal.Signals) -> None:
        for pid in self.ranks:
            os.kill(pid, number)

    def collect(self) -> None:
        for pid in list(self.ranks):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del self.ranks[pid]
                self.codes.append(os.waitstatus_to_exitcode(status))


LAUNCHER = (sys.executable, "-m", "flexspot_runtime.launch", "--grace-seconds", "30", "--")


class LaunchedPod:
    """A launcher around a command, as in a container. `name` is unique."""

    def __init__(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], output: Path, launcher: Sequence[str] = LAUNCHER
    ) -> None:
        self.name = name
        self.codes: list[int] = []
        with output.open("ab") as log:
            self._launcher = subprocess.Popen(
                [*launcher, *command],
                env={**os.environ, **environment, POD_VARIABLE: name},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def whole(self) -> bool:
        return not self.codes

    @property
    def ended(self) -> bool:
        return bool(self.codes)

    def signal(self, number: signal.Signals) -> None:
        """Send the signal; SIGKILL goes to all processes at once, as when a control group ends."""
        if number != signal.SIGKILL:
            self._launcher.send_signal(number)
            return
        # Repeat until none is left: a process may start another in the meantime.
        while sum(self._killed(folder) for folder in Path("/proc").glob("[0-9]*")):
            time.sleep(0.01)

    def _killed(self, folder: Path) -> bool:
        mark = f"{POD_VARIABLE}={self.name}".encode()
        with contextlib.suppress(OSError):
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                os.kill(int(folder.name), signal.SIGKILL)
                return True
        return False

    def collect(self) -> None:
        code = self._launcher.poll()
        if code is not None and not self.codes:
            self.codes.append(code)


def torchrun(pod: int, port: str, program: Sequence[str], *, pods: int = PODS, ranks: int = RANKS) -> list[str]:
    """Return torchrun's command for one of several pods, as rendered pods have it."""
    options = [f"--nnodes={pods}", f"--nproc-per-node={ranks}", f"--node-rank={pod}", "--master-addr=127.0.0.1", f"--master-port={port}"]
    return [sys.executable, "-m", "torch.distributed.run", *options, *program]


def live(
    train: Callable[[], object], strike: Callable[[Sequence[Pod]], None] | None, *, number: int = PODS, ranks: int = RANKS
) -> list[list[int]]:
    """Run one life of forked pods. `strike` is called once they have started. Return the exit codes of all ranks, by pod."""
    port = free_port()
    return lived([ForkedPod(each, port, train, number, ranks) for each in range(number)], strike)


def lived(pods: Sequence[Pod], strike: Callable[[Sequence[Pod]], None] | None) -> list[list[int]]:
    """Return the exit codes of the pods, by pod. Kill processes that are left."""
    end = time.monotonic() + LIFE_SECONDS
    try:
        if strike:
            strike(pods)
        while not all(pod.ended for pod in pods):
            for pod in pods:
                pod.collect()
            if time.monotonic() > end:
                raise TimeoutError(f"a life did not end in {LIFE_SECONDS} s: {[pod.codes for pod in pods]}")
            time.sleep(0.01)
    finally:
        for pod in pods:
            with contextlib.suppress(ProcessLookupError):
                pod.signal(signal.SIGKILL)
    return [pod.codes for pod in pods]
