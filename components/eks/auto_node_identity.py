"""Who the nodes of EKS Auto Mode are: their role, and the access with which they join."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from typing import NotRequired

import pulumi
from pulumi_aws import eks

from capacity.catalog.platform import PARTITIONS
from components.cloud_names import check_choice, check_cluster_name
from components.eks.system_nodes import role_name
from components.iam import RoleShape, ec2_trust, granted_role
from components.shared_args import RoleOptionsArgs, check_role_options

NODE_POLICIES = ("AmazonEKSWorkerNodeMinimalPolicy", "AmazonEC2ContainerRegistryPullOnly")
"""To join with credentials of pods' own, and to pull images. Nobody logs in to such nodes, so there is no policy for sessions.

awsdocs/amazon-eks-user-guide, latest/ug/automode/automode-get-started-cli.adoc at 01385604, "Node IAM Role" (read 2026-11-25).
"""

ACCESS_POLICY = "AmazonEKSAutoNodePolicy"


class AutoNodeIdentityArgs(RoleOptionsArgs):
    """Arguments of AutoNodeIdentity."""

    cluster: str
    """The cluster's name, 1 to 100 characters; plain, because the role's name is made from it."""

    cluster_name: pulumi.Input[str]
    """The same name as an output of the cluster: the access entry waits for it."""

    tags: dict[str, str]
    """Tags of the role and the access entry."""

    partition: NotRequired[str]
    """aws, aws-cn or aws-us-gov. Default: aws."""


class AutoNodeIdentity(pulumi.ComponentResource):
    """The IAM role of the nodes that Auto Mode launches for custom NodeClasses, and the access entry with which they join.

    EKS creates such an entry itself only for its built-in pools. The entry is of type EC2, with AWS's own policy for Auto Mode nodes on the
    whole cluster (create-node-class.adoc at 0026c9df, "Create node class access entry").

    Raises ValueError for a name or partition that AWS would refuse. Nothing here was applied to a live account.
    """

    role_name: pulumi.Output[str]
    """The role's name for AutoNodeClass, known once its policies and its access exist: nodes that start before could not join."""

    def __init__(self, name: str, args: AutoNodeIdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        where = f"AutoNodeIdentity {name}:"
        partition = args.get("partition", "aws")
        check_cluster_name(where, args["cluster"])
        check_choice(f"{where} partition", partition, list(PARTITIONS))
        check_role_options(where, args.get("iam_path"), args.get("permissions_boundary"))
        super().__init__("flexspot:index:AutoNodeIdentity", name, {**args, "partition": partition}, opts)
        granted = granted_role(
            f"{name}-role",
            RoleShape(
                name=role_name(args["cluster"], "auto-nodes"),
                description=f"Auto Mode's nodes in the cluster {args['cluster']}",
                trust=ec2_trust(partition),
                partition=partition,
                policies=NODE_POLICIES,
                tags=args["tags"],
                iam_path=args.get("iam_path"),
                permissions_boundary=args.get("permissions_boundary"),
            ),
            self,
        )
        entry = eks.AccessEntry(
            f"{name}-access",
            cluster_name=args["cluster_name"],
            principal_arn=granted.role.arn,
            type="EC2",
            tags=args["tags"],
            opts=pulumi.ResourceOptions(parent=self),
        )
        access = eks.AccessPolicyAssociation(
            f"{name}-policy",
            cluster_name=args["cluster_name"],
            principal_arn=granted.role.arn,
            policy_arn=f"arn:{partition}:eks::aws:cluster-access-policy/{ACCESS_POLICY}",
            access_scope=eks.AccessPolicyAssociationAccessScopeArgs(type="cluster"),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[entry]),
        )
        self.role_name = pulumi.Output.all(granted.role.name, access.id, *(each.id for each in granted.grants)).apply(
            lambda known: known[0]
        )
        self.register_outputs({"role_name": self.role_name})
