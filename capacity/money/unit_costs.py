"""What a unit of work costs: an hour of a GPU, an epoch, a thousand requests, an experiment, an idle hour."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from capacity.money.usd import HOURS_OF_A_YEAR, SECONDS_OF_AN_HOUR, exact, usd_of_hours

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
