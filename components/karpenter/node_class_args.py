"""The arguments of Ec2NodeClass, and the same with their defaults filled in."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from dataclasses import dataclass, field
from typing import NotRequired, TypedDict

import pulumi

from capacity.settings.pools import EksPool, ReservationKind


class Ec2NodeClassArgs(TypedDict):
    """Arguments of Ec2NodeClass. Those that are not `Input` are plain, because they shape the object or are checked."""

    node_class: str
    """The EC2NodeClass's name, which NodePools refer to."""

    ami: str
    """Alias of the image with its release, al2023@v20250807 or bottlerocket@1.40.0. GPU machines get its NVIDIA variant by themselves."""

    allow_latest_ami: NotRequired[bool]
    """Whether `ami` may be `@latest`, with which every release of the image replaces the nodes. Default: False."""

    cluster: str
    """The cluster's name: the value of the tag karpenter.sh/discovery on its subnets and security groups."""

    node_role: pulumi.Input[str]
    """Name, not ARN, of the role that the nodes run as."""

    subnet_ids: NotRequired[list[pulumi.Input[str]]]
    """Subnets of the nodes. Default: those tagged karpenter.sh/discovery with the cluster's name."""

    security_group_ids: NotRequired[list[pulumi.Input[str]]]
    """Security groups of the nodes; with EFA, one that lets its own members in and out. Default: as for subnets."""

    zones: NotRequired[list[str]]
    """Zones in which the nodes may start, as the NodePool has them; a capacity block needs exactly one. Default: those of the subnets."""

    disk_gib: NotRequired[int]
    """Size of the volume with images, logs and ephemeral storage, in GiB: 20 to 16384. Default: 200."""

    disk_iops: NotRequired[int]
    """The volume's operations a second: 3000 to 16000, and at most 500 a GiB. Default: 6000."""

    disk_throughput_mib: NotRequired[int]
    """The volume's MiB a second: 125 to 1000, and at most a quarter of `disk_iops`. Default: 500."""

    kms_key: NotRequired[pulumi.Input[str] | None]
    """ARN, id or alias of the key that encrypts the volumes. Default: the account's key for EBS."""

    local_nvme: NotRequired[bool]
    """Whether the machine's own NVMe disks, in one RAID 0, take the place of the volume for images, logs and ephemeral storage.

    Default: False.
    """

    detailed_monitoring: NotRequired[bool]
    """Whether CloudWatch has a figure a minute instead of one in five minutes, at a price. Default: False."""

    efa_interfaces: NotRequired[int]
    """EFA interfaces of a node: as many as its machine has network cards (p5.48xlarge 32, p4d.24xlarge 4, g6.8xlarge 1). Default: 0.

    A machine with fewer is not launched, so the NodePool's machines have the same number.
    """

    placement_group: NotRequired[pulumi.Input[str] | None]
    """Name of the placement group in which the nodes start. Default: none."""

    reservation_kind: NotRequired[str]
    """What is reserved: on-demand (an ODCR) or capacity-block (for a fixed time). Default: on-demand."""

    reservation_ids: NotRequired[list[str]]
    """Capacity reservations, such as cr-0a1b2c3d4e5f60718, on which nodes may draw. Default: none."""

    reservation_tags: NotRequired[dict[str, str]]
    """Tags of the capacity reservations on which nodes may draw; `*` is any value. Instead of ids, never beside them. Default: none."""

    tags: dict[str, str]
    """Tags of the instances, volumes, interfaces and launch templates. Karpenter adds its own, Name among them."""

    labels: NotRequired[dict[str, str]]
    """Labels of the EC2NodeClass object. Default: none."""


@dataclass(frozen=True, kw_only=True)
class NodeClass:
    """Ec2NodeClassArgs with their defaults."""

    node_class: str
    ami: str
    allow_latest_ami: bool = False
    cluster: str
    node_role: pulumi.Input[str]
    subnet_ids: list[pulumi.Input[str]] = field(default_factory=list[pulumi.Input[str]])
    security_group_ids: list[pulumi.Input[str]] = field(default_factory=list[pulumi.Input[str]])
    zones: list[str] = field(default_factory=list[str])
    disk_gib: int = EksPool.default("boot_disk_gib")
    disk_iops: int = EksPool.default("boot_disk_iops")
    disk_throughput_mib: int = EksPool.default("boot_disk_throughput_mib")
    kms_key: pulumi.Input[str] | None = None
    local_nvme: bool = False
    detailed_monitoring: bool = False
    efa_interfaces: int = 0
    placement_group: pulumi.Input[str] | None = None
    reservation_kind: str = ReservationKind.ON_DEMAND
    reservation_ids: list[str] = field(default_factory=list[str])
    reservation_tags: dict[str, str] = field(default_factory=dict[str, str])
    tags: dict[str, str]
    labels: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def is_bottlerocket(self) -> bool:
        """Whether the image is Bottlerocket: its system is on a small volume, and all else on a second one."""
        return self.ami.startswith("bottlerocket@")
