"""EKS add-ons, and the device plugins of NVIDIA and AWS by which pods request GPUs, Neuron devices and EFA interfaces.

An add-on has the version that a stack names, or AWS's default for its Kubernetes version, from the provider's data source.
"""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
import asyncio
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

import pulumi
from pulumi_aws import eks

from flexspot.capacity.catalog.accelerators import NEURON, NVIDIA, Accelerator
from flexspot.capacity.catalog.machines import Vendor, machines_of
from flexspot.capacity.catalog.node_labels import INSTANCE_TYPE_LABEL, KARPENTER_INSTANCE
from flexspot.capacity.catalog.platform import PrometheusKind
from flexspot.capacity.catalog.versions import RECOMMENDED, Addon, Chart, shipped_versions
from flexspot.capacity.values.errors import SettingsProblem
from flexspot.capacity.values.names import CHART_VERSION
from flexspot.components.cloud_names import check_form
from flexspot.components.eks.cluster_args import AddonsArgs, eks_cluster_arn
from flexspot.components.eks.system_nodes import CRITICAL_ADDONS, role_name
from flexspot.components.iam import GrantedRole, RoleShape, granted_role, pod_trust
from flexspot.components.in_cluster import chart_release
from flexspot.components.measurement import INTERVAL_SECONDS, checked_kind
from flexspot.components.shared_args import publish, refuse

_ON_SYSTEM_NODES = [{"key": CRITICAL_ADDONS, "operator": "Exists"}]
_EVERYWHERE = [{"operator": "Exists"}]


@dataclass(frozen=True)
class EksAddon:
    """An add-on: its name and configuration, and the service account and policy of its role, if it has one."""

    name: Addon
    configuration: dict[str, Any] | None = None
    service_account: str | None = None
    policy: str | None = None


POD_IDENTITY_AGENT = EksAddon(Addon.POD_IDENTITY_AGENT)
KUBE_PROXY = EksAddon(Addon.KUBE_PROXY)
"""kube-proxy and the Pod Identity agent are on every node, whatever its taints, and so is vpc-cni.

Sources: the agent's chart in aws/eks-pod-identity-agent. kube-proxy's add-on has no such setting (aws/containers-roadmap issue 2604).
"""

VPC_CNI = EksAddon(
    Addon.VPC_CNI,
    # Without it a NetworkPolicy is accepted and has no effect. The schema requires a string (EKS user guide, network policies).
    {"enableNetworkPolicy": "true"},
    service_account="aws-node",
    policy="AmazonEKS_CNI_Policy",
)

AFTER_NODES = (
    # The default also tolerates the system nodes' taint. It is explicit because nothing else starts without DNS.
    EksAddon(Addon.COREDNS, {"tolerations": _ON_SYSTEM_NODES}),
    EksAddon(
        Addon.EBS_DRIVER,
        {"controller": {"tolerations": _ON_SYSTEM_NODES}, "node": {"tolerateAllTaints": True}},
        service_account="ebs-csi-controller-sa",
        # Narrower than AmazonEBSCSIDriverPolicy and its V2: only for resources tagged with the cluster that Pod Identity names.
        policy="AmazonEBSCSIDriverEKSClusterScopedPolicy",
    ),
    # The controller tolerates nothing by default (the chart in awslabs/mountpoint-s3-csi-driver), and the add-on is not healthy before it
    # runs. v2.0.0 rejected its tolerations (aws/containers-roadmap issue 2676). It has no role: pods mount with their own identity.
    EksAddon(Addon.S3_DRIVER, {"controller": {"tolerations": _ON_SYSTEM_NODES}, "node": {"tolerateAllTaints": True}}),
    # The agent itself is on every node. Its DCGM agent, which checks GPUs, tolerates nothing by default. A GPU node without it is reported
    # as broken (aws/containers-roadmap issue 2567; charts/configuration.schema.json in aws/eks-node-monitoring-agent).
    EksAddon(Addon.NODE_MONITORING, {"dcgmAgent": {"tolerations": _EVERYWHERE}}),
)
"""Add-ons that wait for a node to run on."""

