"""The plan: what a stack will consist of, as plain frozen data, known before any resource exists."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capacity.capacity_type import CapacityType


class TaintEffect(StrEnum):
    """What a taint does to pods that do not tolerate it, as Kubernetes spells it. NO_SCHEDULE keeps new ones away."""

    NO_SCHEDULE = "NoSchedule"


@dataclass(frozen=True)
class Taint:
    """A taint of a pool's nodes."""

    key: str
    value: str
    effect: TaintEffect = TaintEffect.NO_SCHEDULE


@dataclass(frozen=True)
class PoolPlan:
    """One pool: machines of one type at one capacity type. `labels` are on its nodes before they boot, `max_nodes` is enforced."""

    name: str
    machine: str
    capacity_type: CapacityType
    gpus_per_node: int
    max_nodes: int
    labels: dict[str, str]
    taints: tuple[Taint, ...]
    serves: tuple[str, ...]

    @property
    def max_gpus(self) -> int:
        """The pool's ceiling in GPUs."""
        return self.max_nodes * self.gpus_per_node


@dataclass(frozen=True)
class FlavorPlan:
    """A ResourceFlavor: how Kueue names the capacity of one queued pool, and what it adds to the pods that it admits there."""

    name: str
    node_labels: dict[str, str]
    tolerated: tuple[Taint, ...]


@dataclass(frozen=True)
class FlavorQuota:
    """A team's own share of one flavor: GPUs, and the vCPU and memory (MiB) that come with them on the flavor's machine."""

    flavor: str
    gpus: int
    vcpu: int
    memory_mib: int


@dataclass(frozen=True)
class QueuePlan:
    """The ClusterQueue of one team, the cohort in which it lends and borrows, and the LocalQueue of its namespace."""

    cluster_queue: str
    cohort: str
    namespace: str
    local_queue: str
    quotas: tuple[FlavorQuota, ...]


@dataclass(frozen=True)
class TeamPlan:
    """A team's namespace; `max_gpus` is the most that its pods may ask for at once, borrowed GPUs included."""

    name: str
    namespace: str
    max_gpus: int


@dataclass(frozen=True)
class PriorityPlan:
    """The PriorityClass of a workload class."""

    name: str
    value: int
    preempts: bool
    description: str


@dataclass(frozen=True)
class Plan:
    """Everything of one stack. `labels` are on every object."""

    environment: str
    labels: dict[str, str]
    pools: tuple[PoolPlan, ...]
    flavors: tuple[FlavorPlan, ...]
    priorities: tuple[PriorityPlan, ...]
    teams: tuple[TeamPlan, ...]
    queues: tuple[QueuePlan, ...]
