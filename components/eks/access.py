"""Who reaches the API server from inside the network, and who administers the cluster."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pulumi
from pulumi_aws import ec2, eks, vpc

if TYPE_CHECKING:
    from components.eks.cluster_args import ClusterShape

_ADMIN = "AmazonEKSClusterAdminPolicy"
_HTTPS = 443


def api_security_group(name: str, shape: ClusterShape, parent: pulumi.Resource) -> ec2.SecurityGroup:
    """A security group for the private endpoint's addresses, besides EKS's own, which lets in the nodes alone.

    It is there without rules, too, so that the first range is a rule more and not a change of the cluster.
    """
    child = pulumi.ResourceOptions(parent=parent)
    group = ec2.SecurityGroup(
        f"{name}-api-security-group",
        # AWS refuses names that begin with sg-, as a cluster's may.
        name=f"api-{shape.cluster}",
        description="HTTPS to the API server from inside the network",
        vpc_id=shape.vpc_id,
        tags=shape.named("api"),
        opts=child,
    )
    for cidr in sorted(set(shape.private_cidrs)):
        vpc.SecurityGroupIngressRule(
            f"{name}-api-from-{re.sub('[./]', '-', cidr)}",
            security_group_id=group.id,
            description="HTTPS to the API server",
            cidr_ipv4=cidr,
            ip_protocol="tcp",
            from_port=_HTTPS,
            to_port=_HTTPS,
            tags=shape.named("api"),
            opts=child,
        )
    return group


def admin_entries(name: str, shape: ClusterShape, cluster: pulumi.Input[str], parent: pulumi.Resource) -> None:
    """An access entry for each role that administers the cluster, with AWS's own policy for that."""
    for arn in sorted(shape.admin_role_arns):
        # The account too: roles of two accounts may be called the same.
        _, account, role = arn.rsplit(":", 2)
        logical = f"{name}-admin-{account}-{role.removeprefix('role/').replace('/', '-')}"
        entry = eks.AccessEntry(
            logical, cluster_name=cluster, principal_arn=arn, type="STANDARD", tags=shape.tags, opts=pulumi.ResourceOptions(parent=parent)
        )
        eks.AccessPolicyAssociation(
            f"{logical}-policy",
            cluster_name=cluster,
            principal_arn=arn,
            policy_arn=f"arn:{shape.partition}:eks::aws:cluster-access-policy/{_ADMIN}",
            access_scope=eks.AccessPolicyAssociationAccessScopeArgs(type="cluster"),
            opts=pulumi.ResourceOptions(parent=parent, depends_on=[entry]),
        )