EFS_DRIVER = EksAddon(
    Addon.EFS_DRIVER,
    # The chart's own defaults, explicit like those of the other drivers: charts/aws-efs-csi-driver/values.yaml in
    # kubernetes-sigs/aws-efs-csi-driver. The role is the controller's. No volume here needs it, because nodes mount without a role.
    {"controller": {"tolerations": _ON_SYSTEM_NODES}, "node": {"tolerations": _EVERYWHERE}},
    service_account="efs-csi-controller-sa",
    policy="service-role/AmazonEFSCSIDriverPolicy",
)
"""The driver for EFS file systems."""

LUSTRE_DRIVER = EksAddon(
    Addon.LUSTRE_DRIVER,
    # The chart's own defaults, explicit like those of the other drivers: charts/aws-fsx-csi-driver/values.yaml at 05bcb51 in
    # kubernetes-sigs/aws-fsx-csi-driver. It has no role, which the controller would need to create and delete file systems for storage
    # classes (AWS's policy for it is AmazonFSxFullAccess). There is no such class, and nodes mount without a role.
    {"controller": {"tolerations": _ON_SYSTEM_NODES}, "node": {"tolerateAllTaints": True}},
)
"""The driver for FSx for Lustre file systems."""

METRICS_SERVER = EksAddon(Addon.METRICS_SERVER, {"replicas": 2, "tolerations": _ON_SYSTEM_NODES})
"""A community add-on, which EKS installs and its own project supports (EKS user guide, "Community add-ons").

The configuration is its default. Without it, no autoscaler of pods and no `kubectl top` works.
"""

ADDONS = (POD_IDENTITY_AGENT, KUBE_PROXY, VPC_CNI, *AFTER_NODES, EFS_DRIVER, LUSTRE_DRIVER, METRICS_SERVER)

_NAMESPACE = "kube-system"


@dataclass(frozen=True)
class AddonInstaller:
    """Installs add-ons on one cluster. Their Pulumi names begin with `name`."""

    name: str
    args: AddonsArgs
    kubernetes: str
    cluster: pulumi.Input[str]
    parent: pulumi.Resource

    def before_nodes(self) -> list[pulumi.Resource]:
        """Install the add-ons that nodes need to become ready.

        The agent is installed before vpc-cni, which gets its credentials from it. Otherwise vpc-cni would use the node's, which have no
        permissions for the network (terraform-aws-eks issue 3260).
        """
        agent = self._install(POD_IDENTITY_AGENT, [])
        return [agent, self._install(KUBE_PROXY, []), self._install(VPC_CNI, [agent])]

    def after_nodes(self, nodes: Sequence[pulumi.Resource], *, but: Collection[Addon] = ()) -> list[pulumi.Resource]:
        """Install the other add-ons, which are only healthy once they run on `nodes`. `but` are those that the cluster already includes."""
        wanted = [each for each in AFTER_NODES if each.name not in but]
        if self.args["efs_driver"]:
            wanted.append(EFS_DRIVER)
        if self.args["lustre_driver"]:
            wanted.append(LUSTRE_DRIVER)
        if self.args["metrics_server"]:
            wanted.append(METRICS_SERVER)
        return [self._install(addon, nodes) for addon in wanted]

    def _install(self, addon: EksAddon, after: Sequence[pulumi.Resource]) -> pulumi.Resource:
        waits_for = [*after]
        identities: list[eks.AddonPodIdentityAssociationArgs] | None = None
        if addon.service_account and addon.policy:
            granted = self._role(addon.name, addon.service_account, addon.policy)
            identities = [eks.AddonPodIdentityAssociationArgs(role_arn=granted.role.arn, service_account=addon.service_account)]
            waits_for += granted.grants
        return eks.Addon(
            f"{self.name}-{addon.name}",
            addon_name=addon.name.value,
            cluster_name=self.cluster,
            addon_version=self._version(addon.name),
            configuration_values=None if addon.configuration is None else configuration_text(addon.configuration),
            pod_identity_associations=identities,
            # Manual changes are reverted, because the program is the source of the configuration.
            resolve_conflicts_on_create="OVERWRITE",
            resolve_conflicts_on_update="OVERWRITE",
            tags=self.args["tags"],
            opts=pulumi.ResourceOptions(parent=self.parent, depends_on=waits_for),
        )

    def _version(self, addon: Addon) -> pulumi.Input[str] | None:
        wanted = self.args["addon_versions"].get(addon)
        return _recommended_version(addon.value, self.kubernetes, self.parent) if wanted == RECOMMENDED else wanted

    def _role(self, addon: str, service_account: str, policy: str) -> GrantedRole:
        shape = RoleShape(
            name=role_name(self.args["cluster"], addon),
            description=f"EKS add-on {addon}",
            trust=pod_trust(eks_cluster_arn(self.args), _NAMESPACE, service_account),
            partition=self.args["partition"],
            policies=[policy],
            tags=self.args["tags"],
            iam_path=self.args["iam_path"],
            permissions_boundary=self.args["permissions_boundary"],
        )
        return granted_role(f"{self.name}-{addon}-role", shape, self.parent)


