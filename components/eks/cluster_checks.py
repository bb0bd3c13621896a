"""What EksCluster refuses, before anything is registered."""

from __future__ import annotations

import re
from ipaddress import IPv4Network
from typing import TYPE_CHECKING

from capacity.settings.cluster import Support
from capacity.settings.network import Access, too_wide
from capacity.values.names import AMI_ALIAS, EKS_VERSION
from components.eks.addons import ADDONS, EBS_DRIVER
from components.eks.names import check_choice, check_cluster_name, check_form, check_place
from components.ipv4_range import ipv4_range

if TYPE_CHECKING:
    from components.eks.cluster_args import ClusterShape, SystemPool

ACCESSES = [Access.PRIVATE.value, Access.PUBLIC_CIDRS.value]
"""dns_iam is GKE's: EKS has no endpoint that IAM guards before the request reaches the API server."""

RETENTIONS = (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653)
"""Days that CloudWatch Logs takes (PutRetentionPolicy). Its 0, for ever, is left out: logs are finite."""

_PRIVATE = [IPv4Network(each) for each in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")]
_SERVICES = range(12, 25)
_SMALLEST_DISK_GIB = 20

_ARM = re.compile(r"(a1|[a-z]+\d+g[a-z]*)\..*")
"""Instance types with AWS's own processors: a g after the generation, as in m7g, c6gd or im4gn."""

_VERSION = re.compile(r"v(\d+)\.(\d+)\.(\d+)-eksbuild\.\d+")
EBS_DRIVER_AT_LEAST = (1, 58)
"""The first release that works with AmazonEBSCSIDriverEKSClusterScopedPolicy: it tags what it makes with its cluster."""


def check_cluster(name: str, shape: ClusterShape) -> None:
    """Raises ValueError for what EKS would refuse, and for what is neither safe nor finite."""
    where = f"EksCluster {name}:"
    check_cluster_name(where, shape.cluster)
    check_place(where, shape.account, shape.partition, shape.region)
    check_form(f"{where} version", shape.version, EKS_VERSION)
    check_choice(f"{where} support", shape.support, list(Support))
    check_choice(f"{where} access", shape.access, ACCESSES)
    _check_services(where, shape.services_cidr)
    _check_cidrs(where, shape)
    if shape.log_retention_days not in RETENTIONS:
        raise ValueError(
            f"{where} log_retention_days is {shape.log_retention_days}; allowed: {', '.join(map(str, RETENTIONS))}; use 90 if in doubt"
        )
    _check_admins(where, shape)
    check_form(f"{where} ami", shape.ami, AMI_ALIAS)
    _check_system_pool(where, shape.nodes)
    _check_versions(where, shape.addon_versions)


def _check_services(where: str, written: str) -> None:
    services = ipv4_range(f"{where} services_cidr", written)
    if services.prefixlen not in _SERVICES or not any(services.subnet_of(each) for each in _PRIVATE):
        raise ValueError(
            f"{where} services_cidr is {written!r}; allowed is /12 to /24 inside {', '.join(map(str, _PRIVATE))}; "
            "use 172.20.0.0/16 if in doubt"
        )


def _check_cidrs(where: str, shape: ClusterShape) -> None:
    for key, ranges in (("cidrs", shape.cidrs), ("private_cidrs", shape.private_cidrs)):
        for written in ranges:
            ipv4_range(f"{where} {key}", written)
        if too_wide(ranges):
            raise ValueError(
                f"{where} {key} is {ranges!r}; allowed is no range wider than /8, a good part of the internet; name the ranges of your own "
                "network"
            )
    if (shape.access == Access.PUBLIC_CIDRS) != bool(shape.cidrs):
        raise ValueError(
            f"{where} cidrs is {shape.cidrs!r} with access {shape.access}; allowed is at least one range with public_cidrs and none with "
            "private; name the ranges of your own network, or leave them out"
        )


def _check_admins(where: str, shape: ClusterShape) -> None:
    form = re.compile(rf"arn:{re.escape(shape.partition)}:iam::\d{{12}}:role/[\w+=,.@/-]+")
    strangers = [arn for arn in shape.admin_role_arns if not form.fullmatch(arn)]
    if strangers or len(set(shape.admin_role_arns)) < len(shape.admin_role_arns):
        raise ValueError(
            f"{where} admin_role_arns is {shape.admin_role_arns!r}; allowed are ARNs of roles, each once, such as "
            f"arn:{shape.partition}:iam::{shape.account}:role/platform-admin; a user or a session has none: name its role"
        )


def _check_system_pool(where: str, pool: SystemPool) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9-]*\.[a-z0-9-]+", pool.machine) or _ARM.fullmatch(pool.machine):
        raise ValueError(
            f"{where} system_pool.machine is {pool.machine!r}; allowed is an instance type with an x86 processor; name one, such as "
            "m6i.large"
        )
    if not 1 <= pool.min_nodes <= pool.max_nodes:
        raise ValueError(
            f"{where} system_pool has min_nodes {pool.min_nodes} and max_nodes {pool.max_nodes}; allowed is 1 <= min_nodes <= max_nodes; "
            "raise max_nodes"
        )
    if pool.disk_gib < _SMALLEST_DISK_GIB:
        raise ValueError(f"{where} system_pool.disk_gib is {pool.disk_gib}; allowed is at least {_SMALLEST_DISK_GIB}; use 50 if in doubt")


def _check_versions(where: str, versions: dict[str, str]) -> None:
    for addon, version in versions.items():
        check_choice(f"{where} addon_versions names {addon!r}, which", addon, sorted(each.name for each in ADDONS))
        found = _VERSION.fullmatch(version)
        if not found:
            raise ValueError(
                f"{where} addon_versions.{addon} is {version!r}; allowed is a version as EKS spells it, such as v1.14.3-eksbuild.3; "
                "`aws eks describe-addon-versions` lists them"
            )
        if addon == EBS_DRIVER and (int(found[1]), int(found[2])) < EBS_DRIVER_AT_LEAST:
            raise ValueError(
                f"{where} addon_versions.{addon} is {version!r}; allowed is v{EBS_DRIVER_AT_LEAST[0]}.{EBS_DRIVER_AT_LEAST[1]} or newer, "
                "because older ones do not tag volumes with their cluster, and its role may touch no others; name a newer one"
            )
