"""Arguments of EksCluster and their defaults."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from collections.abc import Sequence
from typing import NotRequired, TypedDict

import pulumi

from flexspot.capacity.settings.cluster import EksAddons, EksClusterSettings, SystemPool
from flexspot.capacity.settings.network import Access
from flexspot.components.cloud_names import cluster_arn
from flexspot.components.shared_args import RoleOptionsArgs, defaults, filled


@defaults(
    min_nodes=SystemPool.default("min_nodes"),
    max_nodes=SystemPool.default("max_nodes"),
    disk_gib=50,
    node_repair=EksClusterSettings.default("node_repair"),
)
class EksSystemPoolArgs(TypedDict):
    """The nodes for the controllers: on-demand, without GPUs, in a managed node group."""

    machine: str
    """Instance type with an x86 processor, such as m6i.large."""

    min_nodes: NotRequired[int]
    """Number of nodes that always run, at least 1. Default: 2."""

    max_nodes: NotRequired[int]
    """Maximum number of nodes, as headroom for upgrades and manual scaling. Nothing here scales the group, and each `up` resets it to
    `min_nodes`. Default: 4."""

    disk_gib: NotRequired[int]
    """Size of a node's disk for images and pods, in GiB, at least 20. Default: 50."""

    release: NotRequired[str | None]
    """AMI release of the nodes as EKS spells it, such as 1.35.6-20260810. It cannot be derived from the alias in `ami`, which omits the
    Kubernetes patch version.

    Default: the newest when the group is created or its version raised."""

    node_repair: NotRequired[bool]
    """If true, EKS replaces a node that the monitoring agent or the node itself reports as broken. Default: True."""


class AddonsArgs(RoleOptionsArgs):
    """A cluster's name, account and region, and its add-ons."""

    cluster: str
    """The cluster's name: up to 100 letters, digits, hyphens and underscores."""

    account: str
    """The account id, 12 digits."""

    partition: NotRequired[str]
    """aws, aws-cn or aws-us-gov. Default: aws."""

    region: str
    """The region, such as us-east-1."""

    addon_versions: NotRequired[dict[str, str]]
    """Versions of add-ons by name, such as {"coredns": "v1.14.3-eksbuild.3"}, or `recommended` for AWS's default for `version`.

    AWS's default is looked up in each preview and `up`. A stack takes its versions from its plan
    (flexspot/capacity/catalog/versions.yaml), because they depend on the Kubernetes version.

    Default: EKS's default for the cluster's version on the day an add-on is created. Two clusters created on different days may differ,
    and a later `up` changes neither."""

    efs_driver: NotRequired[bool]
    """If true, the add-on aws-efs-csi-driver is installed, which mounts EFS file systems. Default: False."""

    lustre_driver: NotRequired[bool]
    """If true, the add-on aws-fsx-csi-driver is installed, which mounts FSx for Lustre file systems. Default: False."""

    metrics_server: NotRequired[bool]
    """If true, the add-on metrics-server is installed, which reports resource usage to autoscalers and `kubectl top`. Default: True."""

    tags: NotRequired[dict[str, str]]
    """Tags of everything, including the instances and disks of the system nodes. Default: none."""


@defaults(
    partition="aws",
    support=EksClusterSettings.default("support").value,
    access=Access.PRIVATE.value,
    deletion_protection=True,
    log_retention_days=EksClusterSettings.default("log_days"),
    metrics_server=EksAddons.default("metrics_server"),
)
class EksClusterArgs(AddonsArgs):
    """Arguments of EksCluster. Those that are not `Input` are plain, because they shape the cluster or are checked."""

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
    """Ids of the subnets for the control plane's own addresses, in at least two zones.

    Later AWS only accepts other subnets in the same zones. Default: those of `subnet_ids`, whose zones then can never change."""

    services_cidr: str
    """IPv4 range of the Services, /12 to /24 inside 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16, and outside the VPC."""

    access: NotRequired[str]
    """Access to the API server. `private`: only from inside the network. `public_cidrs`: also from `cidrs`. Default: private."""

    cidrs: NotRequired[list[str]]
    """IPv4 ranges that may reach the public endpoint. Only with `public_cidrs`. Default: none."""

    private_cidrs: NotRequired[list[str]]
    """IPv4 ranges inside the network that may reach the private endpoint, such as the VPC's own or a VPN's.

    With access `private`, the machine that runs `up` must be in one of them. Default: none, only the nodes may reach it."""

    deletion_protection: NotRequired[bool]
    """While this is true, the cluster cannot be destroyed. Default: True."""

    kms_key: NotRequired[pulumi.Input[str] | None]
    """ARN of the key that encrypts the API server's data. A different key replaces the cluster.

    Default: a new key, which rotates each year."""

    logs_kms_key: NotRequired[pulumi.Input[str] | None]
    """ARN of the key that encrypts the control plane's logs. Its policy must allow CloudWatch Logs to use it. Default: CloudWatch's own."""

    log_retention_days: NotRequired[int]
    """Days to keep the control plane's logs, one of CloudWatch's retention periods. Default: 90."""

    admin_role_arns: NotRequired[list[str]]
    """ARNs of roles that administer the whole cluster, in addition to the role that creates it, which must not be listed. Default: none."""

    auto_mode: NotRequired[bool]
    """If true, AWS runs Karpenter, load balancers and the add-ons that every cluster needs (EKS Auto Mode). Default: False.

    This component then creates neither system nodes nor add-ons: use AutoSystemPool and AutoAddons."""

    system_pool: NotRequired[EksSystemPoolArgs | None]
    """The nodes for the controllers. Required without `auto_mode`, not allowed with it. Default: none."""

    ami: NotRequired[str | None]
    """Alias of the node AMI, such as al2023@v20260903 or bottlerocket@1.65.0. The system nodes use its family.

    Required without `auto_mode`. With it, AWS chooses. Default: none."""

    owner_labels: NotRequired[dict[str, str]]
    """Labels of the system nodes that identify their owner in reports. Default: none."""


def eks_cluster_arn(args: AddonsArgs) -> str:
    """Return the cluster's ARN, which is known before the cluster exists."""
    return cluster_arn(args["partition"], args["region"], args["account"], args["cluster"])


def system_pool_of(args: EksClusterArgs) -> EksSystemPoolArgs:
    """Return the system pool with its defaults. Raises ValueError in Auto Mode, which has none."""
    if args["system_pool"] is None:
        raise ValueError("in Auto Mode the cluster has no system pool")
    return filled(EksSystemPoolArgs, args["system_pool"])


def ami_family(args: EksClusterArgs) -> str:
    """Return al2023 or bottlerocket."""
    return (args["ami"] or "").partition("@")[0]


def named(args: EksClusterArgs, part: str) -> dict[str, str]:
    """Return the tags of a part of the cluster, with the name that AWS's console shows."""
    return {**args["tags"], "Name": f"{args['cluster']}-{part}"}