def _recommended_version(addon: str, kubernetes: str, parent: pulumi.Resource) -> pulumi.Output[str]:
    """Return the version that AWS recommends. It is unknown if AWS was not asked, as in an offline preview.

    Without `most_recent` the provider returns the default version for this Kubernetes version of EKS's DescribeAddonVersions. A run ends if
    EKS has no such version of the add-on (terraform-provider-aws, internal/service/eks/addon_version_data_source.go).
    """
    answer = eks.get_addon_version_output(
        addon_name=addon, kubernetes_version=kubernetes, most_recent=False, opts=pulumi.InvokeOutputOptions(parent=parent)
    )
    return answer.apply(_version_of)


def _version_of(answer: eks.GetAddonVersionResult) -> pulumi.Output[str]:
    version: str | None = answer.version
    return pulumi.Output.from_input(version) if version else _unknown()


def _unknown() -> pulumi.Output[str]:
    """Return a value that a preview shows as not known yet."""
    value, known, secret = asyncio.Future[str](), asyncio.Future[bool](), asyncio.Future[bool]()
    value.set_result("")
    known.set_result(False)
    secret.set_result(False)
    return pulumi.Output(set(), value, known, secret)


def configuration_text(configuration: dict[str, Any]) -> str:
    """Return a configuration as EKS accepts it. The text is always the same for the same configuration."""
    return json.dumps(configuration, separators=(",", ":"), sort_keys=True)


EKS_CHARTS = "https://aws.github.io/eks-charts"
"""The repository of AWS's own charts."""

EFA_NODE_LABEL = ("vpc.amazonaws.com/efa.present", "true")
"""Label of nodes that were launched with EFA interfaces. The NodePool sets it as one of `node_labels`."""

NEURON_CHART = f"oci://public.ecr.aws/neuron/{Chart.NEURON_DEVICE_PLUGIN.value}"
"""https://docs.aws.amazon.com/eks/latest/userguide/device-management-neuron.html recommends this plugin for nodes that Karpenter creates,
because the DRA driver does not support them (read 2026-11-26)."""


