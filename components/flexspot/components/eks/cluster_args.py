"""The arguments of EksCluster, and the same with their defaults filled in."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NotRequired, TypedDict

import pulumi

from flexspot.capacity.settings.cluster import EksAddons, EksClusterSettings, SystemPool
from flexspot.capacity.settings.network import Access
from flexspot.components.cloud_names import cluster_arn
from flexspot.components.shared_args import RoleOptionsArgs


class EksSystemPoolArgs(TypedDict):
    """The nodes for the controllers: on-demand, without GPUs, in a managed node group."""

    machine: str
    """Instance type with an x86 processor, such as m6i.large."""

    min_nodes: NotRequired[int]
    """Number of nodes that always run; at least 1. Default: 2."""

    max_nodes: NotRequired[int]
    """Maximum number of nodes, as headroom for upgrades and manual scaling: nothing here scales the group, and each `up` resets it to
    `min_nodes`. Default: 4."""

    disk_gib: NotRequired[int]
    """Size of a node's disk for images and pods, in GiB; at least 20. Default: 50."""

    release: NotRequired[str | None]
    """AMI release of the nodes as EKS spells it, such as 1.35.6-20260810. It cannot be derived from the alias in `ami`, which omits the
    Kubernetes patch version. Default: the newest when the group is created or its version raised."""

    node_repair: NotRequired[bool]
    """Whether EKS replaces a node that the monitoring agent, or the node itself, reports as broken. Default: True."""


class EksClusterArgs(RoleOptionsArgs):
    """Arguments of EksCluster. Those that are not `Input` are plain, because they shape the cluster or are checked."""

    cluster: str
    """The cluster's name: up to 100 letters, digits, hyphens and underscores."""

    account: str
    """The account id, 12 digits."""

    partition: NotRequired[str]
    """aws, aws-cn or aws-us-gov. Default: aws."""

    region: str
    """The region, such as us-east-1."""

    version: str
    """The Kubernetes version, such as 1.35."""

    support: NotRequired[str]
    """`standard`: EKS upgrades the cluster when standard support for its version ends. `extended`: the version stays, at six times the
    price. Default: standard."""

    vpc_id: pulumi.Input[str]
    """Id of the VPC."""

    subnet_ids: pulumi.Input[Sequence[pulumi.Input[str]]]
    """Ids of the private subnets for the system nodes."""

    control_plane_subnet_ids: NotRequired[pulumi.Input[Sequence[pulumi.Input[str]]] | None]
    """Ids of the subnets for the control plane's own addresses, in at least two zones; later AWS only accepts other subnets in the same
    zones. Default: those of `subnet_ids`, whose zones then can never change."""

    services_cidr: str
    """IPv4 range of the Services, /12 to /24 inside 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16, and outside the VPC."""

    access: NotRequired[str]
    """How the API server is reached. `private`: only from inside the network. `public_cidrs`: also from `cidrs`. Default: private."""

    cidrs: NotRequired[list[str]]
    """IPv4 ranges that may reach the public endpoint; only with `public_cidrs`. Default: none."""

    private_cidrs: NotRequired[list[str]]
    """IPv4 ranges inside the network that may reach the private endpoint, such as the VPC's own or a VPN's. With access `private`, the
    machine that runs `up` must be in one of them. Default: none, so only the nodes may reach it."""

    deletion_protection: NotRequired[bool]
    """While this is true, the cluster cannot be destroyed. Default: True."""

    kms_key: NotRequired[pulumi.Input[str] | None]
    """ARN of the key that encrypts the API server's data; a different key replaces the cluster. Default: a new key, which rotates each
    year."""

    logs_kms_key: NotRequired[pulumi.Input[str] | None]
    """ARN of the key that encrypts the control plane's logs; its policy must allow CloudWatch Logs to use it. Default: CloudWatch's own."""

    log_retention_days: NotRequired[int]
    """Days to keep the control plane's logs; one of CloudWatch's retention periods. Default: 90."""

    admin_role_arns: NotRequired[list[str]]
    """ARNs of roles that administer the whole cluster, in addition to the role that creates it, which must not be listed. Default: none."""

    auto_mode: NotRequired[bool]
    """Whether AWS runs Karpenter, the add-ons that every cluster needs and load balancers (EKS Auto Mode). This component then creates
    neither system nodes nor add-ons; use AutoSystemPool and AutoAddons. Default: False."""

    system_pool: NotRequired[EksSystemPoolArgs | None]
    """The nodes for the controllers; required without `auto_mode`, not allowed with it. Default: none."""

    ami: NotRequired[str | None]
    """Alias of the node AMI, such as al2023@v20260903 or bottlerocket@1.65.0; the system nodes use its family. Required without
    `auto_mode`; with it, AWS chooses. Default: none."""

    addon_versions: NotRequired[dict[str, str]]
    """Versions of add-ons by name, such as {"coredns": "v1.14.3-eksbuild.3"}, or `recommended` for AWS's default for `version`, looked
    up in each preview and `up`. Default: EKS's default for the cluster's version on the day an add-on is created, so two clusters
    created on different days may differ, and a later `up` changes neither. A stack takes its versions from its plan
    (flexspot/capacity/catalog/versions.yaml), because they depend on the Kubernetes version."""

    efs_driver: NotRequired[bool]
    """Whether to install the add-on aws-efs-csi-driver, which mounts EFS file systems. Default: False."""

    lustre_driver: NotRequired[bool]
    """Whether to install the add-on aws-fsx-csi-driver, which mounts FSx for Lustre file systems. Default: False."""

    metrics_server: NotRequired[bool]
    """Whether to install the add-on metrics-server, which reports pods' resource usage to autoscalers and `kubectl top`. Default: True."""

    owner_labels: NotRequired[dict[str, str]]
    """Labels of the system nodes that identify their owner in reports. Default: none."""

    tags: NotRequired[dict[str, str]]
    """Tags of everything, including the machines and disks of the system nodes. Default: none."""


