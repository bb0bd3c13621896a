"""Pods of ranks as forks of a process that has loaded torch: a life takes a second, where loading torch takes ten on a small machine.

Such a pod does what flexspot_runtime.launch does: it passes SIGTERM on, and ends with 143 when its ranks were interrupted. And pods as they
really are: the launcher around a command, such as torchrun's.
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
"""How often a run is killed by SIGTERM, and as often by SIGKILL."""

PARTS = int(os.environ.get("PARTS", "1"))
"""Into how many tests the kills of a slow run are divided: a machine of many cores does several side by side."""

KILLS_OF_A_PART = max(1, KILLS // PARTS)

POD_VARIABLE = "TRIAL_POD"
"""By which the processes of a pod are found when it is killed: torchrun's workers are in sessions of their own."""


class Pod(Protocol):
    """Processes that begin and end together."""

    codes: list[int]
    """Of the processes that have ended, and that it has."""

    @property
    def whole(self) -> bool:
        """Whether none has ended, as far as `collect` has seen."""
        ...

    @property
    def ended(self) -> bool:
        """Whether all have."""
        ...

    def signal(self, number: signal.Signals) -> None:
        """A warning, or the end of its machine."""
        ...

    def collect(self) -> None:
        """Sees which have ended."""
        ...


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return str(server.getsockname()[1])


def forked(work: Callable[[], object]) -> int:  # pyrefly: ignore[bad-return] -- the child does not return
    """A child that does it and ends as a program would; its pid."""
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
    """Some ranks of one world; a rank that is all of it is told of none."""

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
    """A launcher around a command, as a container has it; `name` is no other pod's."""

    def __init__(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], output: Path, launcher: Sequence[str] = LAUNCHER
    ) -> None:
        self.name = name
        self.codes: list[int] = []
        with output.open("ab") as told:
            self._launcher = subprocess.Popen(
                [*launcher, *command],
                env={**os.environ, **environment, POD_VARIABLE: name},
                stdout=told,
                stderr=told,
                start_new_session=True,
            )

    @property
    def whole(self) -> bool:
        return not self.codes

    @property
    def ended(self) -> bool:
        return bool(self.codes)

    def signal(self, number: signal.Signals) -> None:
        """SIGKILL to all its processes at once, as its control group goes."""
        if number != signal.SIGKILL:
            self._launcher.send_signal(number)
            return
        # Until none is left: one may start another meanwhile.
        while sum(self._killed(folder) for folder in Path("/proc").glob("[0-9]*")):
            time.sleep(0.01)

    def _killed(self, folder: Path) -> bool:
        told = f"{POD_VARIABLE}={self.name}".encode()
        with contextlib.suppress(OSError):
            if told in (folder / "environ").read_bytes().split(b"\0"):
                os.kill(int(folder.name), signal.SIGKILL)
                return True
        return False

    def collect(self) -> None:
        code = self._launcher.poll()
        if code is not None and not self.codes:
            self.codes.append(code)


def torchrun(pod: int, port: str, program: Sequence[str], *, pods: int = PODS, ranks: int = RANKS) -> list[str]:
    """torchrun's command for one of several pods, as the rendered work has it."""
    options = [f"--nnodes={pods}", f"--nproc-per-node={ranks}", f"--node-rank={pod}", "--master-addr=127.0.0.1", f"--master-port={port}"]
    return [sys.executable, "-m", "torch.distributed.run", *options, *program]


def live(
    train: Callable[[], object], strike: Callable[[Sequence[Pod]], None] | None, *, number: int = PODS, ranks: int = RANKS
) -> list[list[int]]:
    """One life of forked pods; `strike` is called once they have begun. The codes of all ranks, by pod."""
    port = free_port()
    return lived([ForkedPod(each, port, train, number, ranks) for each in range(number)], strike)


def lived(pods: Sequence[Pod], strike: Callable[[Sequence[Pod]], None] | None) -> list[list[int]]:
    """The codes with which the pods end, by pod. What they leave is killed."""
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
