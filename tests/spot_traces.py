"""Synthetic records of Spot availability for tests and benchmarks, the same for the same seed."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from flexspot.capacity.cost.replay import Trace

if TYPE_CHECKING:
    from pathlib import Path


def made_trace(  # noqa: PLR0913 -- the properties of a record
    seed: int, *, ticks: int, gap_seconds: int = 300, up_hours: float = 4.0, down_hours: float = 1.0, nodes: int = 1
) -> Trace:
    """Return random capacity: all nodes up or down at once, for exponential times with these means."""
    chance = random.Random(seed)  # noqa: S311 -- repeatable, not secret
    available: list[int] = []
    up = chance.random() < up_hours / (up_hours + down_hours)
    clock = 0.0
    while len(available) < ticks:
        clock += chance.expovariate(1 / (up_hours if up else down_hours)) * 3600 / gap_seconds
        available += [nodes if up else 0] * (min(ticks, round(clock)) - len(available))
        up = not up
    return Trace(f"made-{seed}", gap_seconds, tuple(available))


def write_trace(trace: Trace, path: Path) -> None:
    """Write the trace in the public format."""
    data = ", ".join(map(str, trace.available))
    path.write_text(f'{{"metadata": {{"gap_seconds": {trace.gap_seconds}}}, "data": [{data}]}}', encoding="utf-8")
