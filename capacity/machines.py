"""The machine catalog: what one node of a machine type has, as data with a source."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from capacity.records import Record, read_records

_CATALOG = Path(__file__).parent / "catalog"

Count = Annotated[int, Field(ge=1)]


class Cloud(StrEnum):
    """Whose machines and prices a file lists. AWS is EC2, under EKS."""

    AWS = "aws"


class Gpu(Record):
    """The GPUs of one machine. `memory_mib` is of one GPU, in MiB as the cloud reports it; `name` is the cloud's own, in lower case."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    manufacturer: str
    count: Count
    memory_mib: Count


class Machine(Record):
    """One machine type. `memory_mib` is the node's memory; `zones` lists, for each region known, the zones that offer it."""

    name: str
    vcpu: Count
    memory_mib: Count
    gpu: Gpu | None = None
    local_ssd_gb: Annotated[int, Field(ge=0)] = 0
    zones: dict[str, list[str]]


class MachineFile(Record):
    """A catalog file: the machines of one cloud, with where the figures are from and when they were read."""

    cloud: Cloud
    as_of: date
    source: Annotated[str, Field(min_length=10)]
    machines: list[Machine]

    @model_validator(mode="after")
    def _rows_are_unique_and_sorted(self) -> MachineFile:
        names = [machine.name for machine in self.machines]
        if names != sorted(set(names)):
            raise ValueError(f"machines must be sorted by name, each once; found {', '.join(names)}")
        return self


def read_machines(path: Path) -> dict[str, Machine]:
    """The machines of a catalog file, by name. Raises DataFileError when the file breaks its schema."""
    return {machine.name: machine for machine in read_records(path, MachineFile).machines}


@cache
def machines_of(cloud: Cloud) -> dict[str, Machine]:
    """The shipped catalog of `cloud`, by machine name."""
    return read_machines(_CATALOG / f"{cloud}.yaml")
