"""How much vCPU and memory belongs to GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.plan import Amount

if TYPE_CHECKING:
    from collections.abc import Sequence

    from capacity.machines import Machine


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
