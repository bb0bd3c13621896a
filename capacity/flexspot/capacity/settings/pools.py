"""Settings of pools: machines, capacity type, ceiling and classes, with options of GKE and EKS."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, field_validator, model_validator

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.data_files import DescribedRecord
from flexspot.capacity.catalog.gke_accelerators import Topology
from flexspot.capacity.catalog.machines import Confidential
from flexspot.capacity.settings.gke_security import KmsKey
from flexspot.capacity.values.cron import cron_problem
from flexspot.capacity.values.names import (
    AWS_ACCOUNT,
    CAPACITY_RESERVATION,
    CRON,
    DISK_IMAGE,
    GCP_PROJECT,
    MIG_PARTITION,
    RESOURCE_NAME,
    Name,
    Zone,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexspot.capacity.catalog.machines import Machine

MAX_NODES = 5000
"""Maximum nodes of a pool: more than either cloud allows in one cluster's pool by default."""


GP3_IOPS, GP3_THROUGHPUT_MIB = 3000, 125
"""IOPS and throughput (MiB/s) included in the price of every gp3 volume. https://aws.amazon.com/ebs/pricing (read 2026-11-24)"""

_IOPS_PER_GIB, _IOPS_PER_MIB = 500, 4
"""Maximum IOPS per GiB of a gp3 volume, and IOPS that each MiB/s of throughput requires.

https://docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html
"""


class PoolSettings(DescribedRecord):
    """Machines of one type and one capacity type, up to a ceiling."""

    name: Name
    """The pool's name, as shares and limits refer to it."""

    machine: str
    """A machine from the catalog, or one of `machines` (EKS and GKE)."""

    capacity_type: CapacityType
    """Capacity type: how the machines are bought."""

    gpus_per_node: Annotated[int, Field(ge=1, le=16)] | None = None
    """GPUs per node. Required where GPUs are attached to the machine (GKE's n1). Where the machine type fixes the number, that number is
    the default, and a value given here must match it."""

    max_nodes: Annotated[int, Field(ge=1, le=MAX_NODES)] | None = None
    """Ceiling in nodes, for the whole pool, not per zone. Set this or max_gpus; there is no default."""

    max_gpus: Annotated[int, Field(ge=1, le=16 * MAX_NODES)] | None = None
    """Ceiling in GPUs, for the whole pool, not per zone. Set this or max_nodes; there is no default."""

    max_vcpu: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Ceiling in vCPU. A value that makes the other ceilings unreachable is rejected. Default: none."""

    max_memory_gib: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    """Ceiling in memory, in GiB. A value that makes the other ceilings unreachable is rejected. Default: none."""

    min_nodes: Annotated[int, Field(ge=0, le=MAX_NODES)] = 0
    """Nodes that keep running even when idle."""

    zones: tuple[Zone, ...] = ()
    """Zones of this pool, a subset of the platform's zones. Default: all of them."""

    serves: Annotated[tuple[Name, ...], Field(min_length=1)]
    """The workload classes that may use the pool. A pool that serves a single class is tainted for it."""

    node_sharing: bool = False
    """If true, several pods may run on one node of a pool that several teams use. Pods of one team may then leave no node with enough free
    GPUs for a pod within another team's share. If false, each pod there uses all GPUs of its node. No effect on other pools."""

    @model_validator(mode="after")
    def _has_a_ceiling(self) -> Self:
        if self.max_nodes is None and self.max_gpus is None:
            raise ValueError("has no ceiling; set max_nodes or max_gpus")
        return self


class LocalPool(PoolSettings):
    """A pool of the local control plane. Its fake nodes imitate EKS nodes; only Spot and on-demand."""

    alternatives: tuple[str, ...] = ()
    """Other machines with the same GPUs that the pool may also launch."""


class ReservationUse(StrEnum):
    """GCP reservations that a pool's nodes may use. SPECIFIC: only the named one. ANY: any open reservation that matches.

    With either, a node does not start at on-demand prices when the reservations are full.
    """

    SPECIFIC = "specific"
    ANY = "any"


