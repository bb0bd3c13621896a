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
    """Whose machines and prices a file lists. AWS is EC2, under EKS; GCP is Compute Engine, under GKE."""

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
    """How the processor encrypts the memory of a confidential machine: SEV and SEV_SNP are AMD technologies, TDX is Intel's (GCP)."""

    SEV = "sev"
    SEV_SNP = "sev_snp"
    TDX = "tdx"


class Gpu(Record):
    """The GPUs of one machine, or its devices of another kind.

    `manufacturer` is one of those in flexspot/capacity/catalog/accelerators.py.

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

    @property
    def memory_gb(self) -> int:
        """The memory of one GPU as its vendor names it: in whole GiB (H100: 80 of 81920 MiB), else in GB of 10^9 (L4: 24 of 22888 MiB)."""
        gib, rest = divmod(self.memory_mib, 1024)
        return gib if rest == 0 else round(self.memory_mib * 2**20 / 10**9)

    @property
    def accelerator(self) -> Accelerator:
        """The kind: what pods ask for, what its nodes are tainted by."""
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
    """One machine type.

    `memory_mib` is the node's memory. `local_ssd_gb` is the local SSD that comes with the machine (GB, in all), `max_local_ssd_disks` how
    many disks of 375 GB can be asked for on top, and `local_ssd_disks` which numbers of them; empty: not known (GCP).
    `efa_interfaces` is how many network cards take an EFA interface (AWS; 0: no EFA); they are one after the other, from `efa_first_card`
    on.
    `max_pods` is how many pods a node has addresses for (AWS; 0: not known).
    `gvnic` says that the machine needs Google's virtual NIC, `compact_placement` that it can be placed compactly (GCP).
    `local_ssd_disk_gb` is how large each disk is that comes with the machine: 375 but for A4X (GCP).
    `boot_disk` is the type of disk that it boots from (GCP), `confidential` how its memory can be encrypted (GCP; empty: not at all).
    `flex_start` says that DWS can provision it, `on_demand` that it is sold on demand (GCP).
    `tpu_topology` is how the TPU chips of one machine are joined, as GKE's label has it (GCP; empty: it has none). `one_host` says that it
    is never a part of a larger slice.
    `zones` lists, for each region known, the zones that offer it; empty: not known.
    `zone_ids` lists the same zones by their ids, which mean the same in every account (AWS).
    """

    name: str
    vcpu: Count
    memory_mib: Count
    max_pods: Annotated[int, Field(ge=0)] = 0
    gpu: Gpu | None = None
    local_ssd_gb: Annotated[int, Field(ge=0)] = 0
    max_local_ssd_disks: Annotated[int, Field(ge=0)] = 0
    local_ssd_disks: tuple[Count, ...] = ()
    efa_interfaces: Annotated[int, Field(ge=0)] = 0
    efa_first_card: Annotated[int, Field(ge=0)] = 0
    architecture: Architecture = Architecture.AMD64
    gvnic: bool = False
    compact_placement: bool = False
    flex_start: bool = False
    on_demand: bool = True
    boot_disk: BootDisk = BootDisk.PD_BALANCED
    local_ssd_disk_gb: Count = LOCAL_SSD_GB
    tpu_topology: str = ""
    one_host: bool = False
    confidential: tuple[Confidential, ...] = ()
    zones: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    zone_ids: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    source: str

    @property
    def bundled_local_ssd_disks(self) -> int:
        """How many local SSD disks come with the machine (GCP)."""
        return self.local_ssd_gb // self.local_ssd_disk_gb

    def offered_in(self, region: str) -> frozenset[str]:
        """The zones of a region that offer it, by name and by id."""
        return frozenset((*self.zones.get(region, ()), *self.zone_ids.get(region, ())))

    @field_validator("zones", mode="before")
    @classmethod
    def _letters(cls, written: Any) -> Any:
        # As a file has them: the letters of a region's zones.
        return {region: tuple(each) for region, each in cast("dict[str, str]", written).items()} if isinstance(written, dict) else written


_LOCAL_DISKS = "local-ssd-disks"
"""The source of the numbers of disks, which no row names: it is not where its machine is from."""


class UnservedFamilies(Record):
    """Families of machines that hold accelerators, and of which the platform makes nothing: why, and what to do instead."""

    families: Annotated[tuple[str, ...], Field(min_length=1)]
    problem: Annotated[str, Field(min_length=10)]
    instead: Annotated[str, Field(min_length=10)]
    source: str


class MachineFile(SourcedFile):
    """A catalog file: the machines of one cloud, each with a source, and families that no pool can have.

    A row's `zones` are written as the letters of a region's zones (`us-east-1: abcdf`) and read as their names. `zone_ids` has the number
    of each letter's zone, of which the ids are made (AWS).
    """

    cloud: Vendor
    zone_ids: dict[str, dict[str, int]] = Field(default_factory=dict)
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
    """The machines of a catalog file, by name. Raises DataFileError when the file breaks its schema."""
    file = read_records(path, MachineFile)
    separator = ZONE_SEPARATORS[file.cloud]

    def read(machine: Machine) -> Machine:
        ids = {region: letters for region, letters in machine.zones.items() if region in file.zone_ids}
        by_id = {region: tuple(f"{zone_id_prefix(region)}{file.zone_ids[region][each]}" for each in ids[region]) for region in ids}
        return machine.model_copy(update={"zones": _named(machine.zones, separator), "zone_ids": by_id})

    return {machine.name: read(machine) for machine in file.machines}


ZONE_SEPARATORS = {Vendor.AWS: "", Vendor.GCP: "-"}
"""What stands between a region and the letter of a zone."""

_SHORT = {"gov": "g", "north": "n", "south": "s", "east": "e", "west": "w", "central": "c"}

_MAPPED_BY_ACCOUNT = frozenset(
    f"{place}-{number}"
    for place, numbers in {
        "us-east": "1", "us-west": "12", "us-gov-west": "1", "eu-west": "1", "ap-northeast": "1", "ap-southeast": "12", "sa-east": "1"
    }.items()
    for number in numbers
)  # fmt: skip
"""The regions from before November 2012."""

ZONES_WITHOUT_EKS = frozenset({"use1-az3", "usw1-az2", "cac1-az3"})
"""Where EKS puts no control plane: https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html (read 2026-11-24)."""


def zone_id_prefix(region: str) -> str:
    """What the ids of a region's zones begin with on AWS: use1-az of us-east-1, apne1-az of ap-northeast-1."""
    words = re.findall("gov|north|south|east|west|central", region)
    return f"{region[:2]}{''.join(_SHORT[each] for each in words)}{region.rpartition('-')[2]}-az"


