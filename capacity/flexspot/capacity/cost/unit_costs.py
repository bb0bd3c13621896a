"""What a unit of work costs, and what a pool saves while nobody uses it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.price_book import HOURS_OF_A_MONTH
from flexspot.capacity.values.quantities import SECONDS_OF_AN_HOUR, exact, saved_percent, usd_of_hours

if TYPE_CHECKING:
    from decimal import Decimal

_REQUESTS = 1000


def gpu_hours_per_1000_requests(requests_per_gpu_second: float) -> float:
    """From measured throughput: what one GPU serves in a second, at the load it is meant for."""
    return _REQUESTS / requests_per_gpu_second / SECONDS_OF_AN_HOUR


def usd_per_1000_requests(gpu_hour_usd: Decimal, gpu_hours_per_1000: float, busy_share: float = 1.0) -> Decimal:
    """Of a service whose GPUs are busy for that share of the time that is paid for: replicas wait for traffic at full price."""
    return gpu_hour_usd * exact(gpu_hours_per_1000) / exact(busy_share)


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


def scaled_to_zero(use: DevelopmentUse, on_demand_usd_per_hour: Decimal, usd_per_hour: Decimal | None = None) -> Savings:
    """A month of the pool at `usd_per_hour` (on-demand when not given) against the same nodes on on-demand around the clock."""
    hours = use.billed_hours_per_day * HOURS_OF_A_MONTH / _HOURS_OF_A_DAY
    price = on_demand_usd_per_hour if usd_per_hour is None else usd_per_hour
    always_on = usd_of_hours(on_demand_usd_per_hour, HOURS_OF_A_MONTH, use.nodes)
    return Savings(always_on, hours, usd_of_hours(price, hours, use.nodes))
