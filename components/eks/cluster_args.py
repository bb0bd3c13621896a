"""The arguments of EksCluster, and the same with their defaults filled in."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NotRequired, TypedDict

import pulumi

from capacity.settings.cluster import EksAddons, EksCluster
from capacity.settings.cluster import SystemPool as SystemPoolSettings
from capacity.settings.network import Access
from components.cloud_names import cluster_arn
from components.shared_args import RoleOptionsArgs


class EksSystemPoolArgs(TypedDict):
    """The nodes of the controllers: on-demand, without GPUs, in a managed node group."""

    machine: str
    """Instance type with an x86 processor, such as m6i.large."""

    min_nodes: NotRequired[int]
    """Nodes that stay; at least 1. Default: 2."""

    max_nodes: NotRequired[int]
    """Ceiling in nodes, for an upgrade or a person in need: nothing here scales the group, and each `up` sets it to `min_nodes`.
    Default: 4."""

    disk_gib: NotRequired[int]
    """Size of a node's disk for images and pods, in GiB; at least 20. Default: 50."""

    release: NotRequired[str | None]
    """Release of the nodes' AMI as EKS spells it, such as 1.35.6-20260810. The alias in `ami` does not tell it: it leaves out the patch of
    Kubernetes. Default: the newest when the group is made or its version raised."""

    node_repair: NotRequired[bool]
    """Whether EKS replaces a node that the monitoring agent, or the node itself, reports as broken. Default: True."""


class EksClusterArgs(RoleOptionsArgs):
    """Arguments of EksCluster. Those that are not `Input` are plain, because they shape the cluster or are checked."""

    cluster: str
    """The cluster's name: up to 100 letters, digits, hyphens and underscores."""

    account: str
    """The id of the account, 12 digits."""

    partition: NotRequired[str]
    """aws, aws-cn or aws-us-gov. Default: aws."""

    region: str
    """The region, such as us-east-1."""

    version: str
    """The version of Kubernetes, such as 1.35."""

    support: NotRequired[str]
    """`standard`: EKS upgrades the cluster when standard support of its version ends. `extended`: it stays, at six times the price.
    Default: standard."""

    vpc_id: pulumi.Input[str]
    """Id of the VPC."""

    subnet_ids: pulumi.Input[Sequence[pulumi.Input[str]]]
    """Ids of private subnets, for the system nodes."""

    control_plane_subnet_ids: NotRequired[pulumi.Input[Sequence[pulumi.Input[str]]] | None]
    """Ids of subnets in two zones or more, for the control plane's own addresses: AWS takes others later only in the same zones. Default:
    those of `subnet_ids`, whose zones then never change."""

    services_cidr: str
    """IPv4 range of the Services, /12 to /24 inside 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16, and outside the VPC."""

    access: NotRequired[str]
    """How the API server is reached. `private`: from inside the network alone. `public_cidrs`: from `cidrs` as well. Default: private."""

    cidrs: NotRequired[list[str]]
    """IPv4 ranges from which the public endpoint is reached; with `public_cidrs` alone. Default: none."""

    private_cidrs: NotRequired[list[str]]
    """IPv4 ranges inside the network from which the private endpoint is reached, such as the VPC's own or a VPN's. Default: none, which
    leaves it to the nodes: whoever runs `up` with access `private` must be in one of these."""

    deletion_protection: NotRequired[bool]
    """Whether the cluster cannot be destroyed until this is false. Default: True."""

    kms_key: NotRequired[pulumi.Input[str] | None]
    """ARN of the key that encrypts what the API server stores; another one later replaces the cluster. Default: a key of its own, which
    rotates each year."""

    logs_kms_key: NotRequired[pulumi.Input[str] | None]
    """ARN of the key that encrypts the control plane's logs; its policy lets CloudWatch Logs use it. Default: CloudWatch's own."""

    log_retention_days: NotRequired[int]
    """For how many days the control plane's logs are kept, one of CloudWatch's numbers. Default: 90."""

    admin_role_arns: NotRequired[list[str]]
    """ARNs of roles that administer the whole cluster, besides the one that makes it, which must not be named. Default: none."""

    auto_mode: NotRequired[bool]
    """Whether AWS runs Karpenter, the add-ons that every cluster needs and load balancers, in EKS Auto Mode. The cluster then has neither
    system nodes nor add-ons of this component's: AutoSystemPool and AutoAddons are for these. Default: False."""

    system_pool: NotRequired[EksSystemPoolArgs | None]
    """The nodes of the controllers; needed without `auto_mode`, and there are none with it. Default: none."""

    ami: NotRequired[str | None]
    """Alias of the nodes' AMI, such as al2023@v20260903 or bottlerocket@1.65.0; the system nodes take the family from it. Needed without
    `auto_mode`, and AWS's to choose with it. Default: none."""

    addon_versions: NotRequired[dict[str, str]]
    """Versions of add-ons by name, such as {"coredns": "v1.14.3-eksbuild.3"}, or `recommended` for the one that AWS has as its default for
    `version`, asked of AWS in each preview and `up`. Default: what EKS gives with the cluster's version on the day
    an add-on is made; so two clusters made on two days may differ, and no later `up` changes either. Those of a stack are in its plan, from
    capacity/catalog/versions.yaml: not here, because which there are depends on the version of Kubernetes."""

    efs_driver: NotRequired[bool]
    """Whether the add-on aws-efs-csi-driver is installed, which mounts file systems of EFS. Default: False."""

    lustre_driver: NotRequired[bool]
    """Whether the add-on aws-fsx-csi-driver is installed, which mounts file systems of FSx for Lustre. Default: False."""

    metrics_server: NotRequired[bool]
    """Whether the add-on metrics-server is installed, which tells autoscalers of pods and `kubectl top` what pods use. Default: True."""

    owner_labels: NotRequired[dict[str, str]]
    """Labels of the system nodes that say whose they are, to reports. Default: none."""

    tags: NotRequired[dict[str, str]]
    """Tags of everything, the machines and disks of the system nodes included. Default: none."""


@dataclass(frozen=True, kw_only=True)
class SystemPool:
    """EksSystemPoolArgs with their defaults."""

    machine: str
    min_nodes: int = SystemPoolSettings.default("min_nodes")
    max_nodes: int = SystemPoolSettings.default("max_nodes")
    disk_gib: int = 50
    release: str | None = None
    node_repair: bool = EksCluster.default("node_repair")


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
class ClusterShape(AddonsShape):
    """EksClusterArgs with their defaults. `access` and `support` are as they were written until the checks have passed."""

    version: str
    support: str = EksCluster.default("support").value
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
    log_retention_days: int = EksCluster.default("log_days")
    admin_role_arns: list[str] = field(default_factory=list[str])
    auto_mode: bool = False
    system_pool: EksSystemPoolArgs | None = None
    ami: str | None = None
    owner_labels: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def nodes(self) -> SystemPool:
        """The system pool with its defaults. Raises ValueError in Auto Mode, which has none."""
        if self.system_pool is None:
            raise ValueError("in Auto Mode there is no system pool of the cluster's")
        return SystemPool(**self.system_pool)  # pyrefly: ignore[open-unpacking] -- no other keys

    @property
    def ami_family(self) -> str:
        """al2023 or bottlerocket."""
        return (self.ami or "").partition("@")[0]

    def named(self, part: str) -> dict[str, str]:
        """The tags of a part of the cluster, with the name that AWS's console shows."""
        return {**self.tags, "Name": f"{self.cluster}-{part}"}