class GkeReservation(DescribedRecord):
    """The GCP reservation that a reserved pool uses."""

    use: ReservationUse = ReservationUse.SPECIFIC
    """`specific`: only the named reservation. `any`: any open reservation that matches. Nodes that do not fit do not start; for
    on-demand capacity in addition to a reservation, add a separate pool with its own ceiling and price."""

    name: Annotated[str, Field(pattern=RESOURCE_NAME)] | None = None
    """The reservation's name; only with `specific`. Default: none."""

    project: Annotated[str, Field(pattern=GCP_PROJECT)] | None = None
    """The project that owns a shared reservation. Default: the platform's."""

    block: Annotated[str, Field(pattern=RESOURCE_NAME)] | None = None
    """Name of the one reservation block that nodes come from, such as h200-block-0001; the machines of a block are close together.
    Available for A3 High (eight GPUs), A3 Mega, A3 Ultra, A4 and A4X machines. Default: any block."""

    sub_block: Annotated[str, Field(pattern=RESOURCE_NAME)] | None = None
    """Name of the one sub-block of `block` that nodes come from, such as h200-block-0001-subblock-0003. Default: any."""

    @model_validator(mode="after")
    def _name_fits_the_use(self) -> Self:
        if (self.use is ReservationUse.SPECIFIC) != (self.name is not None):
            raise ValueError("use: specific needs a name; with use: any, leave the name out")
        if self.block is not None and self.name is None:
            raise ValueError("use: any accepts no block; name the reservation whose blocks `gcloud compute reservations blocks list` shows")
        if self.sub_block is not None and self.block is None:
            raise ValueError("sub_block needs block; name the block that contains it")
        return self


class GpuDriver(StrEnum):
    """NVIDIA driver that GKE installs. DEFAULT is the driver of the GKE version; with DISABLED, another DaemonSet must install one."""

    DEFAULT = "default"
    LATEST = "latest"
    DISABLED = "disabled"


class SharingStrategy(StrEnum):
    """Way of sharing a GPU. TIME_SHARING lets containers take turns, without isolation; MPS runs them concurrently with limits."""

    TIME_SHARING = "time-sharing"
    MPS = "mps"


class GpuSharing(DescribedRecord):
    """Several containers share one GPU; each counts as one `nvidia.com/gpu`."""

    strategy: SharingStrategy
    """`time-sharing` lets containers take turns, without isolation; `mps` runs them concurrently with limits."""

    clients_per_gpu: Annotated[int, Field(ge=2, le=48)]
    """Maximum number of containers per GPU."""


UPGRADED_AT_ONCE = 20
"""Maximum nodes of a pool that GKE upgrades at once: surge and unavailable ones together (documentation of the provider's
google_container_node_pool, upgrade_settings, read 2026-11-24)."""


class GkeSurge(DescribedRecord):
    """Number of nodes of a pool that an upgrade replaces at once.

    By default one node is removed before its replacement is created, because a full reservation, or a zone without spare GPUs, has no room
    for an extra node (https://cloud.google.com/kubernetes-engine/docs/how-to/node-upgrades-quota).
    """

    max_surge: Annotated[int, Field(ge=0, le=UPGRADED_AT_ONCE)] = 0
    """Extra nodes created before old ones are removed. Each uses quota, and capacity of a reservation."""

    max_unavailable: Annotated[int, Field(ge=0, le=UPGRADED_AT_ONCE)] = 1
    """Nodes removed before their replacements are created."""

    @model_validator(mode="after")
    def _upgrades_one_to_twenty_nodes(self) -> Self:
        if not 1 <= self.max_surge + self.max_unavailable <= UPGRADED_AT_ONCE:
            raise ValueError(f"max_surge and max_unavailable are {self.max_surge + self.max_unavailable} nodes; GKE allows 1 to 20 in all")
        return self


