"""What Karpenter's nodes are in AWS, and how they join the cluster."""

from typing import NotRequired, TypedDict

import pulumi
from pulumi_aws import eks, iam

from components.aws_names import PARTITIONS, check_choice, check_cluster_name, managed_policy, node_role_name
from components.iam import ec2_trust

MANAGED_POLICIES = {
    "worker-node": "AmazonEKSWorkerNodePolicy",
    "cni": "AmazonEKS_CNI_Policy",
    "image-reader": "AmazonEC2ContainerRegistryPullOnly",
    "session-manager": "AmazonSSMManagedInstanceCore",
}
"""AWS's policies that Karpenter v1.14's template gives to nodes: to join, to have addresses, to pull images, to be reached without SSH."""

_SPOT = "spot.amazonaws.com"


class KarpenterNodeIdentityArgs(TypedDict):
    """Arguments of KarpenterNodeIdentity."""

    cluster: str
    """The cluster's name, 1 to 100 characters; plain, because the role's name is made from it."""

    cluster_name: pulumi.Input[str]
    """The same name, known when the cluster exists: an output of the cluster, for which the access entry waits."""

    tags: dict[str, str]
    """Tags of the role, the access entry and the Spot role."""

    partition: NotRequired[str]
    """aws, aws-cn or aws-us-gov. Default: aws."""

    create_spot_role: NotRequired[bool]
    """Whether to make the account's service-linked role for Spot, without which no Spot node is launched. Default: False.

    An account has one, AWSServiceRoleForEC2Spot, and whoever made it first has it: most accounts do, since EC2 makes it with the first
    Spot request from its console. `aws iam get-role --role-name AWSServiceRoleForEC2Spot` shows it; where that answers NoSuchEntity, set
    this in one stack of the account. Made twice, AWS refuses with "has been taken in this account". It stays when the stack goes, for the
    other clusters of the account.
    """


class KarpenterNodeIdentity(pulumi.ComponentResource):
    """The role of the nodes that Karpenter launches, and the access entry with which they join.

    Karpenter makes the instance profile itself from the role's name. The entry is of type EC2_LINUX, which gives nodes their groups and
    user name; EKS refuses others beside it. Only EC2 may take the role: the template of v1.14 lets pods take it as well
    (pods.eks.amazonaws.com), which nothing here needs and which would give a pod what its node may do.

    Raises ValueError for a name or partition that AWS would refuse. Nothing here was applied to a live account.
    """

    role_name: pulumi.Output[str]
    """The role's name for EC2NodeClass, known once its policies and its entry exist: nodes that start before could not join."""

    role_arn: pulumi.Output[str]
    """The role's ARN, known at the same time."""

    def __init__(self, name: str, args: KarpenterNodeIdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        where = f"KarpenterNodeIdentity {name}:"
        partition = args.get("partition", "aws")
        create_spot_role = args.get("create_spot_role", False)
        check_cluster_name(where, args["cluster"])
        check_choice(f"{where} partition", partition, list(PARTITIONS))
        super().__init__(
            "flexspot:index:KarpenterNodeIdentity", name, {**args, "partition": partition, "create_spot_role": create_spot_role}, opts
        )
        child = pulumi.ResourceOptions(parent=self)
        role = iam.Role(
            f"{name}-role",
            name=node_role_name(args["cluster"]),
            description=f"Karpenter's nodes in the cluster {args['cluster']}",
            assume_role_policy=ec2_trust(partition),
            tags=args["tags"],
            opts=child,
        )
        attached = [
            iam.RolePolicyAttachment(f"{name}-{key}", role=role.name, policy_arn=managed_policy(partition, policy), opts=child)
            for key, policy in MANAGED_POLICIES.items()
        ]
        entry = eks.AccessEntry(
            f"{name}-access", cluster_name=args["cluster_name"], principal_arn=role.arn, type="EC2_LINUX", tags=args["tags"], opts=child
        )
        if create_spot_role:
            iam.ServiceLinkedRole(
                f"{name}-spot-role",
                aws_service_name=_SPOT,
                tags=args["tags"],
                opts=pulumi.ResourceOptions(parent=self, retain_on_delete=True),
            )
        joined = [entry.id, *(each.id for each in attached)]
        self.role_name = pulumi.Output.all(role.name, *joined).apply(lambda known: known[0])
        self.role_arn = pulumi.Output.all(role.arn, *joined).apply(lambda known: known[0])
        self.register_outputs({"role_name": self.role_name, "role_arn": self.role_arn})
