"""What the plan says of work without GPUs, as plain frozen data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capacity.settings.teams import Stop


@dataclass(frozen=True)
class CpuAmount:
    """vCPU and memory (MiB) of machines without GPUs."""

    vcpu: int
    memory_mib: int


@dataclass(frozen=True)
class CpuQueuePlan:
    """The ClusterQueue of one team's work without GPUs, and its LocalQueue.

    `nominal` is the team's own, which it lends while it does not use it. `launchers` are in the queue of the team's GPUs, for pods without
    GPUs of work that has some, and lent to nobody. `stop` keeps work out.
    """

    cluster_queue: str
    namespace: str
    local_queue: str
    weight: int
    nominal: CpuAmount
    launchers: CpuAmount
    stop: Stop


@dataclass(frozen=True)
class CpuWorkPlan:
    """Work without GPUs: a flavor without any GPU node, and a queue for each team in a cohort of its own.

    `node_labels` are those of its nodes, where they have one that others have not; it tolerates no taint of GPU nodes. `unowned` is the
    cohort's: any team may borrow it. No pod can ask for more than `largest`.
    """

    flavor: str
    node_labels: dict[str, str]
    cohort: str
    unowned: CpuAmount
    largest: CpuAmount
    queues: tuple[CpuQueuePlan, ...]

    @property
    def reach(self) -> CpuAmount:
        """The most that one team can have at once."""
        owned = [self.unowned, *(queue.nominal for queue in self.queues)]
        return CpuAmount(sum(each.vcpu for each in owned), sum(each.memory_mib for each in owned))
