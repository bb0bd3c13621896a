"""Accelerator facts of GKE with their sources: MIG partitions of a GPU, multi-host TPU slices, and GPUDirect networks."""

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
    """Return the partition sizes of a GPU, each with the number per GPU. Empty if the GPU cannot be partitioned."""
    return _partition_file().partitions.get(accelerator, {})


@cache
def _partition_file() -> _PartitionFile:
    return read_records(_FILE, _PartitionFile)


Topology = Annotated[str, Field(pattern=TPU_TOPOLOGY)]
"""Arrangement of the chips, as in GKE's label cloud.google.com/gke-tpu-topology: 4x4, 2x2x4."""


class _Slices(Record):
    """Multi-host slices of one kind of chip."""

    topologies: tuple[Topology, ...]
    torus: int = 0
    """Most chips of a torus, whose sides are multiples of 4 in rising order. 0: only the listed topologies exist."""
    source: str


class _SliceFile(Record):
    sources: dict[str, Source]
    slices: dict[str, _Slices]


@cache
def _slice_file() -> _SliceFile:
    return read_records(Path(__file__).parent / "tpu_slices.yaml", _SliceFile)


def chips_of(topology: str) -> int:
    """Return the number of chips in a topology."""
    return prod(map(int, topology.split("x")))


def hosts_of(machine: Machine, topology: str) -> int:
    """Return the number of machines in a slice of a topology, rounded up."""
    assert machine.gpu is not None, "only machines with TPUs have slices"  # noqa: S101 -- tells the type checker what was checked
    return -(-chips_of(topology) // machine.gpu.count)


def slices_of(machine: Machine) -> tuple[str, ...]:
    """Return the multi-host topologies of a machine, to offer as a choice. Empty if it has none."""
    if machine.gpu is None or not machine.tpu_topology or machine.one_host:
        return ()
    found = _slice_file().slices[machine.gpu.name]
    return found.topologies


def is_slice_of(machine: Machine, topology: str) -> bool:
    """Return whether a multi-host slice of this topology can consist of these machines."""
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
    """Machines with RDMA network cards, each in its own subnetwork."""

    names: Names
    rdma_networks: Annotated[int, Field(ge=1, le=16)]
    """Number of RDMA network cards."""
    tuner: str
    """NCCL tuner configuration file for them."""
    source: str


class RefusedMachines(Record):
    """Machines with a fast network that the platform cannot use, with the reason."""

    names: Names
    why: str
    source: str


class Installer(Record):
    """The image that installs NCCL and its plugin on a node."""

    image: str
    source: str


class GpuDirectFacts(SourcedFile):
    """The GPUDirect table."""

    installer: Installer
    variables: dict[str, str]
    """NCCL's environment variables on all of these machines."""
    variables_source: str
    machines: tuple[RdmaMachines, ...]
    refused: tuple[RefusedMachines, ...]

    def of(self, machine: str) -> RdmaMachines | None:
        """Return the entry of a machine. None if it has no RDMA."""
        return next((each for each in self.machines if machine in each.names), None)

    def why_not(self, machine: str) -> str | None:
        """Return the reason why the platform cannot use a machine's fast network. None if it can, or if the machine has none."""
        return next((each.why for each in self.refused if machine in each.names), None)


@cache
def gpudirect() -> GpuDirectFacts:
    """Return the shipped table."""
    return read_records(_GPUDIRECT, GpuDirectFacts)


GVNIC_NETWORK = "gvnic-1"
"""Name of the Network of the second ordinary card, as in Google's guides."""


def rdma_network_names(count: int) -> list[str]:
    """Return the names of the Networks of the RDMA cards, as in Google's guides."""
    return [f"rdma-{number}" for number in range(count)]


HOST_FOLDER, CONTAINER_FOLDER = "/home/kubernetes/bin/nvidia", "/usr/local/nvidia"
"""Folders of a node's libraries for GKE's device plugin, and of the same libraries in every container with GPUs, even an unprivileged one.

Source: GoogleCloudPlatform/container-engine-accelerators, cmd/nvidia_gpu/nvidia_gpu.go, defaults of host-path and container-path (read
2026-11-26).
"""

GIB_FOLDER = "gib"
"""Subfolder of both with the plugin's files.

Google's guides mount /home/kubernetes/bin/gib, for which a pod would need folders of the host.
"""
