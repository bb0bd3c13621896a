"""How much of a use to reserve: paid around the clock at a lower price, used or not.

A node more is worth reserving when the share of hours in which it is used exceeds the reserved price over the price that it replaces.
An on-demand capacity reservation without a commitment has no lower price: it buys that the capacity is there, and saves nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from capacity.values.errors import ExitCode, ExplainedError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True)
class ReservedLevel:
    """So many nodes reserved over the hours looked at. `used_share` is how much of what is reserved was used (1 when nothing is)."""

    nodes: int
    usd: Decimal
    used_share: Decimal


@dataclass(frozen=True)
class ReservationAdvice:
    """`best` is the cheapest level, the fewest nodes among equals; `none` reserves nothing and `peak` everything.

    `break_even_share` is the share of hours a node must be used in to be worth reserving.
    """

    best: ReservedLevel
    none: ReservedLevel
    peak: ReservedLevel
    break_even_share: Decimal


def advise_reservation(used_nodes: Sequence[int], reserved_usd_per_hour: Decimal, other_usd_per_hour: Decimal) -> ReservationAdvice:
    """The best level for a use of so many nodes, hour by hour; above it the other price is paid. Raises ValueError for no hours."""
    if not used_nodes:
        raise ValueError("there are no hours of use to decide by")
    peak = max(used_nodes)
    levels = [_level(each, used_nodes, reserved_usd_per_hour, other_usd_per_hour) for each in _candidates(used_nodes)]
    best = min(levels, key=lambda level: (level.usd, level.nodes))
    none = _level(0, used_nodes, reserved_usd_per_hour, other_usd_per_hour)
    everything = _level(peak, used_nodes, reserved_usd_per_hour, other_usd_per_hour)
    return ReservationAdvice(best, none, everything, reserved_usd_per_hour / other_usd_per_hour)


def _candidates(used_nodes: Sequence[int]) -> list[int]:
    # Between two numbers that occur the cost is a straight line, so its least is at one of them.
    return sorted({0, *used_nodes})


def _level(nodes: int, used_nodes: Sequence[int], reserved: Decimal, other: Decimal) -> ReservedLevel:
    hours_at = Counter(used_nodes)
    above = sum(max(0, used - nodes) * hours for used, hours in hours_at.items())
    within = sum(min(used, nodes) * hours for used, hours in hours_at.items())
    usd = reserved * nodes * len(used_nodes) + other * above
    return ReservedLevel(nodes, usd, Decimal(within) / (nodes * len(used_nodes)) if nodes else Decimal(1))


def read_use(path: Path) -> list[int]:
    """The nodes in use, hour by hour: a whole number on each line, empty lines left out. Raises ExplainedError for anything else."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ExplainedError(f"{path} cannot be read: {error}.", "name a text file.", exit_code=ExitCode.BAD_USAGE) from error
    used: list[int] = []
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if text and not (text.isascii() and text.isdigit()):
            raise ExplainedError(
                f"{path}, line {number}: {text[:40]!r} is not a number of nodes.",
                "give one whole number for each hour, each on a line of its own.",
                exit_code=ExitCode.BAD_USAGE,
            )
        if text:
            used.append(int(text))
    if not used:
        raise ExplainedError(f"{path} has no hours in it.", "give one whole number for each hour.", exit_code=ExitCode.BAD_USAGE)
    return used
