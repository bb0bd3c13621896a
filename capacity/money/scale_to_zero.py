"""What a development pool saves when its nodes go away while nobody uses them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity.money.usd import saved_percent, usd_of_hours
from capacity.price_book import HOURS_OF_A_MONTH

if TYPE_CHECKING:
    from decimal import Decimal

    from capacity.money.spot_arithmetic import SpotRun

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
