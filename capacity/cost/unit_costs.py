"""What a unit of work costs, what a pool saves while nobody uses it, and how much of a steady use to reserve.

A node more is worth reserving when the share of hours in which it is used exceeds the reserved price over the price that it replaces.
An on-demand capacity reservation without a commitment has no lower price: it buys that the capacity is there, and saves nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from capacity.catalog.price_book import HOURS_OF_A_MONTH
from capacity.values.errors import ExitCode, ExplainedError
from capacity.values.quantities import HOURS_OF_A_YEAR, SECONDS_OF_AN_HOUR, exact, saved_percent, usd_of_hours

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from capacity.cost.spot_arithmetic import SpotRun


_REQUESTS = 1000


def usd_per_gpu_hour(usd_per_hour: Decimal, gpus_per_node: int) -> Decimal:
    """The price of one GPU of a node, its share of the node's CPUs and memory included."""
    return usd_per_hour / gpus_per_node


def usd_per_year(usd_per_hour: Decimal, nodes: int = 1) -> Decimal:
    """Around the clock, for a year of 365 days."""
    return usd_of_hours(usd_per_hour, HOURS_OF_A_YEAR, nodes)


def usd_per_epoch(gpu_hour_usd: Decimal, gpus: int, hours_per_epoch: float) -> Decimal:
    """One pass over the training data on so many GPUs."""
    return usd_of_hours(gpu_hour_usd, hours_per_epoch, gpus)


def usd_per_experiment(gpu_hour_usd: Decimal, gpus: int, hours: float) -> Decimal:
    """One experiment, from its start to its end."""
    return usd_of_hours(gpu_hour_usd, hours, gpus)


def gpu_hours_per_1000_requests(requests_per_gpu_second: float) -> float:
    """From measured throughput: what one GPU serves in a second, at the load it is meant for."""
    return _REQUESTS / requests_per_gpu_second / SECONDS_OF_AN_HOUR


def usd_per_1000_requests(gpu_hour_usd: Decimal, gpu_hours_per_1000: float, busy_share: float = 1.0) -> Decimal:
    """Of a service whose GPUs are busy for that share of the time that is paid for: replicas wait for traffic at full price."""
    return gpu_hour_usd * exact(gpu_hours_per_1000) / exact(busy_share)


def usd_per_idle_hour(gpu_hour_usd: Decimal, idle_gpus: int) -> Decimal:
    """What GPUs that nobody uses cost in an hour."""
    return gpu_hour_usd * idle_gpus


@dataclass(frozen=True)
class SpendingPart:
    """A part of what is spent. `useful_share` is the share of it that does work; the rest is idle, over-provisioned or done twice."""

    name: str
    usd: Decimal
    useful_share: Decimal

    @property
    def useful_usd(self) -> Decimal:
        """What of it does work."""
        return self.usd * self.useful_share


def wasted_usd(parts: list[SpendingPart]) -> Decimal:
    """What of all parts does no work."""
    return sum((part.usd - part.useful_usd for part in parts), start=Decimal(0))


_HOURS_OF_A_DAY = 24
_MINUTES_OF_AN_HOUR = 60


@dataclass(frozen=True)
class DevelopmentUse:
    """How a pool is used. `active_hours_per_day` in `sessions_per_day` stretches; a node takes `start_minutes` until it is useful and goes
    `idle_minutes` after its last work, both billed. Raises ValueError for what does not fit into a day.
    """

    nodes: int
    active_hours_per_day: float
    sessions_per_day: float = 1.0
    start_minutes: float = 0.0
    idle_minutes: float = 0.0

    def __post_init__(self) -> None:
        if self.nodes < 1 or min(self.sessions_per_day, self.start_minutes, self.idle_minutes) < 0:
            raise ValueError(f"nodes must be 1 or more, sessions and minutes not negative: {self}")
        if not 0 <= self.active_hours_per_day <= _HOURS_OF_A_DAY:
            raise ValueError(f"active_hours_per_day is {self.active_hours_per_day}; it is between 0 and 24")

    @property
    def billed_hours_per_day(self) -> float:
        """Of one node; never more than the day has, where sessions are so close that the node stays."""
        around = self.sessions_per_day * (self.start_minutes + self.idle_minutes) / _MINUTES_OF_AN_HOUR
        return min(_HOURS_OF_A_DAY, self.active_hours_per_day + around)


@dataclass(frozen=True)
class Savings:
    """A month of a pool, always on and scaled to zero. `hours` are those billed of one node."""

    always_on_usd: Decimal
    hours: float
    usd: Decimal

    @property
    def saved_usd(self) -> Decimal:
        """How much less."""
        return self.always_on_usd - self.usd

    @property
    def saved_percent(self) -> Decimal:
        """How much less, in percent."""
        return saved_percent(self.usd, self.always_on_usd)


def scaled_to_zero(
    use: DevelopmentUse,
    on_demand_usd_per_hour: Decimal,
    usd_per_hour: Decimal | None = None,
    *,
    billed_days: float | None = None,
    spot: SpotRun | None = None,
) -> Savings:
    """A month of the pool at `usd_per_hour` (on-demand when not given) against the same nodes on on-demand around the clock.

    Both months have 730 hours, unless `billed_days` gives the scaled pool another number of days: then two different months are compared.
    `spot` lengthens the billed hours by the overhead of interruptions.
    """
    days = HOURS_OF_A_MONTH / _HOURS_OF_A_DAY if billed_days is None else billed_days
    hours = use.billed_hours_per_day * days * (1 + (spot.overhead_share if spot else 0.0))
    price = on_demand_usd_per_hour if usd_per_hour is None else usd_per_hour
    always_on = usd_of_hours(on_demand_usd_per_hour, HOURS_OF_A_MONTH, use.nodes)
    return Savings(always_on, hours, usd_of_hours(price, hours, use.nodes))


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
