"""What a plan will be billed for besides the machines of its pools, and what it may cost: the part of the plan that costs are told from."""

from __future__ import annotations

from dataclasses import dataclass

from capacity.catalog.service_items import ServiceItem  # noqa: TC001 -- capacity.cost reads these classes' annotations at run time


@dataclass(frozen=True)
class Charge:
    """So much of something that is billed by the month, such as 200 GiB of a disk. `amount` is in the unit of the item's measure."""

    item: ServiceItem
    amount: int


@dataclass(frozen=True)
class PoolDisks:
    """What each node of a pool has for as long as it is there."""

    pool: str
    charges: tuple[Charge, ...]


@dataclass(frozen=True)
class SystemNodes:
    """The nodes of the controllers, on demand, each with its disk."""

    machine: str
    min_nodes: int
    max_nodes: int
    charges: tuple[Charge, ...]


@dataclass(frozen=True)
class OtherWork:
    """Room for nodes without GPUs that the autoscaler makes; both ceilings hold together. Each node has a disk."""

    max_vcpu: int
    max_memory_gib: int
    charges: tuple[Charge, ...]


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

    What was there before the stack (a cluster, a network) is not among it. `budget_usd` is None where nobody has set one.
    """

    budget_usd: int | None
    disks: tuple[PoolDisks, ...]
    system_nodes: SystemNodes | None
    other_work: OtherWork | None
    services: tuple[ServicePart, ...]
    shares: tuple[PoolShare, ...]
