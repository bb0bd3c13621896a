"""The machine catalog: what one node of a machine type has, as data with a source."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import Field, field_validator, model_validator

from flexspot.capacity.catalog.accelerators import BY_MANUFACTURER, Accelerator
from flexspot.capacity.catalog.data_files import Record, SourcedFile, read_records

_CATALOG = Path(__file__).parent

Count = Annotated[int, Field(ge=1)]


class Vendor(StrEnum):
    """Cloud whose machines and prices a file lists. AWS is EC2, under EKS; GCP is Compute Engine, under GKE."""

    AWS = "aws"
    GCP = "gcp"


LOCAL_SSD_GB = 375
"""GB of one local SSD disk of Compute Engine."""


class BootDisk(StrEnum):
    """The balanced boot disk types of Compute Engine machines: Persistent Disk, or Hyperdisk where the machine supports nothing else."""

    PD_BALANCED = "pd-balanced"
    HYPERDISK_BALANCED = "hyperdisk-balanced"


class Architecture(StrEnum):
    """The processor architecture of a machine's images, as in the label kubernetes.io/arch."""

    AMD64 = "amd64"
    ARM64 = "arm64"


class Confidential(StrEnum):
    """Memory encryption of a confidential machine's processor: SEV and SEV_SNP are AMD technologies, TDX is Intel's (GCP)."""

    SEV = "sev"
    SEV_SNP = "sev_snp"
    TDX = "tdx"