class GpuPluginsArgs(TypedDict):
    """Arguments of GpuPlugins."""

    ami: str
    """Alias of the node image, such as al2023@v20260903. bottlerocket@... images include NVIDIA's plugin."""

    efa: NotRequired[bool]
    """True if nodes have EFA interfaces, which pods request as vpc.amazonaws.com/efa. Default: False."""

    efa_machines: NotRequired[list[str]]
    """Machines on which the EFA plugin may run, such as p5.48xlarge. Default: the catalog's machines with EFA interfaces."""

    efa_image: NotRequired[str | None]
    """Repository of the EFA plugin's image, without a tag. Default: the chart's, 602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/...

    That repository is in the aws partition. Other partitions, and nodes that cannot reach other regions, need another."""

    nvidia: NotRequired[bool]
    """True if nodes have NVIDIA GPUs. Default: True."""

    neuron: NotRequired[bool]
    """True if nodes have AWS Trainium or Inferentia, which pods request as aws.amazon.com/neuron. Default: False."""

    nvidia_version: NotRequired[str | None]
    """Version of the NVIDIA chart. Default: that of flexspot/capacity/catalog/versions.yaml."""

    neuron_version: NotRequired[str | None]
    """Version of the Neuron chart. Default: that of flexspot/capacity/catalog/versions.yaml."""

    efa_version: NotRequired[str | None]
    """Version of the EFA plugin's chart. Default: that of flexspot/capacity/catalog/versions.yaml."""


