"""Arguments of EksCluster for its tests, and a stand-in for EKS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi
from component_outputs import outputs_of

from flexspot.components.eks.cluster import EksCluster

if TYPE_CHECKING:
    from flexspot.components.eks.cluster_args import EksClusterArgs

CLUSTER = "aws:eks/cluster:Cluster"
NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
ADDON = "aws:eks/addon:Addon"
ROLE = "aws:iam/role:Role"
ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
SECURITY_GROUP = "aws:ec2/securityGroup:SecurityGroup"
INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"

ACCOUNT = "111122223333"
ARN = f"arn:aws:eks:us-east-1:{ACCOUNT}:cluster/prod"
TAGS = {"environment": "prod", "owner": "ml-platform"}


class Cloud(pulumi.runtime.Mocks):
    """Answers with the values that AWS adds to a cluster, to roles, keys and launch templates."""

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        inputs: dict[str, Any] = dict(args.inputs)
        if args.typ == CLUSTER:
            inputs["arn"] = ARN
            inputs["endpoint"] = "https://ABCD1234.gr7.us-east-1.eks.amazonaws.com"
            inputs["certificateAuthority"] = {"data": "Y2E="}
            inputs["vpcConfig"]["clusterSecurityGroupId"] = "sg-0123456789abcdef0"
        return f"{args.name}-id", inputs

    def call(self, args: pulumi.runtime.MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
        raise AssertionError(f"components must not invoke provider functions, but {args.token} was called")


class Nothing(Cloud):
    """Answers with inputs only, as in the preview of a new cluster, or of a change to one that has an `identity`."""

    identity: str | None = None

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        return self.identity, dict(args.inputs)


def args(**changes: Any) -> EksClusterArgs:
    # pyrefly: ignore[bad-return] -- some arguments are invalid on purpose
    return {
        "cluster": "prod",
        "account": ACCOUNT,
        "region": "us-east-1",
        "version": "1.35",
        "vpc_id": "vpc-0a1b2c3d4e5f60718",
        "subnet_ids": ["subnet-0aaaaaaaaaaaaaaaa", "subnet-0bbbbbbbbbbbbbbbb"],
        "services_cidr": "172.20.0.0/16",
        "system_pool": {"machine": "m6i.large"},
        "ami": "al2023@v20260903",
        "tags": TAGS,
    } | changes


def cluster_outputs(**changes: Any) -> dict[str, Any]:
    """Return the component's outputs, as EKS would produce them, and the names of those that are secret."""
    return outputs_of(Cloud(), lambda: EksCluster("eks", args(**changes)))
