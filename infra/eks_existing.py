"""A cluster of EKS that somebody else made: what is read of it before anything is made in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pulumi

from capacity.catalog.accelerators import NVIDIA
from capacity.catalog.capacity_type import CapacityType
from components.eks.existing_gpu_operator import ExistingGpuOperator
from components.eks.existing_parts import ExistingClusterParts
from components.karpenter.existing_controller import ExistingKarpenter
from infra.platform_objects import cluster_provider
from infra.queue_objects import node_taint

if TYPE_CHECKING:
    from capacity.plan.cluster_needs import EksClusterNeeds
    from capacity.plan.model import Plan
    from capacity.settings.platform import EksSettings
    from components.eks.existing_cluster import ExistingEksCluster


@dataclass(frozen=True)
class KarpenterNodes:
    """What makes nodes: the Karpenter of the cluster, ours or its owner's, and the name of the role that its nodes run as."""

    karpenter: pulumi.Resource
    role_name: pulumi.Input[str]


@dataclass(frozen=True)
class FoundParts:
    """What runs on the cluster already. `kubeconfig` is the cluster's, known once all of it was found in order; `nodes` are those of its
    own Karpenter, None where it has none.
    """

    read: tuple[pulumi.Resource, ...]
    kubeconfig: pulumi.Output[str]
    nodes: KarpenterNodes | None


def read_parts(plan: Plan, settings: EksSettings, needs: EksClusterNeeds, cluster: ExistingEksCluster) -> FoundParts:
    """Reads what must run on the cluster, by a provider of its own, so that whatever is made there can wait for it."""
    reader = cluster_provider("cluster-reader", cluster.kubeconfig, cluster.arn)
    on_cluster = pulumi.ResourceOptions(provider=reader, depends_on=cluster.ready)
    parts = ExistingClusterParts("cluster-parts", {"addons": [each.value for each in needs.addons]}, on_cluster)
    read: list[pulumi.Resource] = [parts]
    in_order: list[pulumi.Output[object]] = [parts.found]
    nodes: KarpenterNodes | None = None
    if (theirs := settings.cluster.existing_karpenter) is not None:
        karpenter = _karpenter(settings, theirs.deployment, cluster, on_cluster)
        # Node classes have the role, so that none is made before the Karpenter was found in order.
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
            "taints": [node_taint(each) for each in sorted(taints, key=lambda taint: (taint.key, taint.value, taint.effect))],
            "dcgm_exporter": settings.measurement.dcgm_exporter,
        },
        on_cluster,
    )