class GkeNodeOptions(DescribedRecord):
    """Options of the nodes of a GKE pool in addition to the machine. Both stacks and GkeGpuNodePool take them."""

    reservation: GkeReservation | None = None
    """The reservation; only for a reserved pool. Default: none."""

    shutdown_grace_seconds: Annotated[int, Field(ge=30, le=120)] | None = None
    """Seconds between the termination signal and the end of a Spot node, of which the last 15 are for system pods. More than the default
    requires GKE 1.35.0-gke.1171000. Default: 30, GKE's own."""

    gpu_driver: GpuDriver = GpuDriver.DEFAULT
    """The NVIDIA driver that GKE installs: `default`, the driver of the GKE version; `latest`; or `disabled`, if another DaemonSet
    installs one."""

    gpu_sharing: GpuSharing | None = None
    """Several containers share one GPU. Only for classes without a queue, because a quota counts whole GPUs. Default: GPUs are not
    shared."""

    mig_partition: Annotated[str, Field(pattern=MIG_PARTITION)] | None = None
    """The MIG partition size into which every GPU is split, such as 1g.10gb; only for classes without a queue. Default: GPUs are not
    split."""

    compact_placement: bool = False
    """Place nodes close together, at the cost of more stock-outs."""

    tpu_topology: Topology | None = None
    """Topology of the slice that the TPU chips of several nodes form, such as 4x4 or 2x2x4. The pool is this one slice, and its ceiling
    is the whole slice. Default: each node uses its own chips, connected as on its machine."""

    local_ssd_disks: Annotated[int, Field(ge=0, le=32)] = 0
    """Number of 375 GB disks in addition to those that come with the machine."""

    boot_disk_gib: Annotated[int, Field(ge=10, le=65_536)] = 200
    """Size of a node's boot disk, in GiB."""

    boot_disk_kms_key: KmsKey | None = None
    """Name of a Cloud KMS key in the region that encrypts the boot disks. Compute Engine's service agent must first be allowed to use
    it. Default: the cluster's key (`cluster.security`), or Google's."""

    confidential_nodes: Confidential | None = None
    """Memory encryption of the nodes: `sev`, `sev_snp` or `tdx`, on machines that support it. Default: no encryption by the processor."""

    secondary_boot_disk_images: tuple[Annotated[str, Field(pattern=DISK_IMAGE)], ...] = ()
    """Disk images with preloaded container images, which nodes then need not pull, such as projects/PROJECT/global/images/IMAGE."""

    surge: GkeSurge | None = None
    """Number of nodes that an upgrade replaces at once; not for flex-start and queued pools, whose nodes GKE does not upgrade while they
    run. Default: one, removed before its replacement is created."""

    hold_upgrades: bool = False
    """Upgrade nodes only when support for their version ends; not for flex-start and queued pools, whose nodes GKE does not upgrade
    while they run."""


class NodeNetwork(StrEnum):
    """Network between GPUs on different nodes.

    ORDINARY uses the nodes' own network over TCP; GPUDIRECT accesses GPU memory by RDMA, on machines with network cards for it.
    """

    ORDINARY = "ordinary"
    GPUDIRECT = "gpudirect"


class GkePool(GkeNodeOptions, PoolSettings):
    """A pool of GKE."""

    network: NodeNetwork = NodeNetwork.ORDINARY
    """`gpudirect`: GPUs on different nodes communicate by RDMA over dedicated networks, on machines with network cards for it (A3 Ultra
    and A4). The pool uses one zone, the same for all such pools. `ordinary`: TCP."""

    max_run_hours: Annotated[int, Field(ge=1)] | None = None
    """Hours after which each node of a flex-start pool ends; at most 168 (7 days), which is also the default. In a queued pool the jobs
    set this themselves."""

    topology: bool = False
    """Let Kueue place a job's pods by network topology. Only for pools with classes of their own, whose nodes either always run
    (min_nodes equals max_nodes) or are queued."""


class ReservationKind(StrEnum):
    """Kind of AWS reservation. ON_DEMAND is an ODCR, kept until it is cancelled. CAPACITY_BLOCK is for a fixed time, in one zone."""

    ON_DEMAND = "on-demand"
    CAPACITY_BLOCK = "capacity-block"


class EksReservation(DescribedRecord):
    """The AWS capacity reservations that a reserved pool uses, selected by ids or by tags, never both."""

    kind: ReservationKind = ReservationKind.ON_DEMAND
    """`on-demand` is an ODCR, kept until it is cancelled; `capacity-block` is for a fixed time, in one zone."""

    ids: tuple[Annotated[str, Field(pattern=CAPACITY_RESERVATION)], ...] = ()
    """Reservation ids, cr-..."""

    tags: dict[str, str] = Field(default_factory=dict)
    """Tags of the reservations."""

    owner: Annotated[str, Field(pattern=AWS_ACCOUNT)] | None = None
    """The account that owns the reservations, if another account shares them with this one. Only with tags, because an id already
    identifies its account. Default: any."""

    @model_validator(mode="after")
    def _either_ids_or_tags(self) -> Self:
        if bool(self.ids) == bool(self.tags):
            raise ValueError("must have exactly one of ids and tags; set one of them")
        if self.owner is not None and self.ids:
            raise ValueError("owner cannot be combined with ids, each of which identifies its account; leave it out")
        return self


class QuietHoursSettings(DescribedRecord):
    """A period in which Karpenter does not disrupt nodes voluntarily."""

    schedule: Annotated[str, Field(pattern=CRON)]
    """Start of the period, in UTC: a cron expression with five fields."""

    hours: Annotated[int, Field(ge=1, le=168)]
    """Length of the period in hours."""

    @field_validator("schedule")
    @classmethod
    def _karpenter_can_parse_it(cls, schedule: str) -> str:
        if problem := cron_problem(schedule):
            raise ValueError(f"{problem} (as Karpenter reads cron)")
        return schedule