@dataclass(frozen=True, kw_only=True)
class EksSystemPoolShape:
    """EksSystemPoolArgs with their defaults."""

    machine: str
    min_nodes: int = SystemPool.default("min_nodes")
    max_nodes: int = SystemPool.default("max_nodes")
    disk_gib: int = 50
    release: str | None = None
    node_repair: bool = EksClusterSettings.default("node_repair")


@dataclass(frozen=True, kw_only=True)
class AddonsShape:
    """What the add-ons of a cluster are made of, with the defaults of EksClusterArgs."""

    cluster: str
    account: str
    partition: str = "aws"
    region: str
    version: str = ""
    addon_versions: dict[str, str] = field(default_factory=dict[str, str])
    efs_driver: bool = False
    lustre_driver: bool = False
    metrics_server: bool = EksAddons.default("metrics_server")
    tags: dict[str, str] = field(default_factory=dict[str, str])
    iam_path: str | None = None
    permissions_boundary: str | None = None

    @property
    def arn(self) -> str:
        """The cluster's ARN, known before it is there."""
        return cluster_arn(self.partition, self.region, self.account, self.cluster)


@dataclass(frozen=True, kw_only=True)
class EksClusterShape(AddonsShape):
    """EksClusterArgs with their defaults. `access` and `support` are as they were written until the checks have passed."""

    version: str
    support: str = EksClusterSettings.default("support").value
    vpc_id: pulumi.Input[str]
    subnet_ids: pulumi.Input[Sequence[pulumi.Input[str]]]
    control_plane_subnet_ids: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None
    services_cidr: str
    access: str = Access.PRIVATE.value
    cidrs: list[str] = field(default_factory=list[str])
    private_cidrs: list[str] = field(default_factory=list[str])
    deletion_protection: bool = True
    kms_key: pulumi.Input[str] | None = None
    logs_kms_key: pulumi.Input[str] | None = None
    log_retention_days: int = EksClusterSettings.default("log_days")
    admin_role_arns: list[str] = field(default_factory=list[str])
    auto_mode: bool = False
    system_pool: EksSystemPoolArgs | None = None
    ami: str | None = None
    owner_labels: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def nodes(self) -> EksSystemPoolShape:
        """The system pool with its defaults. Raises ValueError in Auto Mode, which has none."""
        if self.system_pool is None:
            raise ValueError("in Auto Mode there is no system pool of the cluster's")
        return EksSystemPoolShape(**self.system_pool)  # pyrefly: ignore[open-unpacking] -- no other keys

    @property
    def ami_family(self) -> str:
        """al2023 or bottlerocket."""
        return (self.ami or "").partition("@")[0]

    def named(self, part: str) -> dict[str, str]:
        """The tags of a part of the cluster, with the name that AWS's console shows."""
        return {**self.tags, "Name": f"{self.cluster}-{part}"}
