"""Progress and errors of long operations of the lab, and critical sections that delay Ctrl-C."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from filelock import FileLock, Timeout

from flexspot.capacity.values.errors import ExitCode, ExplainedError

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path


__all__ = ["ExitCode", "LabError"]


class LabError(ExplainedError):
    """The lab cannot do this."""


class Progress(Protocol):
    """Receives the progress of each step by name. A step begins once, may advance, and ends once; steps may overlap."""

    def begin(self, step: str, doing: str) -> None:
        """Begin `step`; `doing` describes it in a few words."""

    def advance(self, step: str, doing: str, done: int, total: int) -> None:
        """Report that `done` of `total` units of `step` are finished; a total of 0 is not known yet."""

    def end(self, step: str, outcome: str) -> None:
        """End `step`; `outcome` describes the result in a few words."""


class Silence:
    """Progress that is ignored."""

    def begin(self, step: str, doing: str) -> None:
        """See Progress."""

    def advance(self, step: str, doing: str, done: int, total: int) -> None:
        """See Progress."""

    def end(self, step: str, outcome: str) -> None:
        """See Progress."""


@contextmanager
def locked(path: Path, progress: Progress, step: str, doing: str) -> Generator[bool]:
    """Hold a lock that other processes take, too. If it must wait, `step` begins. Yield whether it had to wait."""
    lock = FileLock(path)
    waited = False
    try:
        lock.acquire(timeout=0)
    except Timeout:
        progress.begin(step, doing)
        lock.acquire()
        waited = True
    try:
        yield waited
    finally:
        lock.release()


@contextmanager
def interrupts_wait() -> Generator[None]:
    """Delay SIGINT and SIGTERM until the block is done. Then the first one that came takes effect.

    A handler that raises between a program's start and the record of it would leave a running program that is never stopped.
    """
    if threading.current_thread() is not threading.main_thread():
        # Only the main thread handles signals, so none can interrupt here.
        yield
        return
    came: list[int] = []
    before = {number: signal.signal(number, lambda each, _frame: came.append(each)) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for number in came[:1]:
        signal.raise_signal(number)
