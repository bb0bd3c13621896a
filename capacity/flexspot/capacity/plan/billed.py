"""Costs of a plan in addition to its pools' machines, the owners of the pools, and the budget, as plain frozen data."""

from __future__ import annotations

from dataclasses import dataclass

from flexspot.capacity.catalog.price_book import ServiceItem  # noqa: TC001 -- flexspot.capacity.cost reads these annotations at run time
from flexspot.capacity.settings.platform import OnUnknownPrices


@dataclass(frozen=True)
class BilledAmount:
    """An amount of something that is billed by the month, such as 200 GiB of a disk."""

    item: ServiceItem
    amount: int
    """Amount in the unit of the item's measure."""


@dataclass(frozen=True)
class PoolDisks:
    """Disks of each node of a pool."""

    pool: str
    charges: tuple[BilledAmount, ...]
    surge_nodes: int = 0
    """Additional nodes that an upgrade of the pool creates at once."""


@dataclass(frozen=True)
class SystemNodes:
    """The nodes of the controllers, on demand, each with its disk."""

    machine: str
    min_nodes: int
    max_nodes: int
    charges: tuple[BilledAmount, ...]
    surge_nodes: int = 0
    """Additional nodes that an upgrade creates at once."""


@dataclass(frozen=True)
class OtherNodes:
    """Ceilings of the nodes without GPUs that the autoscaler creates. Both ceilings apply together. Each node has a disk."""

    max_vcpu: int
    max_memory_gib: int
    charges: tuple[BilledAmount, ...]


@dataclass(frozen=True)
class AutoProvisionedNodes:
    """Limits of the nodes that GKE's node auto-provisioning may create on demand instead of declared nodes.

    The limits are those of the whole cluster. Each node has a disk.
    """

    max_vcpu: int
    max_memory_gib: int
    gpus: tuple[tuple[str, int], ...]
    """GPUs by accelerator."""
    charges: tuple[BilledAmount, ...]


@dataclass(frozen=True)
class ServicePart:
    """A service that is billed for as long as it exists."""

    name: str
    item: ServiceItem
    least: int
    """Amount that is always billed."""
    most: int
    """The most that is ever billed."""


@dataclass(frozen=True)
class PoolShare:
    """The GPUs of a pool that belong to a team: its guaranteed share, and those that its unqueued classes may use."""

    team: str
    pool: str
    gpus: int


@dataclass(frozen=True)
class SpendingPlan:
    """Costs of the platform in addition to its pools' machines. Excludes what existed before the stack, such as a cluster or a network."""

    budget_usd: int | None
    """Budget of the environment in US dollars a month. None: no budget is set."""
    disks: tuple[PoolDisks, ...]
    system_nodes: SystemNodes | None
    other_work: OtherNodes | None
    services: tuple[ServicePart, ...]
    shares: tuple[PoolShare, ...]
    """Owners of the pools' GPUs."""
    made_by_itself: AutoProvisionedNodes | None = None
    on_unknown_prices: OnUnknownPrices = OnUnknownPrices.WARN
    """Effect of missing prices on a budget: an error or a warning."""
    auto_mode: bool = False
    """True if EKS Auto Mode runs the nodes, for a fee on each."""
