"""An EKS cluster that somebody else made."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types.
from typing import NotRequired, TypedDict

import pulumi
from pulumi_aws import eks
from pulumi_aws.eks.outputs import ClusterAccessConfig

from components.cloud_names import check_cluster_name, check_place, cluster_arn
from components.kubeconfig import certificate_of, eks_credentials_command, eks_kubeconfig, security_group_of, vpc_of


class ExistingEksClusterArgs(TypedDict):
    """Arguments of ExistingEksCluster."""

    cluster: str
    """The cluster's name."""

    account: str
    """The id of the account that it is in, 12 digits."""

    partition: NotRequired[str]
    """aws, aws-cn or aws-us-gov. Default: aws."""

    region: str
    """Its region."""


def _mode_of(access: ClusterAccessConfig | None) -> str:
    """The authentication mode; empty where nobody has said it, as in a test without a cloud."""
    return (access.authentication_mode or "") if access else ""


def _check_mode(where: str, cluster: str, mode: str) -> None:
    """Raises ValueError where neither nodes nor people can be given access entries."""
    if mode == "CONFIG_MAP":
        raise ValueError(
            f"{where} the authentication mode of {cluster} is CONFIG_MAP; allowed are API_AND_CONFIG_MAP and API, because Karpenter's "
            f"nodes and teams' roles get access entries; its owner changes that with `aws eks update-cluster-config --name {cluster} "
            "--access-config authenticationMode=API_AND_CONFIG_MAP`, which leaves aws-auth as it is and cannot be taken back"
        )


class ExistingEksCluster(pulumi.ComponentResource):
    """A cluster that is read and never changed. Its network, add-ons, tags and system nodes are its owner's.

    Its authentication mode must be API or API_AND_CONFIG_MAP, or EKS takes no access entry: once it was read, another one is refused.
    Karpenter on it needs what EksCluster makes: the add-on eks-pod-identity-agent, the tag karpenter.sh/discovery on private subnets and
    the cluster security group, and nodes that it has not made. Raises ValueError for a name or a place that AWS does not have.
    """

    cluster_name: pulumi.Output[str]
    """The cluster's name."""

    arn: pulumi.Output[str]
    """The cluster's ARN."""

    endpoint: pulumi.Output[str]
    """The URL of the API server, with https://."""

    certificate_authority: pulumi.Output[str]
    """Certificate of the cluster's own authority, base64."""

    security_group_id: pulumi.Output[str]
    """Id of the security group that EKS made for the control plane and the nodes."""

    kubeconfig: pulumi.Output[str]
    """A kubeconfig without secrets, as JSON. Whoever uses it needs the AWS CLI."""

    credentials_command: pulumi.Output[str]
    """The command of the AWS CLI that writes the cluster into a person's own kubeconfig."""

    def __init__(self, name: str, args: ExistingEksClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        where = f"ExistingEksCluster {name}:"
        called, region, partition = args["cluster"], args["region"], args.get("partition", "aws")
        check_cluster_name(where, called)
        check_place(where, args["account"], partition, region)
        super().__init__("flexspot:index:ExistingEksCluster", name, {**args, "partition": partition}, opts)
        cluster = eks.Cluster.get(f"{name}-cluster", called, opts=pulumi.ResourceOptions(parent=self))
        context = cluster_arn(partition, region, args["account"], called)
        # What depends on the nodes and add-ons of a cluster of ours depends on this one as a whole.
        self.ready: list[pulumi.Resource] = [cluster]
        # Who has access is its owner's to say.
        self.access: list[pulumi.Resource] = []
        self.cluster_name = pulumi.Output.from_input(called)
        self.arn = pulumi.Output.from_input(context)
        self.endpoint = cluster.endpoint
        self.certificate_authority = cluster.certificate_authority.apply(certificate_of)
        self.security_group_id = cluster.vpc_config.apply(security_group_of)
        # Not an output: where the security groups of its nodes belong.
        self.vpc_id: pulumi.Output[str] = cluster.vpc_config.apply(vpc_of)

        def reached(known: list[str]) -> str:
            endpoint, certificate, mode = known
            _check_mode(where, called, mode)
            return eks_kubeconfig(context, called, region, endpoint, certificate)

        mode = cluster.access_config.apply(_mode_of)
        self.kubeconfig = pulumi.Output.all(cluster.endpoint, self.certificate_authority, mode).apply(reached)
        self.credentials_command = pulumi.Output.from_input(eks_credentials_command(called, region))
        self.register_outputs(
            {
                "cluster_name": self.cluster_name,
                "arn": self.arn,
                "endpoint": self.endpoint,
                "certificate_authority": self.certificate_authority,
                "security_group_id": self.security_group_id,
                "kubeconfig": self.kubeconfig,
                "credentials_command": self.credentials_command,
            }
        )
