"""Controllers of a platform on EKS: Karpenter with its resources in AWS, device plugins, and AWS's load balancer controller.

Also reads the parts that already run on an existing cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pulumi

from flexspot.capacity.catalog.accelerators import NEURON, NVIDIA
from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.node_labels import AUTO_MODE_INSTANCE
from flexspot.capacity.catalog.versions import Chart
from flexspot.capacity.settings.cluster import EksMode
from flexspot.components.cloud_names import node_role_name, queue_name
from flexspot.components.eks.addons import DcgmExporter, DcgmExporterArgs, GpuPlugins, GpuPluginsArgs
from flexspot.components.eks.existing_cluster import ExistingClusterParts, ExistingGpuOperator
from flexspot.components.eks.load_balancer_controller import LoadBalancerController, LoadBalancerControllerArgs
from flexspot.components.karpenter.controller import (
    ExistingKarpenter,
    KarpenterController,
    KarpenterControllerArgs,
    KarpenterControllerIdentity,
    KarpenterControllerIdentityArgs,
    KarpenterNodeIdentity,
    KarpenterNodeIdentityArgs,
)
from flexspot.components.karpenter.interruption_queue import InterruptionQueue, InterruptionQueueArgs
from flexspot.components.shared_args import arguments
from flexspot.infra.declaring.platform_objects import after, cluster_provider

if TYPE_CHECKING:
    from pulumi_aws.provider import Provider as AwsProvider
    from pulumi_kubernetes import Provider

    from flexspot.capacity.plan.model import Plan
    from flexspot.capacity.plan.needs import EksClusterNeeds
    from flexspot.capacity.settings.platform import EksSettings
    from flexspot.components.cloud_names import EksPlace
    from flexspot.components.eks.cluster import EksCluster
    from flexspot.components.eks.existing_cluster import ExistingEksCluster
    from flexspot.infra.declaring.platform_objects import ControllerNodes


@dataclass(frozen=True)
class EksStack:
    """A stack on EKS while it is being declared."""

    plan: Plan
    settings: EksSettings
    place: EksPlace
    cluster: EksCluster | ExistingEksCluster
    subnets: dict[str, pulumi.Input[str]]
    """Private subnets by zone, as far as they are known."""
    within: pulumi.ResourceOptions
    """Names the parent of the stack's resources."""
    aws: AwsProvider
    kubernetes: Provider

    @property
    def on_aws(self) -> pulumi.ResourceOptions:
        """Options of resources that are only in AWS."""
        return pulumi.ResourceOptions.merge(self.within, pulumi.ResourceOptions(provider=self.aws))

    @property
    def on_cluster(self) -> pulumi.ResourceOptions:
        """Options of resources that are only in the cluster."""
        return pulumi.ResourceOptions.merge(self.within, pulumi.ResourceOptions(provider=self.kubernetes))

    @property
    def on_both(self) -> pulumi.ResourceOptions:
        """Options of components with resources in AWS and in the cluster."""
        return pulumi.ResourceOptions.merge(self.within, pulumi.ResourceOptions(providers=[self.aws, self.kubernetes]))


def declare_karpenter(stack: EksStack) -> KarpenterNodes:
    """Register Karpenter, its interruption queue and both identities."""
    plan, settings, place, cluster = stack.plan, stack.settings, stack.place, stack.cluster
    queue = InterruptionQueue("interruptions", arguments(InterruptionQueueArgs, place), stack.on_aws)
    of_nodes = arguments(
        KarpenterNodeIdentityArgs,
        place,
        cluster_name=cluster.cluster_name,
        # The CNI of a cluster that Flexspot creates has a separate identity. That of an existing cluster is not known.
        cni_policy=settings.cluster.existing is not None,
    )
    nodes = KarpenterNodeIdentity("karpenter-nodes", of_nodes, stack.on_aws)
    of_controller = arguments(
        KarpenterControllerIdentityArgs,
        place,
        cluster_name=cluster.cluster_name,
        node_role_name=node_role_name(place.cluster),
        queue_name=queue_name(place.cluster),
    )
    identity = KarpenterControllerIdentity("karpenter-identity", of_controller, stack.on_aws)
    args = arguments(
        KarpenterControllerArgs,
        settings.controllers.karpenter,
        settings.cluster,
        cluster_name=cluster.cluster_name,
        cluster_endpoint=cluster.endpoint,
        queue_name=queue.queue_name,
        version=plan.versions.charts[Chart.KARPENTER],
    )
    karpenter = KarpenterController("karpenter", args, after(stack.on_cluster, *cluster.ready, identity))
    return KarpenterNodes(karpenter, nodes.role_name)


def declare_gpu_daemons(plan: Plan, settings: EksSettings, in_cluster: pulumi.ResourceOptions) -> None:
    """Register the daemons of nodes with accelerators: device plugins and the DCGM exporter, unless the cluster already has them.

    Auto Mode has its own device plugins. A GPU operator has device plugins and an exporter.
    """
    auto, operator = settings.cluster.mode is EksMode.AUTO, settings.cluster.existing_gpu_operator
    if not auto:
        GpuPlugins("gpu-plugins", plugin_args(plan, settings), in_cluster)
    measured = settings.measurement
    if measured.dcgm_exporter and not operator:
        exporter = arguments(DcgmExporterArgs, measured, version=plan.versions.charts[Chart.DCGM_EXPORTER])
        if auto:
            exporter["instance_labels"] = AUTO_MODE_INSTANCE
        DcgmExporter("dcgm-exporter", exporter, in_cluster)


