"""An EKS cluster that somebody else made."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types.
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

import pulumi
from pulumi_aws import eks
from pulumi_aws.eks.outputs import ClusterAccessConfig

from capacity.catalog.versions import version_order
from components.answers import answered
from components.cloud_names import check_cluster_name, check_place, cluster_arn
from components.kubeconfig import certificate_of, eks_credentials_command, eks_kubeconfig, security_group_of, vpc_of


class KubernetesNeedArgs(TypedDict):
    """The Kubernetes versions that a feature requires."""

    user: str
    """What requires it, as error messages name it."""

    remedy: str
    """What fixes it other than a different cluster version, as error messages say it."""

    least: NotRequired[str | None]
    """The oldest version, such as 1.29. Default: any."""

    most: NotRequired[str | None]
    """The newest version. Default: any."""


class ExistingEksClusterArgs(TypedDict):
    """Arguments of ExistingEksCluster."""

    cluster: str
    """The cluster's name."""

    account: str
    """Id of its account, 12 digits."""

    partition: NotRequired[str]
    """aws, aws-cn or aws-us-gov. Default: aws."""

    region: str
    """Its region."""

    versions: NotRequired[list[KubernetesNeedArgs]]
    """Kubernetes versions that features require. Default: none."""


def _text(told: str | None) -> str:
    return told or ""


def _mode_of(access: ClusterAccessConfig | None) -> str:
    return (access.authentication_mode or "") if access else ""


@dataclass(frozen=True)
class FoundCluster:
    """What EKS says of a cluster, as far as a platform on it depends on it; empty where nobody has said it, as in an offline preview."""

    version: str
    mode: str
    """The authentication mode: API, API_AND_CONFIG_MAP or CONFIG_MAP."""


def problems(args: ExistingEksClusterArgs, found: FoundCluster) -> Iterator[str]:
    """What a platform cannot do with on this cluster, each with what fixes it; nothing of what nobody has read.

    The commands are those of the AWS CLI's reference (eks update-cluster-config and update-cluster-version; read 2026-11-26).
    """
    cluster, place = args["cluster"], f"--name {args['cluster']} --region {args['region']}"
    if found.mode == "CONFIG_MAP":
        yield (
            f"the authentication mode of {cluster} is CONFIG_MAP; it must be API_AND_CONFIG_MAP or API, because Karpenter's "
            f"nodes and teams' roles get access entries; its owner changes that with `aws eks update-cluster-config {place} "
            "--access-config authenticationMode=API_AND_CONFIG_MAP`, which leaves aws-auth as it is and cannot be taken back"
        )
    if not found.version:
        return
    for need in args.get("versions", []):
        least, most = need.get("least"), need.get("most")
        if (least and version_order(found.version) < version_order(least)) or (most and version_order(found.version) > version_order(most)):
            allowed = f"{least} or newer" if not most else f"{least} to {most}" if least else f"{most} or older"
            upgrade = f"its owner upgrades it, one minor version at a time, with `aws eks update-cluster-version {place}`, or "
            yield f"{cluster} has Kubernetes {found.version}, and {need['user']} needs {allowed}; {upgrade}{need['remedy']}"


class ExistingEksCluster(pulumi.ComponentResource):
    """An existing cluster, which is only read and never changed. Its owner manages its network, add-ons, tags and system nodes.

    After reading it, also in a preview, the run ends with pulumi.RunError and one line per problem if its version or authentication mode is
    unsuitable (it must be API or API_AND_CONFIG_MAP; otherwise EKS accepts no access entry). Nothing that waits for its name or its API
    server is then created. `ExistingClusterParts` reads what runs on it. Karpenter on it needs the tag karpenter.sh/discovery on private
    subnets and the cluster security group, and nodes that Karpenter did not create. Raises ValueError for a name or a place that AWS does
    not have.
    """

    cluster_name: pulumi.Output[str]
    """The cluster's name; what uses it waits for the cluster to be found in order."""

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
        self.arn = pulumi.Output.from_input(context)
        self.endpoint = cluster.endpoint
        self.certificate_authority = cluster.certificate_authority.apply(certificate_of)
        self.security_group_id = cluster.vpc_config.apply(security_group_of)
        # Not outputs: where the security groups of its nodes belong, and what else is asked of it.
        self.vpc_id: pulumi.Output[str] = cluster.vpc_config.apply(vpc_of)
        self.kubernetes_version: pulumi.Output[str] = answered(cluster.version, _text)

        def in_order(parts: dict[str, Any]) -> str:
            if told := [f"{where} {each}" for each in problems(args, FoundCluster(**parts))]:
                # Not ValueError, which the SDK would wrap in the name and the address of every Output on its way.
                raise pulumi.RunError("\n".join(told))
            return called

        mode = answered(cluster.access_config, _mode_of)
        self.cluster_name = pulumi.Output.all(version=self.kubernetes_version, mode=mode).apply(in_order)
        self.kubeconfig = pulumi.Output.all(cluster.endpoint, self.certificate_authority, self.cluster_name).apply(
            lambda known: eks_kubeconfig(context, called, region, known[0], known[1])
        )
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
