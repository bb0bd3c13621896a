"""A clock that advances when a test sets it, or when code sleeps."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class ManualClock:
    seconds: float = 1000.0
    date: float = 1_800_000_000.0
    slept: list[float] = field(default_factory=list[float])

    def monotonic(self) -> float:
        return self.seconds

    def wall(self) -> float:
        return self.date

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds
