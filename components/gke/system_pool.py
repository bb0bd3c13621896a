"""The nodes of the controllers, and what they have in common with the pool that GKE makes first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi
from pulumi_gcp.container import (
    ClusterNodeConfigArgs,
    ClusterNodeConfigShieldedInstanceConfigArgs,
    ClusterNodeConfigWorkloadMetadataConfigArgs,
    NodePool,
    NodePoolAutoscalingArgs,
    NodePoolManagementArgs,
    NodePoolNodeConfigArgs,
    NodePoolNodeConfigGcfsConfigArgs,
    NodePoolNodeConfigGvnicArgs,
    NodePoolNodeConfigShieldedInstanceConfigArgs,
    NodePoolNodeConfigWorkloadMetadataConfigArgs,
    NodePoolUpgradeSettingsArgs,
)

if TYPE_CHECKING:
    from components.gke.cluster_args import ClusterShape, SystemPool

OAUTH_SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]
"""The service account's roles are the limit; narrower scopes would only hide them."""

POOL_LABEL = "flexspot.dev/pool"
SYSTEM_POOL = "system"


def first_pool_config(shape: ClusterShape) -> ClusterNodeConfigArgs:
    """The pool without which GKE makes no cluster, and which is removed at once: even for minutes not as the default account."""
    return ClusterNodeConfigArgs(
        service_account=shape.node_service_account,
        oauth_scopes=OAUTH_SCOPES,
        shielded_instance_config=ClusterNodeConfigShieldedInstanceConfigArgs(enable_secure_boot=True, enable_integrity_monitoring=True),
        workload_metadata_config=ClusterNodeConfigWorkloadMetadataConfigArgs(mode="GKE_METADATA"),
    )


def system_node_pool(name: str, shape: ClusterShape, pool: SystemPool, cluster: pulumi.Input[str], parent: pulumi.Resource) -> NodePool:
    """The pool of the controllers: on-demand, without GPUs, in all zones of the cluster.

    It has no taint. With one, Kueue, the metrics and everything else that is installed, GKE's own add-ons included, would each need a
    toleration and stay pending without; and nothing strays onto the expensive nodes, because those are tainted. Its label lets a
    controller ask for it.
    """
    return NodePool(
        f"{name}-system-pool",
        name=SYSTEM_POOL,
        project=shape.project,
        location=shape.region,
        cluster=cluster,
        node_locations=sorted(shape.zones),
        # In each zone. The autoscaler brings the pool up to min_nodes; later changes are not ours, and a new number would replace the pool.
        initial_node_count=max(1, pool.min_nodes // len(shape.zones)),
        autoscaling=NodePoolAutoscalingArgs(
            total_min_node_count=pool.min_nodes, total_max_node_count=pool.max_nodes, location_policy="BALANCED"
        ),
        management=NodePoolManagementArgs(auto_repair=True, auto_upgrade=True),
        upgrade_settings=NodePoolUpgradeSettingsArgs(strategy="SURGE", max_surge=1, max_unavailable=0),
        ignore_node_count_changes=True,
        node_config=NodePoolNodeConfigArgs(
            machine_type=pool.machine,
            image_type="COS_CONTAINERD",
            disk_size_gb=pool.disk_gib,
            disk_type="pd-balanced",
            labels={POOL_LABEL: SYSTEM_POOL, **shape.owner_labels},
            resource_labels=shape.resource_labels,
            service_account=shape.node_service_account,
            oauth_scopes=OAUTH_SCOPES,
            shielded_instance_config=NodePoolNodeConfigShieldedInstanceConfigArgs(
                enable_secure_boot=True, enable_integrity_monitoring=True
            ),
            workload_metadata_config=NodePoolNodeConfigWorkloadMetadataConfigArgs(mode="GKE_METADATA"),
            gcfs_config=NodePoolNodeConfigGcfsConfigArgs(enabled=True),
            gvnic=NodePoolNodeConfigGvnicArgs(enabled=True),
        ),
        opts=pulumi.ResourceOptions(parent=parent, ignore_changes=["initial_node_count"], delete_before_replace=True),
    )
