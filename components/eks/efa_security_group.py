"""The security group without which nodes with EFA interfaces reach one another by everything but EFA."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from typing import TypedDict

import pulumi
from pulumi_aws import ec2

from components.cloud_names import fitted

NAME_CHARACTERS = 255
"""EC2's limit for the name (API reference, CreateSecurityGroup)."""


class EfaSecurityGroupArgs(TypedDict):
    """Arguments of EfaSecurityGroup."""

    cluster: str
    """The cluster's name."""

    vpc_id: pulumi.Input[str]
    """The VPC of the nodes."""

    tags: dict[str, str]
    """Tags of the group; not the tag by which Karpenter discovers the groups of all nodes."""


class EfaSecurityGroup(pulumi.ComponentResource):
    """Allows all traffic between its members, for the EFA interfaces of all EFA pools of a cluster.

    Only rules that name a security group, in both directions, allow EFA's own traffic (SRD); the usual egress rule to 0.0.0.0/0 does not.
    "An EFA requires a security group that allows all inbound and outbound traffic to and from the security group itself" (EC2 User Guide,
    efa-start; gardener-extension-provider-aws, docs/usage, says why; both read 2026-11-24). EKS creates such rules in the security group of
    a new cluster (EKS User Guide, sec-group-reqs), where another one would be refused as a duplicate; the group of an old or restricted
    cluster may have none. A separate group works for all, as eksctl creates one for `efaEnabled` (pkg/cfn/builder, addEFASecurityGroup).

    The nodes also have the cluster's group, for everything else. A different name or VPC replaces the group. Raises ValueError for an empty
    cluster name, before anything is registered.
    """

    security_group_id: pulumi.Output[str]
    """The group's id, known once it is there."""

    def __init__(self, name: str, args: EfaSecurityGroupArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        if not args["cluster"]:
            raise ValueError(f"EfaSecurityGroup {name}: cluster is ''; it is part of the group's name; give the cluster's name")
        super().__init__("flexspot:index:EfaSecurityGroup", name, {**args}, opts)
        # AWS refuses names that begin with sg-, as a cluster's may.
        called = fitted(f"efa-{args['cluster']}", NAME_CHARACTERS)
        group = ec2.SecurityGroup(
            f"{name}-security-group",
            name=called,
            description="EFA between the nodes that have it",
            vpc_id=args["vpc_id"],
            ingress=[ec2.SecurityGroupIngressArgs(description="EFA", protocol="-1", from_port=0, to_port=0, self=True)],
            egress=[ec2.SecurityGroupEgressArgs(description="EFA", protocol="-1", from_port=0, to_port=0, self=True)],
            tags=args["tags"] | {"Name": called},
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.security_group_id = group.id
        self.register_outputs({"security_group_id": self.security_group_id})
