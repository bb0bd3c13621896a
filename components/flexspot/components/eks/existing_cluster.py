"""EKS clusters that somebody else made, what runs on them, and their GPU operator; all of it is read and never changed."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NotRequired, TypedDict

import pulumi
from pulumi_aws import eks
from pulumi_aws.eks.outputs import ClusterAccessConfig

from flexspot.capacity.catalog.versions import Addon, version_order
from flexspot.components.cloud_names import check_choice, check_cluster_name, check_place, cluster_arn
from flexspot.components.in_cluster import ReadObject, answered
from flexspot.components.kubeconfig import eks_credentials_command, eks_kubeconfig, part_of
from flexspot.components.shared_args import NodeTaint, publish


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
class FoundEksCluster:
    """What EKS says of a cluster, as far as a platform on it depends on it; empty where nobody has said it, as in an offline preview."""

    version: str
    mode: str
    """The authentication mode: API, API_AND_CONFIG_MAP or CONFIG_MAP."""


def problems(args: ExistingEksClusterArgs, found: FoundEksCluster) -> Iterator[str]:
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
        self.certificate_authority = part_of(cluster.certificate_authority, lambda authority: authority.data)
        self.security_group_id = part_of(cluster.vpc_config, lambda network: network.cluster_security_group_id)
        # Not outputs: where the security groups of its nodes belong, and what else is asked of it.
        self.vpc_id = part_of(cluster.vpc_config, lambda network: network.vpc_id)
        self.kubernetes_version: pulumi.Output[str] = answered(cluster.version, _text)

        def in_order(parts: dict[str, Any]) -> str:
            if told := [f"{where} {each}" for each in problems(args, FoundEksCluster(**parts))]:
                # Not ValueError, which the SDK would wrap in the name and the address of every Output on its way.
                raise pulumi.RunError("\n".join(told))
            return called

        mode = answered(cluster.access_config, _mode_of)
        self.cluster_name = pulumi.Output.all(version=self.kubernetes_version, mode=mode).apply(in_order)
        self.kubeconfig = pulumi.Output.all(cluster.endpoint, self.certificate_authority, self.cluster_name).apply(
            lambda known: eks_kubeconfig(context, called, region, known[0], known[1])
        )
        self.credentials_command = pulumi.Output.from_input(eks_credentials_command(called, region))
        publish(self)


_DRIVER = "storage.k8s.io/v1:CSIDriver"

MARKS = MappingProxyType(
    {
        Addon.POD_IDENTITY_AGENT: ("apps/v1:DaemonSet", "kube-system/eks-pod-identity-agent"),
        Addon.EBS_DRIVER: (_DRIVER, "ebs.csi.aws.com"),
        Addon.S3_DRIVER: (_DRIVER, "s3.csi.aws.com"),
        Addon.EFS_DRIVER: (_DRIVER, "efs.csi.aws.com"),
        Addon.LUSTRE_DRIVER: (_DRIVER, "fsx.csi.aws.com"),
    }
)
"""The object by which a cluster shows that it has an add-on, from EKS or from the same project's chart.

