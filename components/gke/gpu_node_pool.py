"""A GKE node pool of GPU machines at one capacity type."""

import pulumi
from pulumi_gcp import container

from capacity.catalog.capacity_type import CapacityType
from components.gke.gpu_node_config import node_config
from components.gke.gpu_pool_args import GkeGpuNodePoolArgs, GpuPool
from components.gke.gpu_pool_checks import checked_machine


class GkeGpuNodePool(pulumi.ComponentResource):
    """One node pool whose nodes exist only while pods need them: from `min_nodes`, up to a ceiling of the whole pool.

    Its capacity type decides what GKE requires and forbids: Spot nodes take no reservation; flex-start and queued nodes start from zero,
    are neither repaired nor surged, and take what zone has room; reserved nodes draw on the named reservation; on-demand nodes on none.
    Make a pool without GPUs first: a cluster with GPU pools alone has nowhere to run what tolerates no taint.

    A changed GPU, capacity type, reservation, local SSD or run time replaces the pool, and ends what runs on it first: two pools cannot
    share one name. Ceilings, labels, taints, the machine and its boot disk change in place (ForceNew in the provider's schema of 2026-08).

    Raises ValueError before anything is registered: for what a policy would stop, under the name of its rule, and for what GKE would
    refuse.
    """

    name: pulumi.Output[str]
    """The node pool's name."""

    def __init__(self, name: str, args: GkeGpuNodePoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        pool = GpuPool(**args)
        machine = checked_machine(name, pool)
        super().__init__("flexspot:index:GkeGpuNodePool", name, {**args}, opts)
        node_pool = container.NodePool(
            f"{name}-node-pool",
            name=pool.pool,
            project=pool.project,
            location=pool.region,
            cluster=pool.cluster,
            node_locations=pool.zones,
            initial_node_count=0,
            autoscaling=container.NodePoolAutoscalingArgs(
                total_min_node_count=pool.min_nodes,
                total_max_node_count=pool.max_nodes,
                # Spot and DWS capacity is where it is; balanced zones would wait for the emptiest of them.
                location_policy="ANY" if pool.is_spot or pool.is_dws else "BALANCED",
            ),
            # The autoscaler's count is not ours to read, and GKE may change initial_node_count, which would replace the pool.
            ignore_node_count_changes=True,
            management=container.NodePoolManagementArgs(auto_upgrade=True, auto_repair=not pool.is_dws),
            upgrade_settings=container.NodePoolUpgradeSettingsArgs(strategy="SHORT_LIVED") if pool.is_dws else None,
            queued_provisioning=container.NodePoolQueuedProvisioningArgs(enabled=True)
            if pool.capacity_type == CapacityType.QUEUED
            else None,
            placement_policy=container.NodePoolPlacementPolicyArgs(type="COMPACT") if pool.compact_placement else None,
            max_pods_per_node=pool.max_pods_per_node,
            node_config=node_config(pool, machine),
            opts=pulumi.ResourceOptions(parent=self, ignore_changes=["initial_node_count"], delete_before_replace=True),
        )
        self.name = node_pool.name
        self.register_outputs({"name": self.name})
