"""How many machines to commit to: what each further one would be used, and from which share of the time on it pays.

A node more is worth reserving when the share of hours in which it is used exceeds the reserved price over the price that it replaces.
An on-demand capacity reservation without a commitment has no lower price: it buys that the capacity is there, and saves nothing.

Use is told by the clock-hour, in nodes, of which there may be parts: four nodes for a quarter of an hour are one. So does AWS: a reserved
instance pays for up to 3,600 seconds of a clock-hour, of however many instances (AWS whitepaper "Cost Optimization: Reservation Models",
Usage billing, read 2026-11-27), and a savings plan is a commitment in US dollars an hour. That Google Cloud reckons likewise within an
hour is not verified; where it does not, nodes that come and go within an hour are used less than is told here.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.capacity.values.quantities import as_decimal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal
    from pathlib import Path


class NodeUse:
    """A use of so many nodes, hour by hour. Raises ValueError where there are no hours."""

    def __init__(self, used_nodes: Sequence[int | Fraction]) -> None:
        if not used_nodes:
            raise ValueError("there are no hours of use to decide by")
        self.hours = len(used_nodes)
        self.peak = max(map(math.ceil, used_nodes))
        self.node_hours = sum(map(Fraction, used_nodes), Fraction(0))
        self._used = used_nodes

    @cached_property
    def shares(self) -> tuple[Fraction, ...]:
        """Of the first node, the second and so on up to the peak: in which share of the hours it is used. It never rises."""
        whole = Counter(math.floor(used) for used in self._used)
        parts: defaultdict[int, Fraction] = defaultdict(Fraction)
        for used in self._used:
            # The part of a node belongs to the node above the whole ones.
            parts[math.floor(used) + 1] += Fraction(used) - math.floor(used)
        above, found = 0, list[Fraction]()
        for node in range(self.peak, 0, -1):
            above += whole[node]
            found.append((above + parts[node]) / self.hours)
        return tuple(reversed(found))

    @cached_property
    def _within(self) -> tuple[Fraction, ...]:
        return tuple(accumulate(self.shares, initial=Fraction(0)))

    def within(self, nodes: int) -> Fraction:
        """How many of so many nodes are in use on the average."""
        return self._within[min(nodes, self.peak)]

    def used_share(self, nodes: int) -> Fraction:
        """How much of so many reserved nodes is used: their utilisation, 1 where nothing is reserved."""
        return self.within(nodes) / nodes if nodes else Fraction(1)

    def covered_share(self, nodes: int) -> Fraction:
        """How much of all use so many reserved nodes take: the coverage, 1 where nothing is used."""
        return self.within(nodes) * self.hours / self.node_hours if self.node_hours else Fraction(1)

    def worth_reserving(self, break_even_share: Fraction) -> int:
        """How many nodes are used for more than that share of the time: the number that costs least, the fewest among equals."""
        return sum(share > break_even_share for share in self.shares)

    def usd(self, nodes: int, reserved_usd_per_hour: Decimal, other_usd_per_hour: Decimal, hours: int) -> Decimal:
        """What so many hours of such use cost where so many nodes are reserved, and what is above is paid at the other price."""
        above = self.node_hours / self.hours - self.within(nodes)
        return as_decimal((Fraction(reserved_usd_per_hour) * nodes + Fraction(other_usd_per_hour) * above) * hours)


@dataclass(frozen=True)
class ReservedLevel:
    """So many nodes reserved over the hours looked at. `used_share` is how much of what is reserved was used (1 when nothing is)."""

    nodes: int
    usd: Decimal
    used_share: Fraction


@dataclass(frozen=True)
class ReservationAdvice:
    """`best` is the cheapest level, the fewest nodes among equals; `none` reserves nothing and `peak` everything.

    `break_even_share` is the share of hours a node must be used in to be worth reserving.
    """

    best: ReservedLevel
    none: ReservedLevel
    peak: ReservedLevel
    break_even_share: Fraction


def advise_reservation(
    used_nodes: Sequence[int | Fraction], reserved_usd_per_hour: Decimal, other_usd_per_hour: Decimal
) -> ReservationAdvice:
    """The best level for a use of so many nodes, hour by hour; above it the other price is paid. Raises ValueError for no hours."""
    use = NodeUse(used_nodes)
    break_even = Fraction(reserved_usd_per_hour) / Fraction(other_usd_per_hour)

    def level(nodes: int) -> ReservedLevel:
        usd = use.usd(nodes, reserved_usd_per_hour, other_usd_per_hour, use.hours)
        return ReservedLevel(nodes, usd, use.used_share(nodes))

    return ReservationAdvice(level(use.worth_reserving(break_even)), level(0), level(use.peak), break_even)


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