def plugin_args(plan: Plan, settings: EksSettings) -> GpuPluginsArgs:
    """Return the device plugins that the plan's pools need, with their versions."""
    with_efa = {pool.name for pool in settings.pools if pool.efa}
    machines = sorted({machine for pool in plan.pools if pool.name in with_efa for machine in pool.machines})
    charts = plan.versions.charts
    args = arguments(
        GpuPluginsArgs,
        ami=settings.cluster.image,
        efa=bool(machines),
        nvidia=not settings.cluster.existing_gpu_operator and any(pool.resource == NVIDIA.resource for pool in plan.pools),
        neuron=any(pool.resource == NEURON.resource for pool in plan.pools),
        nvidia_version=charts.get(Chart.NVIDIA_DEVICE_PLUGIN),
        neuron_version=charts.get(Chart.NEURON_DEVICE_PLUGIN),
        efa_version=charts.get(Chart.EFA_DEVICE_PLUGIN),
        efa_image=settings.controllers.efa_device_plugin.image if machines else None,
    )
    return {**args, "efa_machines": machines} if machines else args


def declare_load_balancers(stack: EksStack, in_both: pulumi.ResourceOptions, nodes: ControllerNodes) -> list[LoadBalancerController]:
    """Register AWS's load balancer controller if it is enabled.

    It removes its finalizers from Services and Ingresses, so the returned resources must be deleted after those.
    """
    wanted = stack.settings.controllers.load_balancer_controller
    if not wanted.install:
        return []
    args = arguments(
        LoadBalancerControllerArgs,
        stack.place,
        wanted,
        nodes,
        cluster_name=stack.cluster.cluster_name,
        vpc_id=stack.cluster.vpc_id,
        version=stack.plan.versions.charts[Chart.LOAD_BALANCER_CONTROLLER],
    )
    return [LoadBalancerController("load-balancers", args, in_both)]


@dataclass(frozen=True)
class KarpenterNodes:
    """Karpenter on the cluster, and the name of the role of its nodes."""

    karpenter: pulumi.Resource
    """The stack's own Karpenter, or the one that the cluster already had."""
    role_name: pulumi.Input[str]


@dataclass(frozen=True)
class FoundParts:
    """Parts that already run on the cluster."""

    read: tuple[pulumi.Resource, ...]
    kubeconfig: pulumi.Output[str]
    """The cluster's kubeconfig. Known once every part was found and is in order."""
    nodes: KarpenterNodes | None
    """Nodes of the cluster's own Karpenter. None if it has none."""


def read_parts(
    plan: Plan, settings: EksSettings, needs: EksClusterNeeds, cluster: ExistingEksCluster, within: pulumi.ResourceOptions
) -> FoundParts:
    """Read the parts that must run on the cluster.

    A separate provider reads them, so that resources on the cluster can wait for the result.
    """
    reader = cluster_provider("cluster-reader", within, cluster.kubeconfig, cluster.arn)
    on_cluster = pulumi.ResourceOptions.merge(within, pulumi.ResourceOptions(provider=reader, depends_on=cluster.ready))
    parts = ExistingClusterParts("cluster-parts", {"addons": [each.value for each in needs.addons]}, on_cluster)
    read: list[pulumi.Resource] = [parts]
    in_order: list[pulumi.Output[object]] = [parts.found]
    nodes: KarpenterNodes | None = None
    if (theirs := settings.cluster.existing_karpenter) is not None:
        karpenter = _karpenter(settings, theirs.deployment, cluster, on_cluster)
        # Node classes contain the role. So none is created before Karpenter was found and is in order.
        nodes = KarpenterNodes(karpenter, karpenter.deployment.apply(lambda _: theirs.node_role))
        read.append(karpenter)
        in_order.append(karpenter.deployment)
    if settings.cluster.existing_gpu_operator:
        operator = _gpu_operator(plan, settings, on_cluster)
        read.append(operator)
        in_order.append(operator.policy)
    kubeconfig = pulumi.Output.all(cluster.kubeconfig, *in_order).apply(lambda known: str(known[0]))
    return FoundParts(tuple(read), kubeconfig, nodes)


def _karpenter(
    settings: EksSettings, deployment: str, cluster: ExistingEksCluster, on_cluster: pulumi.ResourceOptions
) -> ExistingKarpenter:
    used = {
        "capacityReservationSelectorTerms": any(pool.reservation for pool in settings.pools),
        "networkInterfaces": any(pool.efa for pool in settings.pools),
        "placementGroupSelector": any(pool.compact_placement for pool in settings.pools),
    }
    return ExistingKarpenter(
        "karpenter",
        {
            "cluster": settings.cluster.existing or "",
            "kubernetes_version": cluster.kubernetes_version,
            "deployment": deployment,
            "reserved": any(pool.capacity_type is CapacityType.RESERVED for pool in settings.pools),
            "fields": [field for field, needed in used.items() if needed],
        },
        on_cluster,
    )


def _gpu_operator(plan: Plan, settings: EksSettings, on_cluster: pulumi.ResourceOptions) -> ExistingGpuOperator:
    taints = {taint for pool in plan.pools if pool.resource == NVIDIA.resource for taint in pool.taints}
    return ExistingGpuOperator(
        "gpu-operator",
        {
            "taints": [
                {"key": each.key, "value": each.value, "effect": each.effect.value}
                for each in sorted(taints, key=lambda taint: (taint.key, taint.value, taint.effect))
            ],
            "dcgm_exporter": settings.measurement.dcgm_exporter,
        },
        on_cluster,
    )