class GpuPlugins(pulumi.ComponentResource):
    """Device plugins for nodes that Karpenter launches: NVIDIA's for NVIDIA GPUs, AWS's Neuron plugin for AWS accelerators, and AWS's EFA
    plugin for EFA interfaces.

    All of them tolerate every taint. Otherwise no pod could request the GPUs of a pool that has a taint. NVIDIA's chart would wait for
    labels of Node Feature Discovery, which is not installed. Here it uses the label that Karpenter sets on a GPU node before it boots. The
    Neuron chart has a list of machines that is as old as the chart. Here it also uses Karpenter's label. Only the plugin of that chart is
    installed: its scheduler would be a second one that bypasses taints and queues, and EKS's monitoring agent handles broken nodes. The EFA
    plugin exits at once on a node without EFA interfaces, so it only runs on nodes with `EFA_NODE_LABEL`.

    Raises ValueError, before anything is registered, for an image that is neither AL2023 nor Bottlerocket, and for `efa_image` or
    `efa_machines` without `efa`. The charts have not been installed in a live cluster. Their values are those of their repositories.
    """

    nvidia_version: pulumi.Output[str]
    """Version of NVIDIA's chart. Empty on Bottlerocket, which needs none, and without NVIDIA's GPUs."""

    neuron_version: pulumi.Output[str]
    """Version of the Neuron chart. Empty without Neuron devices."""

    efa_version: pulumi.Output[str]
    """Version of the EFA plugin's chart. Empty without EFA."""

    def __init__(self, name: str, args: GpuPluginsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        where, family = f"GpuPlugins {name}", args["ami"].partition("@")[0]
        efa, efa_image, machines = args.get("efa", False), args.get("efa_image"), args.get("efa_machines")
        if family not in {"al2023", "bottlerocket"}:
            refuse(where, SettingsProblem("ami", repr(args["ami"]), "must be al2023@RELEASE or bottlerocket@RELEASE", "use one of these"))
        if efa_image is not None and not efa:
            refuse(where, SettingsProblem("efa_image", efa_image, "there is no EFA plugin without efa", "set efa, or leave it out"))
        nvidia_version = args.get("nvidia_version") or shipped_versions().chart(Chart.NVIDIA_DEVICE_PLUGIN).version
        efa_version = args.get("efa_version") or shipped_versions().chart(Chart.EFA_DEVICE_PLUGIN).version
        neuron = args.get("neuron", False)
        neuron_version = args.get("neuron_version") or shipped_versions().chart(Chart.NEURON_DEVICE_PLUGIN).version
        check_form(f"{where}: nvidia_version", nvidia_version, CHART_VERSION)
        check_form(f"{where}: neuron_version", neuron_version, CHART_VERSION)
        check_form(f"{where}: efa_version", efa_version, CHART_VERSION)
        if machines is not None and not (efa and machines):
            problem = "names no machine" if efa else "there is no EFA plugin without efa"
            refuse(where, SettingsProblem("efa_machines", ", ".join(machines) or "[]", problem, "leave it out"))
        super().__init__("flexspot:index:GpuPlugins", name, {**args}, opts)
        child = pulumi.ResourceOptions(parent=self)
        nvidia = family != "bottlerocket" and args.get("nvidia", True)
        if nvidia:
            repository = "https://nvidia.github.io/k8s-device-plugin"
            chart_release(f"{name}-nvidia", Chart.NVIDIA_DEVICE_PLUGIN.value, nvidia_version, _nvidia(), child, repository=repository)
        if neuron:
            chart_release(f"{name}-neuron", NEURON_CHART, neuron_version, _neuron(), child)
        if efa:
            values = _efa(machines)
            if efa_image is not None:
                values["image"] = {"repository": efa_image}
            chart_release(f"{name}-efa", Chart.EFA_DEVICE_PLUGIN.value, efa_version, values, child, repository=EKS_CHARTS)
        self.nvidia_version = pulumi.Output.from_input(nvidia_version if nvidia else "")
        self.neuron_version = pulumi.Output.from_input(neuron_version if neuron else "")
        self.efa_version = pulumi.Output.from_input(efa_version if efa else "")
        publish(self)


def on_nvidia_gpus(instance_labels: str = KARPENTER_INSTANCE) -> dict[str, Any]:
    """Return the affinity to nodes that Karpenter launched with NVIDIA GPUs, which have the label before they boot.

    `instance_labels` is the prefix of the label keys that describe a machine.
    """
    return _on(NVIDIA, instance_labels)


def _on(accelerator: Accelerator, instance_labels: str = KARPENTER_INSTANCE) -> dict[str, Any]:
    key = f"{instance_labels}{accelerator.instance_label}-manufacturer"
    on_devices = {"matchExpressions": [{"key": key, "operator": "In", "values": [accelerator.manufacturer]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [on_devices]}}}


def _nvidia() -> dict[str, Any]:
    # Replaces the chart's own terms, which are a list.
    return {"affinity": on_nvidia_gpus(), "tolerations": [{"operator": "Exists"}]}


def _neuron() -> dict[str, Any]:
    # The names of values are those of `helm show values` for 1.10.0. Both lists replace the chart's own.
    plugin = {"affinity": _on(NEURON), "tolerations": [{"operator": "Exists"}]}
    return {"devicePlugin": plugin, "npd": {"enabled": False}, "scheduler": {"enabled": False}}


def _efa(machines: list[str] | None) -> dict[str, Any]:
    label, value = EFA_NODE_LABEL
    # The chart's own list of instance types is as old as the chart.
    known = [machine.name for machine in machines_of(Vendor.AWS).values() if machine.efa_interfaces]
    return {
        "supportedInstanceLabels": {"keys": [INSTANCE_TYPE_LABEL], "values": sorted(machines or known)},
        "nodeSelector": {label: value},
        "tolerations": [{"operator": "Exists"}],
    }


REPOSITORY = "https://nvidia.github.io/dcgm-exporter/helm-charts"
PORT = 9400

RESOURCES = {"requests": {"cpu": "100m", "memory": "512Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
"""More than the chart's own limit of 512 MiB, at which exporters on machines with eight GPUs are killed.

They use 417 to 511 MiB at rest (pytorch/ci-infra issue 1011, which went to 1 GiB). With the chart's 200m of CPU, scrapes of such machines
would be late (NVIDIA/dcgm-exporter pull request 741).
"""


class DcgmExporterArgs(TypedDict):
    """Arguments of DcgmExporter."""

    prometheus: str
    """The Prometheus that scrapes it: `operator` (the Prometheus Operator), or `annotations`."""

    monitor_labels: NotRequired[dict[str, str]]
    """Additional labels of the ServiceMonitor, by which the operator's Prometheus selects it. Default: none."""

    instance_labels: NotRequired[str]
    """Prefix of the label keys with which Karpenter describes a machine. In EKS Auto Mode: eks.amazonaws.com/instance-.

    Default: karpenter.k8s.aws/instance-."""

    version: NotRequired[str | None]
    """Chart version. Default: that of flexspot/capacity/catalog/versions.yaml."""


class DcgmExporter(pulumi.ComponentResource):
    """NVIDIA's DCGM exporter on nodes with NVIDIA GPUs that Karpenter launches, and the object by which Prometheus scrapes it.

    It tolerates every taint, requests no GPU, and sees all GPUs of a node through the nodes' default runtime, which is NVIDIA's on both
    images (AL2023 and Bottlerocket). It has the capability SYS_ADMIN. Without it there are no profiling series, and on Bottlerocket no
    series at all (bottlerocket-os/bottlerocket issue 3992). It therefore runs in kube-system and not in the namespace of
    kube-state-metrics, where Pod Security is `restricted`.

    EKS's node monitoring agent runs its own DCGM engine on the same nodes. Only one engine per node can read profiling series
    (DCGM_FI_PROF_*) (aws/eks-node-monitoring-agent issue 256). The agent reads none. Another exporter, such as the GPU operator's or the
    CloudWatch add-on's, takes them away from this one.

    Raises ValueError for an unknown `prometheus`, for Google's, and for monitor labels that nothing would read. The chart has not been
    installed in a live cluster. Its values are those of its repository.
    """

    version: pulumi.Output[str]
    """The version of the chart and the exporter, known once the release exists."""

    def __init__(self, name: str, args: DcgmExporterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        where = f"DcgmExporter {name}"
        prometheus, labels = checked_kind(where, args["prometheus"]), args.get("monitor_labels", {})
        if prometheus is PrometheusKind.MANAGED:
            problem = "is Google's service, which reads nothing on EKS"
            refuse(where, SettingsProblem("prometheus", prometheus, problem, "use operator or annotations"))
        if labels and prometheus is not PrometheusKind.OPERATOR:
            refuse(where, SettingsProblem("monitor_labels", "", f"with prometheus {prometheus} nothing selects by them", "leave them out"))
        version = args.get("version") or shipped_versions().chart(Chart.DCGM_EXPORTER).version
        check_form(f"{where}: version", version, CHART_VERSION)
        super().__init__("flexspot:index:DcgmExporter", name, {**args}, opts)
        child = pulumi.ResourceOptions(parent=self)
        release = chart_release(
            f"{name}-release",
            Chart.DCGM_EXPORTER.value,
            version,
            _values(prometheus, labels, args.get("instance_labels", KARPENTER_INSTANCE)),
            child,
            repository=REPOSITORY,
        )
        self.version = release.id.apply(lambda _: version)
        publish(self)


def _values(prometheus: PrometheusKind, monitor_labels: dict[str, str], instance_labels: str) -> dict[str, Any]:
    by_operator = prometheus is PrometheusKind.OPERATOR
    found = {"prometheus.io/scrape": "true", "prometheus.io/port": str(PORT)}
    # The chart has a monitor by default, whose kind is the operator's. Without the operator the release would fail.
    monitor: dict[str, Any] = {"enabled": by_operator}
    if by_operator:
        # With `honorLabels` the pod of a series is the one that has the GPU, not the exporter's own.
        monitor |= {"interval": f"{INTERVAL_SECONDS}s", "honorLabels": True, "additionalLabels": monitor_labels}
    return {
        "affinity": on_nvidia_gpus(instance_labels),
        "tolerations": [{"operator": "Exists"}],
        "securityContext": {"runAsNonRoot": False, "runAsUser": 0, "capabilities": {"add": ["SYS_ADMIN"]}},
        "resources": RESOURCES,
        "service": {"annotations": {} if by_operator else found},
        "serviceMonitor": monitor,
    }
