"""Whether a pool's other ceilings let it reach its ceiling of GPUs: one answer for settings, for the component and for the policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable
    from decimal import Decimal


class Sized(Protocol):
    """A machine, by what ceilings count."""

    @property
    def vcpu(self) -> int: ...  # noqa: D102 -- the words are the machine's

    @property
    def memory_mib(self) -> int: ...  # noqa: D102 -- likewise


MachineT = TypeVar("MachineT", bound=Sized)


@dataclass(frozen=True)
class NodeCeilings:
    """What ends a pool beside its ceiling of GPUs; None for no such ceiling."""

    nodes: int | Decimal | None = None
    vcpu: int | Decimal | None = None
    memory_mib: int | Decimal | None = None


@dataclass(frozen=True)
class OutOfReach(Generic[MachineT]):
    """With `machine` the pool ends at `gpus`; `nodes` of it are needed for the ceiling, which have `vcpu` and `memory_mib` in all."""

    machine: MachineT
    gpus: int
    nodes: int
    vcpu: int
    memory_mib: int

    @property
    def needed(self) -> str:
        """What the other ceilings would have to allow, as a message says it."""
        return f"{self.nodes} nodes, {self.vcpu} vCPU and {self.memory_mib} MiB"


def reachable_gpus(machine: Sized, gpus_per_node: int, ceilings: NodeCeilings) -> int | None:
    """How many GPUs a pool of this machine has when one of the ceilings stops it; None where none does."""
    ends = [
        int(ceiling // for_each)
        for ceiling, for_each in ((ceilings.nodes, 1), (ceilings.vcpu, machine.vcpu), (ceilings.memory_mib, machine.memory_mib))
        if ceiling is not None
    ]
    return min(ends) * gpus_per_node if ends else None


def out_of_reach(machines: Iterable[tuple[MachineT, int]], max_gpus: int | Decimal, ceilings: NodeCeilings) -> OutOfReach[MachineT] | None:
    """The machine, each given with its GPUs, with which a pool ends earliest below `max_gpus`; None where it gets there with every one.

    With every one: which of the machines is launched is not the pool's owner's to say, and queues count on the ceiling whichever it is.
    """
    worst: OutOfReach[MachineT] | None = None
    for machine, gpus_per_node in machines:
        reach = reachable_gpus(machine, gpus_per_node, ceilings)
        if reach is not None and reach < max_gpus and (worst is None or reach < worst.gpus):
            nodes = int(-(-max_gpus // gpus_per_node))
            worst = OutOfReach(machine, reach, nodes, nodes * machine.vcpu, nodes * machine.memory_mib)
    return worst