class Gpu(Record):
    """The GPUs of one machine, or its devices of another kind."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    """The cloud's accelerator name, as in its node label:

    `l4` on EKS (karpenter.k8s.aws/instance-gpu-name), `nvidia-l4` on GKE (cloud.google.com/gke-accelerator).
    """
    model: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    """Name of the same GPU on every cloud, with its memory where one name has several sizes: `l4`, `a100-40gb`, `h100-80gb`."""
    manufacturer: str
    """One of the manufacturers in flexspot/capacity/catalog/accelerators.py."""
    counts: Annotated[tuple[Count, ...], Field(min_length=1)]
    """Possible numbers of GPUs: one where machine and GPUs are a fixed pair, several where GPUs are attached."""
    memory_mib: Count
    """Memory of one GPU in MiB, as the cloud reports it."""

    @property
    def count(self) -> int:
        """GPUs of a machine by default: its fixed count, or the fewest that can be attached."""
        return self.counts[0]

    @property
    def memory_gb(self) -> int:
        """Memory of one GPU as its vendor names it: in whole GiB (H100: 80 of 81920 MiB), else in GB of 10^9 (L4: 24 of 22888 MiB)."""
        gib, rest = divmod(self.memory_mib, 1024)
        return gib if rest == 0 else round(self.memory_mib * 2**20 / 10**9)

    @property
    def accelerator(self) -> Accelerator:
        """The kind of accelerator, with its resource and taint."""
        return BY_MANUFACTURER[self.manufacturer]

    @field_validator("manufacturer")
    @classmethod
    def _is_one_that_is_counted(cls, manufacturer: str) -> str:
        if manufacturer not in BY_MANUFACTURER:
            raise ValueError(f"is {manufacturer!r}; allowed: {', '.join(BY_MANUFACTURER)}")
        return manufacturer

    @field_validator("counts")
    @classmethod
    def _counts_rise(cls, counts: tuple[int, ...]) -> tuple[int, ...]:
        if list(counts) != sorted(set(counts)):
            raise ValueError("counts must rise, each once")
        return counts


class Machine(Record):
    """One machine type."""

    name: str
    vcpu: Count
    memory_mib: Count
    """Memory of the node in MiB."""
    max_pods: Annotated[int, Field(ge=0)] = 0
    """Number of pods that a node has addresses for (AWS; 0: not known)."""
    gpu: Gpu | None = None
    local_ssd_gb: Annotated[int, Field(ge=0)] = 0
    """Total GB of the local SSD that comes with the machine."""
    max_local_ssd_disks: Annotated[int, Field(ge=0)] = 0
    """Most local SSD disks of 375 GB that can be added."""
    local_ssd_disks: tuple[Count, ...] = ()
    """Numbers of disks that can be added; empty if not known (GCP)."""
    efa_interfaces: Annotated[int, Field(ge=0)] = 0
    """Network cards that accept an EFA interface (AWS; 0: no EFA). They are consecutive."""
    efa_first_card: Annotated[int, Field(ge=0)] = 0
    """Index of the first of these cards."""
    architecture: Architecture = Architecture.AMD64
    gvnic: bool = False
    """True if the machine needs Google's virtual NIC."""
    compact_placement: bool = False
    """True if the machine supports compact placement (GCP)."""
    flex_start: bool = False
    """True if DWS can provision it."""
    on_demand: bool = True
    """True if it is sold on demand (GCP)."""
    boot_disk: BootDisk = BootDisk.PD_BALANCED
    """Type of its boot disk (GCP)."""
    local_ssd_disk_gb: Count = LOCAL_SSD_GB
    """Size of each disk that comes with the machine: 375 except for A4X (GCP)."""
    tpu_topology: str = ""
    """Arrangement of the TPU chips of one machine, as in GKE's label (GCP; empty if it has none)."""
    one_host: bool = False
    """True if it is never part of a larger TPU slice."""
    confidential: tuple[Confidential, ...] = ()
    """Supported memory encryption (GCP; empty if not supported)."""
    zones: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Zones that offer it, by known region; empty if not known."""
    zone_ids: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """The same zones by IDs, which mean the same in every account (AWS)."""
    source: str

    @property
    def bundled_local_ssd_disks(self) -> int:
        """Number of local SSD disks that come with the machine (GCP)."""
        return self.local_ssd_gb // self.local_ssd_disk_gb

    def offered_in(self, region: str) -> frozenset[str]:
        """Return the zones of a region that offer it, by name and by ID."""
        return frozenset((*self.zones.get(region, ()), *self.zone_ids.get(region, ())))

    @field_validator("zones", mode="before")
    @classmethod
    def _letters(cls, written: Any) -> Any:
        # A file lists the letters of a region's zones.
        return {region: tuple(each) for region, each in cast("dict[str, str]", written).items()} if isinstance(written, dict) else written


_LOCAL_DISKS = "local-ssd-disks"
"""Source of the numbers of disks. No row names it, because a machine's own source does not contain them."""


class UnservedFamilies(Record):
    """Families of machines with accelerators that the platform does not support, with the problem and an alternative."""

    families: Annotated[tuple[str, ...], Field(min_length=1)]
    problem: Annotated[str, Field(min_length=10)]
    instead: Annotated[str, Field(min_length=10)]
    source: str


class MachineFile(SourcedFile):
    """A catalog file: the machines of one cloud, each with a source, and families that no pool can have.

    A row's `zones` are written as the letters of a region's zones (`us-east-1: abcdf`) and read as their names.
    """

    cloud: Vendor
    zone_ids: dict[str, dict[str, int]] = Field(default_factory=dict)
    """Number of each letter's zone, from which zone IDs are built (AWS)."""
    machines: list[Machine]
    unserved: list[UnservedFamilies] = Field(default_factory=list[UnservedFamilies])

    @model_validator(mode="after")
    def _rows_are_unique_and_sorted(self) -> MachineFile:
        names = [machine.name for machine in self.machines]
        if names != sorted(set(names)):
            raise ValueError(f"machines must be sorted by name, each once; found {', '.join(names)}")
        if any(each.local_ssd_disks for each in self.machines) and _LOCAL_DISKS not in self.sources:
            raise ValueError(f"local_ssd_disks has no source {_LOCAL_DISKS}")
        return self


