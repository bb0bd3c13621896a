"""Existing EKS clusters, their add-ons and their GPU operator. All of them are read and never changed."""

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
    """The feature that requires it, as error messages name it."""

    remedy: str
    """Remedy other than changing the cluster's version, as error messages say it."""

    least: NotRequired[str | None]
    """The oldest version, such as 1.29. Default: any."""

    most: NotRequired[str | None]
    """The newest version. Default: any."""


class ExistingEksClusterArgs(TypedDict):
    """Arguments of ExistingEksCluster."""

    cluster: str
    """The cluster's name."""

    account: str
    """Id of the cluster's account, 12 digits."""

    partition: NotRequired[str]
    """aws, aws-cn or aws-us-gov. Default: aws."""

    region: str
    """The cluster's region."""

    versions: NotRequired[list[KubernetesNeedArgs]]
    """Kubernetes versions that features require. Default: none."""


def _text(value: str | None) -> str:
    return value or ""


def _mode_of(access: ClusterAccessConfig | None) -> str:
    return (access.authentication_mode or "") if access else ""


@dataclass(frozen=True)
class FoundEksCluster:
    """Facts about a cluster that a platform depends on, as EKS returns them. Empty if they were not read, as in an offline preview."""

    version: str
    mode: str
    """The authentication mode: API, API_AND_CONFIG_MAP or CONFIG_MAP."""


