"""EksCluster: arguments that it refuses before anything is registered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from eks_cluster_args import ACCOUNT, NODE_GROUP, args

from flexspot.components.eks.cluster import EksCluster

if TYPE_CHECKING:
    from component_types import Refusal, Register


def pool(**changes: Any) -> dict[str, Any]:
    return {"system_pool": {"machine": "m6i.large", **changes}}


def public(*cidrs: str) -> dict[str, Any]:
    return {"access": "public_cidrs", "cidrs": [*cidrs]}


@pytest.mark.parametrize(
    "change,problem",
    [
        ({"cluster": "c" * 101}, "must be letters, digits, hyphens and underscores, 100 at most"),
        ({"cluster": ""}, "cluster (is ''): must"),
        ({"account": "acme"}, "account (is 'acme'): must be an account ID, 12 digits"),
        ({"partition": "aws-mars"}, "partition (is 'aws-mars'): must be one of aws, aws-cn, aws-us-gov"),
        ({"partition": "aws-cn"}, "partition (is 'aws-cn'): region us-east-1 is in partition aws;"),
        ({"region": "us-gov-west-1"}, "partition (is 'aws'): region us-gov-west-1 is in partition aws-us-gov"),
        ({"region": "us-central1"}, "region (is 'us-central1'): must be a region"),
        ({"version": "1.35.0"}, "version (is '1.35.0'): must be a version in quotes such as '1.35'"),
        ({"support": "STANDARD"}, "support (is 'STANDARD'): must be one of standard, extended"),
        ({"services_cidr": "172.20.0.0"}, "services_cidr (is '172.20.0.0'): is not an IPv4 range"),
        ({"services_cidr": "100.64.0.0/16"}, "is not a range that EKS accepts for Services; allowed: /12 to /24 inside 10.0.0.0/8"),
        ({"services_cidr": "services"}, "services_cidr (is 'services'): is not an IPv4 range"),
        ({"access": "public"}, "access (is 'public'): must be one of private, public_cidrs"),
        ({"access": "dns_iam"}, "access (is 'dns_iam'): must be one of private, public_cidrs"),
        (
            public(),
            "access: public_cidrs needs cidrs, and no other access accepts them; name ranges of your own network, or leave cidrs out",
        ),
        (public("0.0.0.0/0"), "cidrs has a range wider than /8, a large part of the internet; name the"),
        (public("office"), "cidrs.0 (is 'office'): is not an IPv4 range"),
        (
            {"cidrs": ["203.0.113.0/24"]},
            "access: public_cidrs needs cidrs, and no other access accepts them; name ranges of your own network, or leave cidrs out",
        ),
        (
            {"private_cidrs": ["0.0.0.0/0"]},
            "private_cidrs (is ['0.0.0.0/0']): has a range wider than /8, a large part of the internet; name the ranges of your own",
        ),
        ({"private_cidrs": ["10.0.0.1/16"]}, "private_cidrs (is '10.0.0.1/16'): must be an IPv4 range without host bits"),
        (
            {"log_retention_days": 0},
            "log_retention_days (is 0): must be one of 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827",
        ),
        (
            {"admin_role_arns": [f"arn:aws:iam::{ACCOUNT}:user/ann"]},
            "must list ARNs of roles, each once, such as arn:aws",
        ),
        ({"admin_role_arns": [f"arn:aws-cn:iam::{ACCOUNT}:role/admin"]}, "such as arn:aws:iam::111122223333:role/platform-admin"),
        (
            {"admin_role_arns": [f"arn:aws:iam::{ACCOUNT}:role/admin"] * 2},
            "must list ARNs of roles, each once, such as arn:aws",
        ),
        ({"ami": "al2@v20250807"}, "ami (is 'al2@v20250807'): must be an alias with its release"),
        (pool(machine=""), "system_pool.machine (is ''): must be an instance type with an x86 processor; name one, such as m6i.large"),
        (
            pool(machine="e2-standard-4"),
            "system_pool.machine (is 'e2-standard-4'): must be an instance type with an x86 processor; name one, such as m6i.large",
        ),
        (
            pool(machine="m7g.large"),
            "system_pool.machine (is 'm7g.large'): must be an instance type with an x86 processor; name one, such as m6i.large",
        ),
        (pool(min_nodes=0), "system_pool: min_nodes (is 0): should be at least 1"),
        (pool(disk_gib=10), "system_pool.disk_gib (is 10): must be at least 20; use 50 if in doubt"),
        ({"addon_versions": {"kube-dns": "v1.0.0-eksbuild.1"}}, "addon_versions (is 'kube-dns'): must be one of"),
        (
            {"addon_versions": {"coredns": "latest"}},
            "addon_versions.coredns (is 'latest'): must be recommended, or a version as EKS spells it, such as v1.14.3-eksbuild.3",
        ),
        (
            {"addon_versions": {"aws-ebs-csi-driver": "v1.57.9-eksbuild.1"}},
            "addon_versions.aws-ebs-csi-driver (is 'v1.57.9-eksbuild.1'): must be v1.58.0 or newer, because older ones do n",
        ),
    ],
)
def test_unsafe_or_unlimited_clusters_are_refused_before_anything_is_registered(
    change: dict[str, Any], problem: str, refusal: Refusal
) -> None:
    assert problem in refusal(EksCluster, "eks", args(**change))


@pytest.mark.parametrize("machine", ["c7i.2xlarge", "t3a.large", "m7i-flex.large", "r6id.xlarge", "g4dn.xlarge"])
def test_machines_with_x86_processors_are_accepted(machine: str, register: Register) -> None:
    assert len(register(lambda: EksCluster("eks", args(**pool(machine=machine)))).of(NODE_GROUP)) == 1
