"""What GKE makes of accelerators, as data with a source: MIG partitions of a GPU, and slices of TPU chips over several hosts."""

from __future__ import annotations

from functools import cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from flexspot.capacity.catalog.data_files import Record, Source, read_records
from flexspot.capacity.values.names import MIG_PARTITION, TPU_TOPOLOGY

if TYPE_CHECKING:
    from flexspot.capacity.catalog.machines import Machine


_FILE = Path(__file__).parent / "gpu_partitions.yaml"


class _PartitionFile(Record):
    source: Source
    partitions: dict[str, dict[Annotated[str, Field(pattern=MIG_PARTITION)], Annotated[int, Field(ge=1, le=7)]]]


def partitions_of(accelerator: str) -> dict[str, int]:
    """The sizes into which every GPU of a node may be divided, each with how many there are; none where the GPU cannot be divided."""
    return _partition_file().partitions.get(accelerator, {})


@cache
def _partition_file() -> _PartitionFile:
    return read_records(_FILE, _PartitionFile)


Topology = Annotated[str, Field(pattern=TPU_TOPOLOGY)]
"""How chips are joined, as GKE's label cloud.google.com/gke-tpu-topology has it: 4x4, 2x2x4."""


class _Slices(Record):
    """Those of one kind of chip, over several hosts. `torus` says that the sides may also be any multiples of 4, each at least the one
    before, up to so many chips.
    """

    topologies: tuple[Topology, ...]
    torus: int = 0
    source: str


class _SliceFile(Record):
    sources: dict[str, Source]
    slices: dict[str, _Slices]


@cache
def _slice_file() -> _SliceFile:
    return read_records(Path(__file__).parent / "tpu_slices.yaml", _SliceFile)


def chips_of(topology: str) -> int:
    """How many chips a topology joins."""
    return prod(map(int, topology.split("x")))


def hosts_of(machine: Machine, topology: str) -> int:
    """How many machines make a slice of a topology; a part of one counts as one."""
    assert machine.gpu is not None, "only machines with TPUs have slices"  # noqa: S101 -- tells the type checker what was checked
    return -(-chips_of(topology) // machine.gpu.count)


def slices_of(machine: Machine) -> tuple[str, ...]:
    """The topologies over several hosts that machines of a kind can be joined to, as a person would choose from; none for the others."""
    if machine.gpu is None or not machine.tpu_topology or machine.one_host:
        return ()
    found = _slice_file().slices[machine.gpu.name]
    return found.topologies


def is_slice_of(machine: Machine, topology: str) -> bool:
    """Whether machines of a kind can be joined to a slice of a topology over several hosts."""
    allowed = slices_of(machine)
    if not allowed or machine.gpu is None:
        return False
    return topology in allowed or _is_torus(topology, _slice_file().slices[machine.gpu.name].torus)


def _is_torus(topology: str, most: int) -> bool:
    sides = [int(side) for side in topology.split("x")]
    cube = len(sides) == 3 and sides == sorted(sides) and all(side % 4 == 0 for side in sides)  # noqa: PLR2004 -- sides of a cuboid
    return cube and prod(sides) <= most
