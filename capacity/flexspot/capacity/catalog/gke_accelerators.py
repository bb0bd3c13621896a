"""What GKE makes of accelerators, as data with a source: MIG partitions of a GPU, and slices of TPU chips over several hosts."""

from __future__ import annotations

from functools import cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from flexspot.capacity.catalog.data_files import Record, Source, SourcedFile, read_records
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


_GPUDIRECT = Path(__file__).with_name("gpudirect.yaml")

Names = Annotated[tuple[str, ...], Field(min_length=1)]


class RdmaMachines(Record):
    """Machines with so many network cards for RDMA, one for each subnetwork; `tuner` is the file of NCCL's choices for them."""

    names: Names
    rdma_networks: Annotated[int, Field(ge=1, le=16)]
    tuner: str
    source: str


class RefusedMachines(Record):
    """Machines whose fast network the platform cannot use, and why."""

    names: Names
    why: str
    source: str


class Installer(Record):
    """The image that brings NCCL and its plugin to a node."""

    image: str
    source: str


class GpuDirectFacts(SourcedFile):
    """The whole table. `variables` are NCCL's environment variables on all of the machines."""

    installer: Installer
    variables: dict[str, str]
    variables_source: str
    machines: tuple[RdmaMachines, ...]
    refused: tuple[RefusedMachines, ...]

    def of(self, machine: str) -> RdmaMachines | None:
        """Return the entry of a machine; None for one without RDMA."""
        return next((each for each in self.machines if machine in each.names), None)

    def why_not(self, machine: str) -> str | None:
        """Return why the platform cannot use a machine's fast network; None if it can, or if there is none."""
        return next((each.why for each in self.refused if machine in each.names), None)


@cache
def gpudirect() -> GpuDirectFacts:
    """The shipped table."""
    return read_records(_GPUDIRECT, GpuDirectFacts)


GVNIC_NETWORK = "gvnic-1"
"""The name of the Network of the second ordinary card, as Google's guides call it."""


def rdma_network_names(count: int) -> list[str]:
    """The names of the Networks of the cards for RDMA, as Google's guides call them."""
    return [f"rdma-{number}" for number in range(count)]


HOST_FOLDER, CONTAINER_FOLDER = "/home/kubernetes/bin/nvidia", "/usr/local/nvidia"
"""Where GKE's device plugin finds a node's libraries, and where every container with GPUs has them, whatever its own rights are.

Source: GoogleCloudPlatform/container-engine-accelerators, cmd/nvidia_gpu/nvidia_gpu.go, defaults of host-path and container-path (read
2026-11-26).
"""

GIB_FOLDER = "gib"
"""Below both: the plugin's own files. Google's guides mount /home/kubernetes/bin/gib, for which a pod would need folders of the host."""
