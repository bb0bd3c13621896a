"""Time, injected wherever it is read, so that tests decide what time it is."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """What the library asks a clock. Ages and intervals are of `monotonic` alone: `wall` may jump and is only ever shown to people."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary start; never less than before."""
        ...

    def wall(self) -> float:
        """Seconds since 1970 as the machine believes them."""
        ...

    def sleep(self, seconds: float) -> None:
        """Waits."""
        ...


class SystemClock:
    """The machine's clocks."""

    def monotonic(self) -> float:
        """See Clock."""
        return time.monotonic()

    def wall(self) -> float:
        """See Clock."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """See Clock."""
        time.sleep(seconds)


SYSTEM_CLOCK = SystemClock()