Sources, read 2026-11-26: charts/eks-pod-identity-agent/templates/daemonset.yaml of aws/eks-pod-identity-agent; csidriver.yaml of the
charts of kubernetes-sigs/aws-ebs-csi-driver, aws-efs-csi-driver and aws-fsx-csi-driver, and of awslabs/mountpoint-s3-csi-driver.
"""


class ExistingClusterPartsArgs(TypedDict):
    """Arguments of ExistingClusterParts."""

    addons: list[str]
    """Required add-ons, by EKS name, such as aws-mountpoint-s3-csi-driver."""


class ExistingClusterParts(pulumi.ComponentResource):
    """Existing add-ons, which are only read and never changed, however they were installed.

    If one is missing the provider ends the run, also in a preview: "resource ... does not exist", for a resource named NAME-needs-ADDON.
    Raises ValueError for an add-on that no object shows.
    """

    found: pulumi.Output[list[str]]
    """The add-ons that were asked for, known once all were found."""

    def __init__(self, name: str, args: ExistingClusterPartsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        for addon in args["addons"]:
            check_choice(f"ExistingClusterParts {name}: addons", addon, sorted(each.value for each in MARKS))
        super().__init__("flexspot:index:ExistingClusterParts", name, {**args}, opts)
        read: list[pulumi.Resource] = []
        for addon in args["addons"]:
            token, identity = MARKS[Addon(addon)]
            read.append(ReadObject(f"{name}-needs-{addon}", token, identity, pulumi.ResourceOptions(parent=self)))
        self.found = pulumi.Output.all(*(each.urn for each in read)).apply(lambda _: list(args["addons"]))
        publish(self)


POLICY, NAME = "nvidia.com/v1:ClusterPolicy", "cluster-policy"
"""What the operator goes by, of which its chart makes one (deployments/gpu-operator/templates/clusterpolicy.yaml)."""


class ExistingGpuOperatorArgs(TypedDict):
    """Arguments of ExistingGpuOperator."""

    taints: list[NodeTaint]
    """All taints of nodes with NVIDIA GPUs."""

    dcgm_exporter: NotRequired[bool]
    """Whether its DCGM exporter is required. Default: False."""


def operator_problems(args: ExistingGpuOperatorArgs, spec: dict[str, Any] | None) -> Iterator[str]:
    """What pools cannot do with, each with the value of its chart that fixes it; nothing of an operator that nobody has read."""
    if spec is None:
        return
    if not _enabled(spec, "devicePlugin"):
        yield "its device plugin is off, and no node would have a GPU that a pod can ask for; its owner sets devicePlugin.enabled"
    if args.get("dcgm_exporter") and not _enabled(spec, "dcgmExporter"):
        yield (
            "its DCGM exporter is off, and nothing would tell how busy GPUs are; its owner sets dcgmExporter.enabled, or say "
            "measurement.dcgm_exporter: false"
        )
    tolerated: list[dict[str, str]] = (spec.get("daemonsets") or {}).get("tolerations") or []
    if left := [f"{each['key']}={each['value']}:{each['effect']}" for each in args["taints"] if not _tolerates(tolerated, each)]:
        yield (
            f"its daemons do not tolerate {', '.join(left)}: nodes with these taints would have no GPU that a pod can ask for; its owner "
            "sets daemonsets.tolerations, and node-feature-discovery.worker.tolerations, to [{operator: Exists}]"
        )


def _enabled(spec: dict[str, Any], part: str) -> bool:
    """Parts are on unless it says otherwise (api/nvidia/v1/clusterpolicy_types.go, IsEnabled)."""
    return (spec.get(part) or {}).get("enabled") is not False


def _tolerates(tolerations: list[dict[str, str]], taint: NodeTaint) -> bool:
    """Whether one of them tolerates a taint (k8s.io/api/core/v1, Toleration.ToleratesTaint)."""
    return any(
        each.get("effect") in {None, "", taint["effect"]}
        and each.get("key") in ({None, "", taint["key"]} if each.get("operator") == "Exists" else {taint["key"]})
        and (each.get("operator") == "Exists" or each.get("value", "") == taint["value"])
        for each in tolerations
    )


class ExistingGpuOperator(pulumi.ComponentResource):
    """An existing GPU operator, which is only read and never changed: it provides the device plugin, the DCGM exporter and GPU labels.

    After reading its ClusterPolicy, also in a preview, the run ends with pulumi.RunError and one line per problem if it does not suit the
    pools. If there is no ClusterPolicy `cluster-policy`, the provider ends the run. The tolerations of Node Feature Discovery are not in
    the ClusterPolicy, and are not checked.
    """

    policy: pulumi.Output[str]
    """The name of its ClusterPolicy, known once it was found in order."""

    def __init__(self, name: str, args: ExistingGpuOperatorArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("flexspot:index:ExistingGpuOperator", name, {**args}, opts)
        read = ReadObject(f"{name}-policy", POLICY, NAME, pulumi.ResourceOptions(parent=self))

        def in_order(spec: dict[str, Any] | None) -> str:
            if told := [f"ExistingGpuOperator {name}: {each}" for each in operator_problems(args, spec)]:
                raise pulumi.RunError("\n".join(told))
            return NAME

        self.policy = answered(read.spec, lambda spec: spec).apply(in_order)
        publish(self)
