"""What long work of the lab tells: what it is doing, why it cannot go on; and Ctrl-C, held back while something must not be half-done."""

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
    """Told of each step by name. A step begins once, may advance, and ends once; steps may overlap."""

    def begin(self, step: str, doing: str) -> None:
        """`step` starts; `doing` says what, in a few words."""

    def advance(self, step: str, doing: str, done: int, total: int) -> None:
        """`done` of `total` units of `step` are finished; a total of 0 is one that is not known yet."""

    def end(self, step: str, outcome: str) -> None:
        """`step` is over; `outcome` says how, in a few words."""


class Silence:
    """Progress that nobody watches."""

    def begin(self, step: str, doing: str) -> None:
        """See Progress."""

    def advance(self, step: str, doing: str, done: int, total: int) -> None:
        """See Progress."""

    def end(self, step: str, outcome: str) -> None:
        """See Progress."""


@contextmanager
def locked(path: Path, progress: Progress, step: str, doing: str) -> Generator[bool]:
    """Hold a lock that other processes take too; yields whether `step` had to begin, which waits for them."""
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
    """Holds back Ctrl-C and a request to end until the block is done; then the one that came takes its effect.

    A handler that raises between a program's start and the note of it would leave a program that nobody ends.
    """
    if threading.current_thread() is not threading.main_thread():
        # Signals are handled in the main thread alone, so none can cut in here.
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
