"""The arguments of GkeGpuNodePool, and the same with their defaults filled in."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from dataclasses import dataclass, field
from typing import NotRequired, TypedDict

import pulumi

from capacity.catalog.capacity_type import CapacityType
from capacity.settings.pools import GkePool
from components.node_taint import NodeTaint


class GkeReservationArgs(TypedDict):
    """Which reservation the nodes draw on."""

    use: str
    """`specific`: the named one alone. `any`: whichever open one matches, and on-demand capacity when none has room."""

    name: NotRequired[str | None]
    """The reservation's name; with `specific` alone. Default: none."""

    project: NotRequired[str | None]
    """The project that owns a shared reservation. Default: the pool's own project."""


class GkeGpuSharingArgs(TypedDict):
    """Several containers on one GPU, each of which still asks for one `nvidia.com/gpu`."""

    strategy: str
    """`time-sharing` or `mps`."""

    clients_per_gpu: int
    """Containers on one GPU, or on one of its MIG partitions, at most: 2 to 48."""


class GkeGpuNodePoolArgs(TypedDict):
    """Arguments of GkeGpuNodePool. Those that are not `Input` are plain, because they shape the pool or are checked."""

    pool: str
    """The node pool's name in GKE and in the plan: up to 40 lower-case letters, digits and hyphens."""

    project: str
    """The GCP project of the cluster."""

    region: str
    """The region of the cluster, such as us-central1."""

    cluster: pulumi.Input[str]
    """The cluster's name."""

    zones: list[str]
    """Zones of the region in which nodes may start, such as us-central1-a; at least one."""

    machine: str
    """The machine type, such as g2-standard-8."""

    accelerator: str
    """GKE's name of the machine's GPUs, such as nvidia-l4."""

    gpus_per_node: int
    """GPUs of one node: those that the machine has, or one of the counts that can be attached to it."""

    capacity_type: str
    """How the capacity is bought: reserved, flex-start, queued, spot or on-demand."""

    min_nodes: NotRequired[int]
    """Nodes that stay, in the whole pool, not in each zone; 0 for flex-start and queued. Default: 0."""

    max_nodes: int
    """Ceiling in nodes of the whole pool, not of each zone; at least 1."""

    node_labels: NotRequired[dict[str, str]]
    """Labels of the nodes besides those that GKE sets by itself. Default: none."""

    taints: list[NodeTaint]
    """Taints of the nodes besides those that GKE sets by itself; one of them on nvidia.com/gpu with the value `present`."""

    resource_labels: dict[str, str]
    """Labels of the pool's virtual machines and disks, by which Google bills them."""

    service_account: pulumi.Input[str]
    """E-mail address of the service account that the nodes run as."""

    max_run_seconds: NotRequired[int | None]
    """Seconds after which every node ends; flex-start alone, 600 to 604800. Default: 604800 for flex-start."""

    shutdown_grace_seconds: NotRequired[int | None]
    """Seconds between the signal and the end of a Spot node, 30 to 120, of which the last 15 are for system pods. Default: GKE's own, 30.

    Needs a control plane of 1.35.0-gke.1171000 or later.
    """

    reservation: NotRequired[GkeReservationArgs | None]
    """The reservation; a reserved pool names one, no other may. Default: none."""

    gpu_driver: NotRequired[str]
    """`default` or `latest`: the driver that GKE installs; `disabled`: something else installs one. Default: default."""

    gpu_sharing: NotRequired[GkeGpuSharingArgs | None]
    """How containers share a GPU. Default: they do not."""

    mig_partition: NotRequired[str | None]
    """Size of the MIG partitions into which every GPU is divided, such as 1g.5gb. Default: GPUs are whole."""

    compact_placement: NotRequired[bool]
    """Whether the nodes are placed close to each other, for traffic between them. Default: False."""

    local_ssd_disks: NotRequired[int]
    """Disks of 375 GB to add to each node, as its ephemeral storage. Default: 0."""

    bundled_local_ssd_disks: NotRequired[int | None]
    """How many of the 375 GB disks that come with the machine are its ephemeral storage: all or 0. Default: all."""

    boot_disk_gib: NotRequired[int]
    """Size of a node's boot disk, in GiB; at least 10. Default: 200."""

    boot_disk_type: NotRequired[str | None]
    """Type of the boot disk. Default: hyperdisk-balanced on a3-ultragpu, a4 and g4 machines, else pd-balanced."""

    secondary_boot_disk_images: NotRequired[list[str]]
    """Disk images that hold container images, such as projects/PROJECT/global/images/IMAGE. Default: none."""

    gvnic: NotRequired[bool | None]
    """Whether nodes use Google's virtual NIC, which A3 and A4 machines need. Default: where the machine needs it."""

    max_pods_per_node: NotRequired[int | None]
    """Pods of one node, at most: 8 to 256. Default: the cluster's own."""


@dataclass(frozen=True, kw_only=True)
class GpuPool:
    """GkeGpuNodePoolArgs with their defaults; None is what the machine or GKE decides."""

    pool: str
    project: str
    region: str
    cluster: pulumi.Input[str]
    zones: list[str]
    machine: str
    accelerator: str
    gpus_per_node: int
    capacity_type: str
    min_nodes: int = 0
    max_nodes: int
    node_labels: dict[str, str] = field(default_factory=dict[str, str])
    taints: list[NodeTaint]
    resource_labels: dict[str, str]
    service_account: pulumi.Input[str]
    max_run_seconds: int | None = None
    shutdown_grace_seconds: int | None = None
    reservation: GkeReservationArgs | None = None
    gpu_driver: str = GkePool.default("gpu_driver").value
    gpu_sharing: GkeGpuSharingArgs | None = None
    mig_partition: str | None = None
    compact_placement: bool = False
    local_ssd_disks: int = 0
    bundled_local_ssd_disks: int | None = None
    boot_disk_gib: int = GkePool.default("boot_disk_gib")
    boot_disk_type: str | None = None
    secondary_boot_disk_images: list[str] = field(default_factory=list[str])
    gvnic: bool | None = None
    max_pods_per_node: int | None = None

    @property
    def is_spot(self) -> bool:
        """Whether the cloud may take the nodes back."""
        return self.capacity_type == CapacityType.SPOT

    @property
    def is_dws(self) -> bool:
        """Whether the Dynamic Workload Scheduler gives the nodes: flex-start, queued or not."""
        return self.capacity_type in {CapacityType.FLEX_START, CapacityType.QUEUED}