@dataclass(frozen=True)
class Gp3Volume:
    """A gp3 volume."""

    gib: int
    iops: int = GP3_IOPS
    """Operations per second."""
    throughput_mib: int = GP3_THROUGHPUT_MIB
    """MiB per second."""


IMAGES_AND_SCRATCH = Gp3Volume(200, 6000, 500)
"""Default of a GPU node without NVMe disks: images of tens of GiB are unpacked on the volume, and jobs write to it."""

SYSTEM_ALONE = Gp3Volume(30)
"""Default if the machine's NVMe disks hold images, logs and scratch data. The image itself requires at least 20 GiB (the volume of the
AL2023 AMIs, variant nvidia too: awslabs/amazon-eks-ami, templates/al2023/variables-default.json, read 2026-11-24)."""

OTHER_WORK_VOLUME = Gp3Volume(100)
"""Default of nodes for work without GPUs, whose images are small."""


def default_volume(machines: Iterable[Machine]) -> Gp3Volume:
    """Return the default volume of a node that may be any of `machines`. NVMe disks only count if every machine has them."""
    return SYSTEM_ALONE if all(machine.local_ssd_gb for machine in machines) else IMAGES_AND_SCRATCH


class EksNodeDisk(DescribedRecord):
    """The volume of a node of EKS. Both stacks and Ec2NodeClass take these options.

    The bounds are gp3's, as in the CRD of EC2NodeClass v1.14.1. The minimum is 20 GiB because an image takes a few GiB itself. The defaults
    depend on the node, so `volume` calculates them.
    """

    boot_disk_gib: Annotated[int, Field(ge=20, le=16_384)] | None = None
    """Size of the encrypted gp3 volume for images and scratch data, in GiB. Default: 200; 30 where the machine's NVMe disks replace it,
    and 100 for `other_work`; more if boot_disk_iops requires it."""

    boot_disk_iops: Annotated[int, Field(ge=3000, le=16_000)] | None = None
    """IOPS of that volume (operations a second); at most 500 per GiB. Default: 6000; 3000, which is free, where NVMe disks replace it
    and for `other_work`; more if boot_disk_throughput_mib requires it."""

    boot_disk_throughput_mib: Annotated[int, Field(ge=125, le=1000)] | None = None
    """Throughput of that volume, in MiB a second; at most a quarter of boot_disk_iops. Default: 500; 125, which is free, where NVMe
    disks replace it and for `other_work`."""

    def volume(self, default: Gp3Volume) -> Gp3Volume:
        """Return the requested volume, with missing values from `default`, raised or lowered to fit the requested ones."""
        throughput = self.boot_disk_throughput_mib or min(default.throughput_mib, (self.boot_disk_iops or default.iops) // _IOPS_PER_MIB)
        most = None if self.boot_disk_gib is None else self.boot_disk_gib * _IOPS_PER_GIB
        iops = self.boot_disk_iops or min(max(default.iops, throughput * _IOPS_PER_MIB), most or default.iops * _IOPS_PER_GIB)
        return Gp3Volume(self.boot_disk_gib or max(default.gib, -(-iops // _IOPS_PER_GIB)), iops, throughput)

    @model_validator(mode="after")
    def _within_gp3_limits(self) -> Self:
        gib, iops, throughput = self.boot_disk_gib, self.boot_disk_iops, self.boot_disk_throughput_mib
        if iops is not None and throughput is not None and throughput * _IOPS_PER_MIB > iops:
            raise ValueError("boot_disk_throughput_mib is above a quarter of boot_disk_iops; raise boot_disk_iops")
        if gib is not None and iops is not None and iops > gib * _IOPS_PER_GIB:
            raise ValueError("boot_disk_iops is above 500 for each GiB; raise boot_disk_gib")
        return self


class EksPool(EksNodeDisk, PoolSettings):
    """A pool of EKS."""

    alternatives: tuple[str, ...] = ()
    """Other machines with the same GPUs that the pool may also launch."""

    reservation: EksReservation | None = None
    """The reservations; only for a reserved pool. Default: none."""

    quiet_hours: tuple[QuietHoursSettings, ...] = ()
    """Periods in which Karpenter does not disrupt nodes voluntarily."""

    efa: bool = False
    """Give every network card of every node an EFA interface, for multi-node training."""

    compact_placement: bool = False
    """Run nodes close together in a cluster placement group: in one zone, without a reservation, with more stock-outs."""
