"""Records of Spot availability for tests and benchmarks: made up, the same for the same seed."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

from capacity.cost.replay import Trace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def made_trace(  # noqa: PLR0913 -- a record has that many sides
    seed: int, *, ticks: int, gap_seconds: int = 300, up_hours: float = 4.0, down_hours: float = 1.0, nodes: int = 1
) -> Trace:
    """Capacity that comes and goes at random: up and down for so long on average, exponentially, all nodes at once."""
    chance = random.Random(seed)  # noqa: S311 -- repeatable, not secret
    available: list[int] = []
    up = chance.random() < up_hours / (up_hours + down_hours)
    clock = 0.0
    while len(available) < ticks:
        clock += chance.expovariate(1 / (up_hours if up else down_hours)) * 3600 / gap_seconds
        available += [nodes if up else 0] * (min(ticks, round(clock)) - len(available))
        up = not up
    return Trace(f"made-{seed}", gap_seconds, tuple(available))


MEAN_HOURS = ((8, 1), (2, 2), (0.5, 3), (1.8, 2.5), (0.7, 3.5), (10, 0.5), (0.4, 0.4), (4, 12), (20, 6))
"""How long capacity is there and then away, on average: from nearly always to nearly never, in long pieces and in short ones."""


def _lognormal(chance: random.Random, mean: float, hour: float) -> float:
    del hour
    return mean * math.exp(chance.gauss(0, 1.6) - 1.28)


def _pareto(chance: random.Random, mean: float, hour: float) -> float:
    del hour
    return mean * chance.paretovariate(1.5) / 3


def _by_the_hour_of_day(chance: random.Random, mean: float, hour: float) -> float:
    return chance.expovariate(1 / (mean * (1 + 0.8 * math.sin(hour / 24 * math.tau))))


LENGTHS: dict[str, Callable[[random.Random, float, float], float]] = {
    "memoryless": lambda chance, mean, _hour: chance.expovariate(1 / mean),
    "lognormal": _lognormal,
    "pareto": _pareto,
    "by the hour of day": _by_the_hour_of_day,
}
"""Ways in which stretches of capacity and outages may be distributed; what records have is none of these alone."""


def made_records(seed: int, *, ticks: int = 3000) -> list[Trace]:
    """Records of all those ways and mean lengths, with gaps of 200 to 600 seconds; other ones for each seed."""
    found: list[Trace] = []
    for kind, length in LENGTHS.items():
        for number, (up_hours, down_hours) in enumerate(MEAN_HOURS):
            chance = random.Random(f"{seed} {kind} {number}")  # noqa: S311 -- repeatable, not secret
            gap, clock, up = chance.choice((200, 300, 600)), 0.0, chance.random() < up_hours / (up_hours + down_hours)
            available: list[int] = []
            while len(available) < ticks:
                clock += length(chance, up_hours if up else down_hours, clock * gap / 3600) * 3600 / gap
                available += [int(up)] * (min(ticks, round(clock)) - len(available))
                up = not up
            found.append(Trace(f"{kind}, {up_hours} h and {down_hours} h, {seed}", gap, tuple(available)))
    return found


def write_trace(trace: Trace, path: Path) -> None:
    """In the public format."""
    data = ", ".join(map(str, trace.available))
    path.write_text(f'{{"metadata": {{"gap_seconds": {trace.gap_seconds}}}, "data": [{data}]}}', encoding="utf-8")
