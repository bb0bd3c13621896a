"""Pools: which machines at which capacity type, up to which ceiling, for which classes."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from capacity.capacity_type import CapacityType
from capacity.names import Name, Zone
from capacity.records import Record

MAX_NODES = 5000
"""The most nodes of a pool, in nodes: more than either cloud takes in one cluster's pool by default."""


class PoolSettings(Record):
    """Machines of one type at one capacity type, up to a ceiling.

    `machine` is a name of the catalog. `gpus_per_node` says how many GPUs a node has: needed where they are attached (GKE's n1), and
    checked where machine and GPUs are a fixed pair.
    `max_nodes` or `max_gpus` is the ceiling, of the whole pool and not of a zone; there is no default. `max_vcpu` and `max_memory_gib` cap
    the pool further; a cap that keeps the other ceiling out of reach is refused.
    `min_nodes` are kept although nothing runs on them. `zones` are some of the platform's; empty: all of them.
    `serves` names workload classes.
    """

    name: Name
    machine: str
    capacity_type: CapacityType
    gpus_per_node: Annotated[int, Field(ge=1, le=16)] | None = None
    max_nodes: Annotated[int, Field(ge=1, le=MAX_NODES)] | None = None
    max_gpus: Annotated[int, Field(ge=1, le=16 * MAX_NODES)] | None = None
    max_vcpu: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    max_memory_gib: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    min_nodes: Annotated[int, Field(ge=0, le=MAX_NODES)] = 0
    zones: tuple[Zone, ...] = ()
    serves: Annotated[tuple[Name, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _has_a_ceiling(self) -> Self:
        if self.max_nodes is None and self.max_gpus is None:
            raise ValueError("has no ceiling; give max_nodes or max_gpus")
        return self


class LocalPool(PoolSettings):
    """A pool of the local control plane, whose fake nodes are those of EKS: Spot and on-demand alone."""

    alternatives: tuple[str, ...] = ()
