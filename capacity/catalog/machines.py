"""The machine catalog: what one node of a machine type has, as data with a source."""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import Field, field_validator, model_validator

from capacity.catalog.data_files import Record, Source, read_records, unsourced

_CATALOG = Path(__file__).parent

Count = Annotated[int, Field(ge=1)]


class Cloud(StrEnum):
    """Whose machines and prices a file lists. AWS is EC2, under EKS; GCP is Compute Engine, under GKE."""

    AWS = "aws"
    GCP = "gcp"


class Gpu(Record):
    """The GPUs of one machine.

    `name` is the cloud's own accelerator name, as its node label has it: `l4` on EKS (karpenter.k8s.aws/instance-gpu-name), `nvidia-l4` on
    GKE (cloud.google.com/gke-accelerator). `model` names the same GPU on every cloud, with its memory where one name has several sizes:
    `l4`, `a100-40gb`, `h100-80gb`. `memory_mib` is of one GPU, in MiB as the cloud reports it.
    `counts` are how many GPUs the machine can have: one figure where machine and GPUs are a fixed pair, several where they are attached.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    model: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    manufacturer: str
    counts: Annotated[tuple[Count, ...], Field(min_length=1)]
    memory_mib: Count

    @property
    def count(self) -> int:
        """The GPUs of a machine of which nothing else is asked: its fixed count, or the fewest that can be attached."""
        return self.counts[0]

    @field_validator("counts")
    @classmethod
    def _counts_rise(cls, counts: tuple[int, ...]) -> tuple[int, ...]:
        if list(counts) != sorted(set(counts)):
            raise ValueError("counts must rise, each once")
        return counts


class Machine(Record):
    """One machine type.

    `memory_mib` is the node's memory. `local_ssd_gb` is the local SSD that comes with the machine (GB, in all), `max_local_ssd_disks` how
    many disks of 375 GB can be asked for on top (GCP). `efa_interfaces` is how many network cards take an EFA interface (AWS; 0: no EFA).
    `max_pods` is how many pods a node has addresses for (AWS; 0: not known).
    `gvnic` says that the machine needs Google's virtual NIC, `compact_placement` that it can be placed compactly (GCP).
    `flex_start` says that DWS can provision it. `zones` lists, for each region known, the zones that offer it; empty: not known.
    """

    name: str
    vcpu: Count
    memory_mib: Count
    max_pods: Annotated[int, Field(ge=0)] = 0
    gpu: Gpu | None = None
    local_ssd_gb: Annotated[int, Field(ge=0)] = 0
    max_local_ssd_disks: Annotated[int, Field(ge=0)] = 0
    efa_interfaces: Annotated[int, Field(ge=0)] = 0
    gvnic: bool = False
    compact_placement: bool = False
    flex_start: bool = False
    zones: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    source: str

    @field_validator("zones", mode="before")
    @classmethod
    def _letters(cls, written: Any) -> Any:
        # As a file has them: the letters of a region's zones.
        return {region: tuple(each) for region, each in cast("dict[str, str]", written).items()} if isinstance(written, dict) else written


class MachineFile(Record):
    """A catalog file: the machines of one cloud, each with a source.

    A row's `zones` are written as the letters of a region's zones (`us-east-1: abcdf`) and read as their names.
    """

    cloud: Cloud
    sources: dict[str, Source]
    machines: list[Machine]

    @model_validator(mode="after")
    def _rows_are_unique_sorted_and_sourced(self) -> MachineFile:
        names = [machine.name for machine in self.machines]
        if names != sorted(set(names)):
            raise ValueError(f"machines must be sorted by name, each once; found {', '.join(names)}")
        if problem := unsourced(((each.name, each.source) for each in self.machines), self.sources):
            raise ValueError(problem)
        return self


def read_machines(path: Path) -> dict[str, Machine]:
    """The machines of a catalog file, by name. Raises DataFileError when the file breaks its schema."""
    file = read_records(path, MachineFile)
    separator = "-" if file.cloud is Cloud.GCP else ""
    return {machine.name: machine.model_copy(update={"zones": _named(machine.zones, separator)}) for machine in file.machines}


def machines_with(machines: dict[str, Machine], gpu: str, count: int) -> list[str]:
    """The names of those `machines` that have, or can have, `count` GPUs of `gpu`, in the cloud's own name of it."""
    return [name for name, each in machines.items() if each.gpu and each.gpu.name == gpu and count in each.gpu.counts]


def _named(letters: dict[str, tuple[str, ...]], separator: str) -> dict[str, tuple[str, ...]]:
    return {region: tuple(f"{region}{separator}{letter}" for letter in each) for region, each in letters.items()}


@cache
def machines_of(cloud: Cloud) -> dict[str, Machine]:
    """The shipped catalog of `cloud`, by machine name."""
    return read_machines(_CATALOG / f"{cloud}.yaml")
