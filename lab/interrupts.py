"""Ctrl-C and a request to end, held back while something must not be left half-done."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator


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
