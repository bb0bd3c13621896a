"""Check of a pool's other ceilings against its ceiling of GPUs, shared by settings, component and policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable
    from decimal import Decimal


class Sized(Protocol):
    """A machine, with the sizes that ceilings count."""

    @property
    def vcpu(self) -> int: ...  # noqa: D102 -- the words are the machine's

    @property
    def memory_mib(self) -> int: ...  # noqa: D102 -- likewise


MachineT = TypeVar("MachineT", bound=Sized)


@dataclass(frozen=True)
class NodeCeilings:
    """Ceilings of a pool other than GPUs; None for no such ceiling."""

    nodes: int | Decimal | None = None
    vcpu: int | Decimal | None = None
    memory_mib: int | Decimal | None = None


@dataclass(frozen=True)
class OutOfReach(Generic[MachineT]):
    """A machine with which the pool stops at `gpus`. Its GPU ceiling needs `nodes` of them, with `vcpu` and `memory_mib` in all."""

    machine: MachineT
    gpus: int
    nodes: int
    vcpu: int
    memory_mib: int

    @property
    def needed(self) -> str:
        """Needed values of the other ceilings, as a message lists them."""
        return f"{self.nodes} nodes, {self.vcpu} vCPU and {self.memory_mib} MiB"


def reachable_gpus(machine: Sized, gpus_per_node: int, ceilings: NodeCeilings) -> int | None:
    """Return the number of GPUs at which a ceiling stops a pool of this machine. None if there is no such ceiling."""
    ends = [
        int(ceiling // for_each)
        for ceiling, for_each in ((ceilings.nodes, 1), (ceilings.vcpu, machine.vcpu), (ceilings.memory_mib, machine.memory_mib))
        if ceiling is not None
    ]
    return min(ends) * gpus_per_node if ends else None


def out_of_reach(machines: Iterable[tuple[MachineT, int]], max_gpus: int | Decimal, ceilings: NodeCeilings) -> OutOfReach[MachineT] | None:
    """Return the machine with which a pool stops earliest below `max_gpus`. None if every machine reaches it.

    `machines` are given with their GPUs. Every machine must reach the ceiling: the pool's owner does not choose the one that is launched,
    and queues rely on the ceiling.
    """
    worst: OutOfReach[MachineT] | None = None
    for machine, gpus_per_node in machines:
        reach = reachable_gpus(machine, gpus_per_node, ceilings)
        if reach is not None and reach < max_gpus and (worst is None or reach < worst.gpus):
            nodes = int(-(-max_gpus // gpus_per_node))
            worst = OutOfReach(machine, reach, nodes, nodes * machine.vcpu, nodes * machine.memory_mib)
    return worst
