"""What settings mean once their names are looked up: machines, GPUs, classes. The plan and its checks both start from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from capacity.catalog.platform import VOCABULARIES, Vocabulary
from capacity.plan.model import Amount
from capacity.settings.cluster import GkeMode
from capacity.settings.platform import GkeSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from capacity.catalog.capacity_type import CapacityType, CapacityTypeFacts
    from capacity.catalog.machines import Gpu, Machine
    from capacity.catalog.price_book import PriceBook
    from capacity.catalog.workload_classes import WorkloadClass
    from capacity.settings.platform import PlatformSettings
    from capacity.settings.pools import PoolSettings


LOCAL_REGION = "us-east-1"
"""The region whose zones and prices the local control plane has."""


@dataclass(frozen=True)
class ResolvedPool:
    """A pool whose machines are in the catalog. `path` is where it stands in the settings; the first machine is the one asked for."""

    path: str
    settings: PoolSettings
    machines: tuple[Machine, ...]
    gpu: Gpu
    gpus_per_node: int
    max_nodes: int
    classes: tuple[WorkloadClass, ...]
    ceiling: Amount

    @property
    def name(self) -> str:
        """The pool's name."""
        return self.settings.name

    @property
    def queued(self) -> bool:
        """Whether a queue gives its GPUs away."""
        return any(each.queued for each in self.classes)

    @property
    def unqueued(self) -> bool:
        """Whether pods outside of any queue may use its GPUs."""
        return any(not each.queued for each in self.classes)


@dataclass(frozen=True)
class ResolvedSettings:
    """Settings with everything that they name. `classes` are those that a pool serves; `pools` those that could be resolved."""

    settings: PlatformSettings
    machines: dict[str, Machine]
    facts: dict[CapacityType, CapacityTypeFacts]
    prices: PriceBook
    classes: dict[str, WorkloadClass]
    known_classes: dict[str, WorkloadClass]
    pools: dict[str, ResolvedPool]

    @property
    def words(self) -> Vocabulary:
        """The platform's own words."""
        return VOCABULARIES[self.settings.cloud]

    @property
    def autopilot(self) -> bool:
        """Whether all nodes are GKE's own; pools are then what pods may ask for, and no node pools."""
        return isinstance(self.settings, GkeSettings) and self.settings.cluster.mode is GkeMode.AUTOPILOT

    @cached_property
    def region(self) -> str:
        """Where the platform is."""
        return str(getattr(self.settings, "region", LOCAL_REGION))

    @cached_property
    def zones(self) -> tuple[str, ...]:
        """The platform's zones; none for the local control plane."""
        return tuple(getattr(self.settings, "zones", ()))

    @cached_property
    def doubtful_pools(self) -> set[str]:
        """Pools with a problem that is already reported; what follows from it is not reported again."""
        unknown = {pool.name for pool in self.settings.pools if set(pool.serves) - set(self.known_classes)}
        return unknown | {pool.name for pool in self.settings.pools if pool.name not in self.pools}

    @cached_property
    def queued_pools(self) -> dict[str, ResolvedPool]:
        """The pools whose GPUs a queue gives away, by name."""
        return {name: pool for name, pool in self.pools.items() if pool.queued}

    @cached_property
    def unqueued_gpus(self) -> dict[str, int]:
        """How many GPUs of each pool the teams' unqueued classes may use in all."""
        promised: dict[str, int] = dict.fromkeys(self.pools, 0)
        for team in self.settings.teams:
            for pool, gpus in team.unqueued.items():
                if pool in promised:
                    promised[pool] += gpus
        return promised

    def nodes_of(self, pools: Iterable[str]) -> list[Amount]:
        """One node of each machine of some pools."""
        return [
            Amount(self.pools[name].gpus_per_node, machine.vcpu, machine.memory_mib)
            for name in pools
            for machine in self.pools[name].machines
        ]

    def queue_gpus(self, pool: ResolvedPool) -> int:
        """How many GPUs of `pool` the queues may give away: its ceiling, less what unqueued classes may use."""
        return max(0, pool.ceiling.gpus - self.unqueued_gpus[pool.name]) if pool.queued else 0


def node_amount(machines: Sequence[Machine], gpus_per_node: int) -> Amount:
    """One node: of several machines the most vCPU and memory, so that a quota made of it never runs out before the GPUs do."""
    return Amount(gpus_per_node, max(each.vcpu for each in machines), max(each.memory_mib for each in machines))


def with_gpus(nodes: Sequence[Amount], gpus: int) -> Amount:
    """`gpus` with the most vCPU and memory that a node of any of several kinds has for so many, rounded up for parts of a node.

    A job that fills such a node then fits into the quota of its GPUs, whichever kind it gets.
    """
    return Amount(
        gpus, max(-(-gpus * node.vcpu // node.gpus) for node in nodes), max(-(-gpus * node.memory_mib // node.gpus) for node in nodes)
    )
