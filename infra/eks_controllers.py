"""The controllers of a platform on EKS: Karpenter with its side of AWS, device plugins, AWS's load balancer controller."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from capacity.catalog.accelerators import NEURON, NVIDIA
from capacity.catalog.node_labels import AUTO_MODE_INSTANCE
from capacity.catalog.versions import Chart
from capacity.settings.cluster import EksMode
from components.cloud_names import node_role_name, queue_name
from components.eks.addons import GpuPlugins
from components.eks.dcgm_exporter import DcgmExporter
from components.eks.load_balancer_controller import LoadBalancerController
from components.karpenter.controller import KarpenterController, KarpenterControllerIdentity, KarpenterNodeIdentity
from components.karpenter.interruption_queue import InterruptionQueue
from infra.eks_existing import KarpenterNodes

if TYPE_CHECKING:
    from capacity.plan.model import Plan
    from capacity.settings.platform import EksSettings
    from components.cloud_names import EksPlace
    from components.eks.addons import GpuPluginsArgs
    from components.eks.cluster import EksCluster
    from components.eks.dcgm_exporter import DcgmExporterArgs
    from components.eks.existing_cluster import ExistingEksCluster
    from components.eks.load_balancer_controller import LoadBalancerControllerArgs


def declare_karpenter(  # noqa: PLR0913, PLR0917 -- what it stands on, each from its own place
    plan: Plan,
    settings: EksSettings,
    place: EksPlace,
    cluster: EksCluster | ExistingEksCluster,
    on_aws: pulumi.ResourceOptions,
    in_cluster: pulumi.ResourceOptions,
) -> KarpenterNodes:
    """Registers Karpenter, its interruption queue and both identities."""
    queue = InterruptionQueue(
        "interruptions",
        {
            "cluster": place.cluster,
            "account": place.account,
            "partition": place.partition,
            "region": place.region,
            "tags": place.tags,
        },
        on_aws,
    )
    nodes = KarpenterNodeIdentity(
        "karpenter-nodes",
        {
            "cluster": place.cluster,
            "cluster_name": cluster.cluster_name,
            "partition": place.partition,
            # The CNI of a cluster of ours has an identity of its own; of another's nobody here knows.
            "cni_policy": settings.cluster.existing is not None,
            "tags": place.tags,
            "iam_path": place.iam_path,
            "permissions_boundary": place.permissions_boundary,
        },
        on_aws,
    )
    identity = KarpenterControllerIdentity(
        "karpenter-identity",
        {
            "cluster": place.cluster,
            "cluster_name": cluster.cluster_name,
            "account": place.account,
            "partition": place.partition,
            "region": place.region,
            "node_role_name": node_role_name(place.cluster),
            "queue_name": queue_name(place.cluster),
            "tags": place.tags,
            "iam_path": place.iam_path,
            "permissions_boundary": place.permissions_boundary,
        },
        on_aws,
    )
    size = settings.controllers.karpenter
    karpenter = KarpenterController(
        "karpenter",
        {
            "cluster_name": cluster.cluster_name,
            "cluster_endpoint": cluster.endpoint,
            "queue_name": queue.queue_name,
            "replicas": size.replicas,
            "cpu": size.cpu,
            "memory": size.memory,
            "version": plan.versions.charts[Chart.KARPENTER],
            "node_repair": settings.cluster.node_repair,
        },
        pulumi.ResourceOptions.merge(in_cluster, pulumi.ResourceOptions(depends_on=[identity])),
    )
    return KarpenterNodes(karpenter, nodes.role_name)


def declare_gpu_daemons(plan: Plan, settings: EksSettings, in_cluster: pulumi.ResourceOptions) -> None:
    """Registers what runs on every node with accelerators: device plugins, and what tells how busy GPUs are, unless somebody else does.

    Auto Mode has plugins of its own, and so has a GPU operator, with an exporter.
    """
    auto, operator = settings.cluster.mode is EksMode.AUTO, settings.cluster.existing_gpu_operator
    if not auto:
        GpuPlugins("gpu-plugins", plugin_args(plan, settings), in_cluster)
    measured = settings.measurement
    if measured.dcgm_exporter and not operator:
        exporter: DcgmExporterArgs = {
            "prometheus": measured.prometheus.value,
            "monitor_labels": measured.monitor_labels,
            "version": plan.versions.charts[Chart.DCGM_EXPORTER],
        }
        if auto:
            exporter["instance_labels"] = AUTO_MODE_INSTANCE
        DcgmExporter("dcgm-exporter", exporter, in_cluster)


def plugin_args(plan: Plan, settings: EksSettings) -> GpuPluginsArgs:
    """Which device plugins the plan's pools need, in which versions."""
    with_efa = {pool.name for pool in settings.pools if pool.efa}
    machines = sorted({machine for pool in plan.pools if pool.name in with_efa for machine in pool.machines})
    charts = plan.versions.charts
    args: GpuPluginsArgs = {
        "ami": settings.cluster.image,
        "efa": bool(machines),
        "nvidia": not settings.cluster.existing_gpu_operator and any(pool.resource == NVIDIA.resource for pool in plan.pools),
        "neuron": any(pool.resource == NEURON.resource for pool in plan.pools),
        "nvidia_version": charts.get(Chart.NVIDIA_DEVICE_PLUGIN),
        "neuron_version": charts.get(Chart.NEURON_DEVICE_PLUGIN),
        "efa_version": charts.get(Chart.EFA_DEVICE_PLUGIN),
        "efa_image": settings.controllers.efa_device_plugin.image if machines else None,
    }
    return {**args, "efa_machines": machines} if machines else args


def declare_load_balancers(  # noqa: PLR0913 -- what it stands on, each from its own place
    plan: Plan,
    settings: EksSettings,
    place: EksPlace,
    cluster: EksCluster | ExistingEksCluster,
    in_both: pulumi.ResourceOptions,
    *,
    node_selector: dict[str, str] | None,
    tolerations: list[dict[str, str]],
) -> list[LoadBalancerController]:
    """Registers AWS's load balancer controller where it is wanted.

    It takes its finalizers off Services and Ingresses, so what it returns must outlive them.
    """
    size = settings.controllers.load_balancer_controller
    if not size.install:
        return []
    args: LoadBalancerControllerArgs = {
        "cluster": place.cluster,
        "cluster_name": cluster.cluster_name,
        "account": place.account,
        "region": place.region,
        "vpc_id": cluster.vpc_id,
        "tags": place.tags,
        "partition": place.partition,
        "iam_path": place.iam_path,
        "permissions_boundary": place.permissions_boundary,
        "replicas": size.replicas,
        "cpu_milli": size.cpu_milli,
        "memory_mib": size.memory_mib,
        "version": plan.versions.charts[Chart.LOAD_BALANCER_CONTROLLER],
        "node_selector": node_selector or {},
        "tolerations": tolerations,
    }
    return [LoadBalancerController("load-balancers", args, in_both)]