def zone_in_region(cloud: Vendor, region: str, zone: str) -> bool:
    """Whether a zone, by its name or on AWS by its id, is one of a region, as far as its name says."""
    if cloud is Vendor.AWS and is_zone_id(zone):
        return zone.startswith(zone_id_prefix(region))
    return zone[:-1] == f"{region}{ZONE_SEPARATORS[cloud]}" and zone[-1:].isalpha()


def zone_names_differ(region: str) -> bool:
    """Whether a zone's name means another zone in another account. Accounts of November 2025 and later have the same names everywhere.

    https://docs.aws.amazon.com/global-infrastructure/latest/regions/az-ids.html (read 2026-11-24)
    """
    return region in _MAPPED_BY_ACCOUNT


def machines_with(machines: dict[str, Machine], gpu: str, count: int) -> list[str]:
    """The names of those `machines` that have, or can have, `count` GPUs of `gpu`, in the cloud's own name of it."""
    return [name for name, each in machines.items() if each.gpu and each.gpu.name == gpu and count in each.gpu.counts]


def _named(letters: dict[str, tuple[str, ...]], separator: str) -> dict[str, tuple[str, ...]]:
    return {region: tuple(f"{region}{separator}{letter}" for letter in each) for region, each in letters.items()}


@cache
def machines_of(cloud: Vendor) -> dict[str, Machine]:
    """The shipped catalog of `cloud`, by machine name."""
    return read_machines(_CATALOG / f"{cloud}.yaml")


@cache
def unserved_families(cloud: Vendor) -> dict[str, UnservedFamilies]:
    """The families of `cloud` of which no pool can have a machine, by name."""
    file = read_records(_CATALOG / f"{cloud}.yaml", MachineFile)
    return {family: each for each in file.unserved for family in each.families}


_ZONE_ID = re.compile(r"[a-z]{3,5}\d+-az\d+")


def is_zone_id(zone: str) -> bool:
    """Return whether an AWS zone is given by its ID, such as use1-az1."""
    return _ZONE_ID.fullmatch(zone) is not None
