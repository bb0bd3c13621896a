"""How much of a GPU one unit of an extended resource is: a whole one, a MIG partition, or a part that is shared by time."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, model_validator

from capacity.catalog.data_files import Record, Source, read_records, unsourced

if TYPE_CHECKING:
    from collections.abc import Mapping

    from capacity.catalog.machines import Machine

WHOLE = "nvidia_com_gpu"
"""nvidia.com/gpu, as kube-state-metrics writes it."""

_PARTITION = re.compile(r"nvidia_com_mig_(?P<compute>\d+)g_(?P<gigabytes>\d+)gb(_\w+)?")
_MEBIBYTES = 1024
_MOST_SLICES = 7


class Partitioning(Record):
    """How many slices of compute and of memory a GPU model has."""

    model: str
    compute: Annotated[int, Field(ge=1)]
    memory: Annotated[int, Field(ge=1)]
    source: str


class PartitioningFile(Record):
    """The data file."""

    sources: dict[str, Source]
    partitions: list[Partitioning]

    @model_validator(mode="after")
    def _rows_are_sourced(self) -> PartitioningFile:
        if problem := unsourced(((each.model, each.source) for each in self.partitions), self.sources):
            raise ValueError(problem)
        return self


@cache
def _partitionings() -> dict[str, Partitioning]:
    file = read_records(Path(__file__).parent / "gpu_partitions.yaml", PartitioningFile)
    return {each.model: each for each in file.partitions}


def gpus_of_node(machine: Machine | None, units: Mapping[str, float]) -> Fraction:
    """How many GPUs a node has: what its machine has, also while the node boots; otherwise what it says itself.

    `units` are what it offers, by resource.
    """
    if machine is not None and machine.gpu is not None and len(machine.gpu.counts) == 1:
        return Fraction(machine.gpu.count)
    return sum((_whole(amount) * unit_share(resource, machine, units) for resource, amount in units.items()), Fraction(0))


def unit_share(resource: str, machine: Machine | None, units: Mapping[str, float]) -> Fraction:
    """The part of a GPU that one unit of `resource` is on a node that offers `units`.

    A partition is the greater of its parts of compute and memory: what it takes, no other can have. Where a node offers more whole GPUs
    than its machine has, they are shared by time or are partitions under the same name, and each is an equal part.
    """
    gpu = None if machine is None else machine.gpu
    found = _PARTITION.fullmatch(resource)
    if found is None:
        offered = _whole(units.get(WHOLE, 0.0))
        fixed = gpu is not None and len(gpu.counts) == 1
        return Fraction(gpu.count) / offered if gpu is not None and fixed and offered > gpu.count else Fraction(1)
    parts = None if gpu is None else _partitionings().get(gpu.model)
    if parts is None or gpu is None:
        return min(Fraction(1), Fraction(int(found["compute"]), _MOST_SLICES))
    memory = round(int(found["gigabytes"]) * _MEBIBYTES * parts.memory / gpu.memory_mib)
    return min(Fraction(1), max(Fraction(int(found["compute"]), parts.compute), Fraction(memory, parts.memory)))


def _whole(amount: float) -> Fraction:
    return Fraction(round(amount))