def read_machines(path: Path) -> dict[str, Machine]:
    """Return the machines of a catalog file, by name. Raises DataFileError if the file breaks its schema."""
    file = read_records(path, MachineFile)
    separator = ZONE_SEPARATORS[file.cloud]

    def read(machine: Machine) -> Machine:
        ids = {region: letters for region, letters in machine.zones.items() if region in file.zone_ids}
        by_id = {region: tuple(f"{zone_id_prefix(region)}{file.zone_ids[region][each]}" for each in ids[region]) for region in ids}
        return machine.model_copy(update={"zones": _named(machine.zones, separator), "zone_ids": by_id})

    return {machine.name: read(machine) for machine in file.machines}


ZONE_SEPARATORS = {Vendor.AWS: "", Vendor.GCP: "-"}
"""Separator between a region and the letter of a zone."""

_SHORT = {"gov": "g", "north": "n", "south": "s", "east": "e", "west": "w", "central": "c"}

_MAPPED_BY_ACCOUNT = frozenset(
    f"{place}-{number}"
    for place, numbers in {
        "us-east": "1", "us-west": "12", "us-gov-west": "1", "eu-west": "1", "ap-northeast": "1", "ap-southeast": "12", "sa-east": "1"
    }.items()
    for number in numbers
)  # fmt: skip
"""Regions from before November 2012."""

ZONES_WITHOUT_EKS = frozenset({"use1-az3", "usw1-az2", "cac1-az3"})
"""Zones without EKS control planes: https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html (read 2026-11-24)."""


def zone_id_prefix(region: str) -> str:
    """Return the prefix of a region's zone IDs on AWS: use1-az of us-east-1, apne1-az of ap-northeast-1."""
    words = re.findall("gov|north|south|east|west|central", region)
    return f"{region[:2]}{''.join(_SHORT[each] for each in words)}{region.rpartition('-')[2]}-az"


def zone_in_region(cloud: Vendor, region: str, zone: str) -> bool:
    """Return whether a zone's name, or on AWS its ID, belongs to a region."""
    if cloud is Vendor.AWS and is_zone_id(zone):
        return zone.startswith(zone_id_prefix(region))
    return zone[:-1] == f"{region}{ZONE_SEPARATORS[cloud]}" and zone[-1:].isalpha()


def zone_names_differ(region: str) -> bool:
    """Return whether a zone's name can mean different zones in different accounts. Accounts of November 2025 and later share all names.

    https://docs.aws.amazon.com/global-infrastructure/latest/regions/az-ids.html (read 2026-11-24)
    """
    return region in _MAPPED_BY_ACCOUNT


def machines_with(machines: dict[str, Machine], gpu: str, count: int) -> list[str]:
    """Return the names of `machines` that have, or can have, `count` GPUs with the cloud's name `gpu`."""
    return [name for name, each in machines.items() if each.gpu and each.gpu.name == gpu and count in each.gpu.counts]


def _named(letters: dict[str, tuple[str, ...]], separator: str) -> dict[str, tuple[str, ...]]:
    return {region: tuple(f"{region}{separator}{letter}" for letter in each) for region, each in letters.items()}


@cache
def machines_of(cloud: Vendor) -> dict[str, Machine]:
    """Return the shipped catalog of `cloud`, by machine name."""
    return read_machines(_CATALOG / f"{cloud}.yaml")


@cache
def unserved_families(cloud: Vendor) -> dict[str, UnservedFamilies]:
    """Return the families of `cloud` that no pool can have, by name."""
    file = read_records(_CATALOG / f"{cloud}.yaml", MachineFile)
    return {family: each for each in file.unserved for family in each.families}


_ZONE_ID = re.compile(r"[a-z]{3,5}\d+-az\d+")


def is_zone_id(zone: str) -> bool:
    """Return whether an AWS zone is given by its ID, such as use1-az1."""
    return _ZONE_ID.fullmatch(zone) is not None
