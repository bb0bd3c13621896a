"""One order of capacity types out of the orders of several classes."""

from __future__ import annotations

from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import TYPE_CHECKING

from capacity.capacity_type import CapacityType

if TYPE_CHECKING:
    from collections.abc import Iterable

_RANK = {each: rank for rank, each in enumerate(CapacityType)}


@dataclass(frozen=True)
class OrderConflictError(Exception):
    """Orders that no one order can follow: each of `capacity_types` would have to come before the next, and the last before the first."""

    capacity_types: tuple[CapacityType, ...]


def merged_order(orders: Iterable[tuple[CapacityType, ...]]) -> tuple[CapacityType, ...]:
    """The order that keeps every given one; where they leave it open, that of CapacityType itself. Raises OrderConflictError."""
    graph: TopologicalSorter[CapacityType] = TopologicalSorter()
    for order in orders:
        graph.add(order[0])
        for earlier, later in pairwise(order):
            graph.add(later, earlier)
    try:
        graph.prepare()
    except CycleError as error:
        raise OrderConflictError(tuple(error.args[1][:-1])) from error
    merged: list[CapacityType] = []
    ready: set[CapacityType] = set()
    while graph.is_active():
        ready |= set(graph.get_ready())
        first = min(ready, key=_RANK.__getitem__)
        ready.remove(first)
        merged.append(first)
        graph.done(first)
    return tuple(merged)
