"""Which machines of GKE reach each other's GPUs by RDMA, and what nodes and pods need for it, as data with a source."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from flexspot.capacity.catalog.data_files import Record, SourcedFile, read_records

_FILE = Path(__file__).with_name("gpudirect.yaml")

Names = Annotated[tuple[str, ...], Field(min_length=1)]


class RdmaMachines(Record):
    """Machines with so many network cards for RDMA, one for each subnetwork; `tuner` is the file of NCCL's choices for them."""

    names: Names
    rdma_networks: Annotated[int, Field(ge=1, le=16)]
    tuner: str
    source: str


class RefusedMachines(Record):
    """Machines whose fast network is none for the platform, and why."""

    names: Names
    why: str
    source: str


class Installer(Record):
    """The image that brings NCCL and its plugin to a node."""

    image: str
    source: str


class GpuDirectFacts(SourcedFile):
    """The whole table. `variables` are what NCCL is told on all of the machines."""

    installer: Installer
    variables: dict[str, str]
    variables_source: str
    machines: tuple[RdmaMachines, ...]
    refused: tuple[RefusedMachines, ...]

    def of(self, machine: str) -> RdmaMachines | None:
        """What there is of a machine; None for one without RDMA."""
        return next((each for each in self.machines if machine in each.names), None)

    def why_not(self, machine: str) -> str | None:
        """Why a machine's fast network is none for the platform; None where it has none, or one that is."""
        return next((each.why for each in self.refused if machine in each.names), None)


@cache
def gpudirect() -> GpuDirectFacts:
    """The shipped table."""
    return read_records(_FILE, GpuDirectFacts)


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
