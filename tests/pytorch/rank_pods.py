"""Pods of ranks as forks of a process that has loaded torch: a life takes a second, where loading torch takes ten on a small machine.

A pod does what flexspot_runtime.launch does: it passes SIGTERM on, and ends with 143 when its ranks were interrupted.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PODS, RANKS = 2, 2
LIFE_SECONDS = 90
"""A life that takes longer hangs."""


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


class Pod:
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

    def signal(self, number: signal.Signals) -> None:
        for pid in self.ranks:
            os.kill(pid, number)

    def collect(self) -> None:
        for pid in list(self.ranks):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del self.ranks[pid]
                self.codes.append(os.waitstatus_to_exitcode(status))


def live(
    train: Callable[[], object], strike: Callable[[list[Pod]], None] | None, *, number: int = PODS, ranks: int = RANKS
) -> list[list[int]]:
    """One life of all pods; `strike` is called once they have begun. The codes of all ranks, by pod."""
    port = free_port()
    pods = [Pod(each, port, train, number, ranks) for each in range(number)]
    end = time.monotonic() + LIFE_SECONDS
    if strike:
        strike(pods)
    try:
        while any(pod.ranks for pod in pods):
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
