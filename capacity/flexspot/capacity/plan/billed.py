"""What a plan will be billed for besides its pools' machines, whose the pools are, and the budget, as plain frozen data."""

from __future__ import annotations

from dataclasses import dataclass

from flexspot.capacity.catalog.price_book import ServiceItem  # noqa: TC001 -- flexspot.capacity.cost reads these annotations at run time
from flexspot.capacity.settings.platform import OnUnknownPrices


@dataclass(frozen=True)
class BilledAmount:
    """So much of something that is billed by the month, such as 200 GiB of a disk. `amount` is in the unit of the item's measure."""

    item: ServiceItem
    amount: int


@dataclass(frozen=True)
class PoolDisks:
    """What each node of a pool has for as long as it is there, and how many nodes more an upgrade of the pool makes at once."""

    pool: str
    charges: tuple[BilledAmount, ...]
    surge_nodes: int = 0


@dataclass(frozen=True)
class SystemNodes:
    """The nodes of the controllers, on demand, each with its disk; an upgrade makes `surge_nodes` more at once."""

    machine: str
    min_nodes: int
    max_nodes: int
    charges: tuple[BilledAmount, ...]
    surge_nodes: int = 0


@dataclass(frozen=True)
class OtherNodes:
    """Room for nodes without GPUs that the autoscaler makes; both ceilings hold together. Each node has a disk."""

    max_vcpu: int
    max_memory_gib: int
    charges: tuple[BilledAmount, ...]


@dataclass(frozen=True)
class MadeByItself:
    """What GKE's node auto-provisioning may make on demand in place of declared nodes: limits of the whole cluster, GPUs by accelerator.

    Each node has a disk.
    """

    max_vcpu: int
    max_memory_gib: int
    gpus: tuple[tuple[str, int], ...]
    charges: tuple[BilledAmount, ...]


@dataclass(frozen=True)
class ServicePart:
    """Something that is billed for as long as it is there: `least` of it always, never more than `most`."""

    name: str
    item: ServiceItem
    least: int
    most: int


@dataclass(frozen=True)
class PoolShare:
    """The GPUs of a pool that are a team's own: its guaranteed share, and what its classes without queue may use."""

    team: str
    pool: str
    gpus: int


@dataclass(frozen=True)
class SpendingPlan:
    """What the platform is billed for besides its pools' machines, whose the pools are, and the environment's budget in US dollars a month.

    What was there before the stack (a cluster, a network) is not among it. `budget_usd` is None where nobody has set one;
    `on_unknown_prices` is what becomes of a budget that missing prices may exceed. `auto_mode` says that EKS Auto Mode runs the nodes,
    for a fee on each.
    """

    budget_usd: int | None
    disks: tuple[PoolDisks, ...]
    system_nodes: SystemNodes | None
    other_work: OtherNodes | None
    services: tuple[ServicePart, ...]
    shares: tuple[PoolShare, ...]
    made_by_itself: MadeByItself | None = None
    on_unknown_prices: OnUnknownPrices = OnUnknownPrices.WARN
    auto_mode: bool = False