def problems(args: ExistingEksClusterArgs, found: FoundEksCluster) -> Iterator[str]:
    """Yield why a platform does not work on this cluster, and what fixes it. Facts that were not read are not checked.

    The commands are those of the AWS CLI's reference (eks update-cluster-config and update-cluster-version; read 2026-11-26).
    """
    cluster, place = args["cluster"], f"--name {args['cluster']} --region {args['region']}"
    if found.mode == "CONFIG_MAP":
        yield (
            f"the authentication mode of {cluster} is CONFIG_MAP; it must be API_AND_CONFIG_MAP or API, because Karpenter's "
            f"nodes and teams' roles get access entries; its owner changes that with `aws eks update-cluster-config {place} "
            "--access-config authenticationMode=API_AND_CONFIG_MAP`, which does not change aws-auth and cannot be reverted"
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
    unsuitable. The mode must be API or API_AND_CONFIG_MAP: with others EKS accepts no access entry. Nothing that waits for its name or its
    API server is then created. `ExistingClusterParts` reads its add-ons. Karpenter on it needs the tag karpenter.sh/discovery on private
    subnets and the cluster security group, and nodes that Karpenter did not create. Raises ValueError for a name, account or region that
    cannot exist.
    """

    cluster_name: pulumi.Output[str]
    """The cluster's name. Resources that use it wait until the checks have passed."""

    arn: pulumi.Output[str]
    """The cluster's ARN."""

    endpoint: pulumi.Output[str]
    """The URL of the API server, with https://."""

    certificate_authority: pulumi.Output[str]
    """Certificate of the cluster's own authority, in base64."""

    security_group_id: pulumi.Output[str]
    """Id of the security group that EKS created for the control plane and the nodes."""

    kubeconfig: pulumi.Output[str]
    """A kubeconfig without secrets, as JSON. It needs the AWS CLI."""

    credentials_command: pulumi.Output[str]
    """The AWS CLI command that adds the cluster to a user's own kubeconfig."""

    def __init__(self, name: str, args: ExistingEksClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        where = f"ExistingEksCluster {name}:"
        called, region, partition = args["cluster"], args["region"], args.get("partition", "aws")
        check_cluster_name(where, called)
        check_place(where, args["account"], partition, region)
        super().__init__("flexspot:index:ExistingEksCluster", name, {**args, "partition": partition}, opts)
        cluster = eks.Cluster.get(f"{name}-cluster", called, opts=pulumi.ResourceOptions(parent=self))
        context = cluster_arn(partition, region, args["account"], called)
        # Resources that depend on the nodes and add-ons of a cluster of this project depend on an existing cluster as a whole.
        self.ready: list[pulumi.Resource] = [cluster]
        # The cluster's owner manages access.
        self.access: list[pulumi.Resource] = []
        self.arn = pulumi.Output.from_input(context)
        self.endpoint = cluster.endpoint
        self.certificate_authority = part_of(cluster.certificate_authority, lambda authority: authority.data)
        self.security_group_id = part_of(cluster.vpc_config, lambda network: network.cluster_security_group_id)
        # Not outputs: the VPC of its nodes' security groups, and the version that other checks need.
        self.vpc_id = part_of(cluster.vpc_config, lambda network: network.vpc_id)
        self.kubernetes_version: pulumi.Output[str] = answered(cluster.version, _text)

        def checked_name(parts: dict[str, Any]) -> str:
            if messages := [f"{where} {each}" for each in problems(args, FoundEksCluster(**parts))]:
                # Not ValueError, which the SDK would wrap in the name and the address of every Output on its way.
                raise pulumi.RunError("\n".join(messages))
            return called

        mode = answered(cluster.access_config, _mode_of)
        self.cluster_name = pulumi.Output.all(version=self.kubernetes_version, mode=mode).apply(checked_name)
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
"""The object that shows that a cluster has an add-on, installed by EKS or from the same project's chart.

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
    """The requested add-ons, known once all were found."""

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
"""Kind and name of the operator's configuration object, of which its chart creates one.

Source: deployments/gpu-operator/templates/clusterpolicy.yaml.
"""


class ExistingGpuOperatorArgs(TypedDict):
    """Arguments of ExistingGpuOperator."""

    taints: list[NodeTaint]
    """All taints of nodes with NVIDIA GPUs."""

    dcgm_exporter: NotRequired[bool]
    """True if its DCGM exporter is required. Default: False."""


def operator_problems(args: ExistingGpuOperatorArgs, spec: dict[str, Any] | None) -> Iterator[str]:
    """Yield why pools do not work with this operator, and the chart value that fixes it. An operator that was not read is not checked."""
    if spec is None:
        return
    if not _enabled(spec, "devicePlugin"):
        yield "its device plugin is off, and no node would have GPUs that pods can request; its owner sets devicePlugin.enabled"
    if args.get("dcgm_exporter") and not _enabled(spec, "dcgmExporter"):
        yield (
            "its DCGM exporter is off, and nothing would measure GPU usage; its owner sets dcgmExporter.enabled, or set "
            "measurement.dcgm_exporter: false"
        )
    tolerated: list[dict[str, str]] = (spec.get("daemonsets") or {}).get("tolerations") or []
    if left := [f"{each['key']}={each['value']}:{each['effect']}" for each in args["taints"] if not _tolerates(tolerated, each)]:
        yield (
            f"its daemons do not tolerate {', '.join(left)}: nodes with these taints would have no GPUs that pods can request; its owner "
            "sets daemonsets.tolerations, and node-feature-discovery.worker.tolerations, to [{operator: Exists}]"
        )


def _enabled(spec: dict[str, Any], part: str) -> bool:
    """Return whether a part is enabled. Parts are unless the spec disables them (api/nvidia/v1/clusterpolicy_types.go, IsEnabled)."""
    return (spec.get(part) or {}).get("enabled") is not False


def _tolerates(tolerations: list[dict[str, str]], taint: NodeTaint) -> bool:
    """Return whether one of the tolerations tolerates a taint (k8s.io/api/core/v1, Toleration.ToleratesTaint)."""
    return any(
        each.get("effect") in {None, "", taint["effect"]}
        and each.get("key") in ({None, "", taint["key"]} if each.get("operator") == "Exists" else {taint["key"]})
        and (each.get("operator") == "Exists" or each.get("value", "") == taint["value"])
        for each in tolerations
    )


class ExistingGpuOperator(pulumi.ComponentResource):
    """An existing GPU operator, which is only read and never changed. It provides the device plugin, the DCGM exporter and GPU labels.

    After reading its ClusterPolicy, also in a preview, the run ends with pulumi.RunError and one line per problem if it does not suit the
    pools. If there is no ClusterPolicy `cluster-policy`, the provider ends the run. The tolerations of Node Feature Discovery are not in
    the ClusterPolicy, and are not checked.
    """

    policy: pulumi.Output[str]
    """The name of its ClusterPolicy, known once the checks have passed."""

    def __init__(self, name: str, args: ExistingGpuOperatorArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("flexspot:index:ExistingGpuOperator", name, {**args}, opts)
        read = ReadObject(f"{name}-policy", POLICY, NAME, pulumi.ResourceOptions(parent=self))

        def checked_name(spec: dict[str, Any] | None) -> str:
            if messages := [f"ExistingGpuOperator {name}: {each}" for each in operator_problems(args, spec)]:
                raise pulumi.RunError("\n".join(messages))
            return NAME

        self.policy = answered(read.spec, lambda spec: spec).apply(checked_name)
        publish(self)
