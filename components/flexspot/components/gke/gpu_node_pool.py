"""A GKE node pool of machines with GPUs or TPU chips at one capacity type."""

import pulumi
from pulumi_gcp import container
from pulumi_gcp.container import (
    NodePoolNodeConfigArgs,
    NodePoolNodeConfigEphemeralStorageLocalSsdConfigArgs,
    NodePoolNodeConfigGcfsConfigArgs,
    NodePoolNodeConfigGuestAcceleratorArgs,
    NodePoolNodeConfigGuestAcceleratorGpuDriverInstallationConfigArgs,
    NodePoolNodeConfigGuestAcceleratorGpuSharingConfigArgs,
    NodePoolNodeConfigGvnicArgs,
    NodePoolNodeConfigKubeletConfigArgs,
    NodePoolNodeConfigReservationAffinityArgs,
    NodePoolNodeConfigSecondaryBootDiskArgs,
    NodePoolNodeConfigShieldedInstanceConfigArgs,
    NodePoolNodeConfigTaintArgs,
    NodePoolNodeConfigWorkloadMetadataConfigArgs,
    NodePoolUpgradeSettingsArgs,
)

from flexspot.capacity.catalog.capacity_type import CapacityType, facts_of
from flexspot.capacity.settings.gke_rules import CRITICAL_PODS_SECONDS
from flexspot.capacity.settings.pools import GkeReservation, GkeSurge, GpuDriver, ReservationUse
from flexspot.components.gke.gpu_pool_args import (
    GPU_DRIVERS,
    SHARING_STRATEGIES,
    TAINT_EFFECTS,
    CheckedPool,
    GkeGpuNodePoolArgs,
    checked_pool,
)
from flexspot.components.gke.system_nodes import confidential_nodes
from flexspot.components.shared_args import publish


def node_config(pool: CheckedPool) -> NodePoolNodeConfigArgs:
    """Return the node configuration of a pool.

    False and empty values are omitted: GKE's answer does not have them, and they would show as changes in every later preview.
    """
    args, options, machine = pool.args, pool.options, pool.machine
    disks = machine.bundled_local_ssd_disks + options.local_ssd_disks
    return NodePoolNodeConfigArgs(
        machine_type=machine.name,
        image_type="COS_CONTAINERD",
        spot=True if pool.is_spot else None,
        flex_start=True if pool.is_dws else None,
        max_run_duration=_max_run_duration(pool),
        reservation_affinity=_reservation_affinity(pool),
        # TPU chips are part of the machine: GKE accepts no accelerator in addition.
        guest_accelerators=None if pool.has_tpus else [_guest_accelerator(pool)],
        labels=args.get("node_labels") or None,
        taints=[
            NodePoolNodeConfigTaintArgs(key=taint["key"], value=taint["value"], effect=TAINT_EFFECTS[taint["effect"]])
            for taint in args["taints"]
        ],
        resource_labels=args["resource_labels"],
        service_account=args["service_account"],
        # The service account's roles are the limit. Narrower scopes would only obscure them.
        oauth_scopes=["https://www.googleapis.com/auth/cloud-platform"],
        workload_metadata_config=NodePoolNodeConfigWorkloadMetadataConfigArgs(mode="GKE_METADATA"),
        shielded_instance_config=NodePoolNodeConfigShieldedInstanceConfigArgs(
            # Google signs the drivers that GKE installs. Secure Boot rejects others (NVIDIA/gpu-operator issue 1726).
            enable_secure_boot=options.gpu_driver is not GpuDriver.DISABLED,
            enable_integrity_monitoring=True,
        ),
        kubelet_config=_kubelet_config(pool),
        disk_size_gb=options.boot_disk_gib,
        disk_type=machine.boot_disk.value,
        boot_disk_kms_key=options.boot_disk_kms_key,
        confidential_nodes=confidential_nodes(options.confidential_nodes),
        ephemeral_storage_local_ssd_config=NodePoolNodeConfigEphemeralStorageLocalSsdConfigArgs(local_ssd_count=disks) if disks else None,
        secondary_boot_disks=[
            NodePoolNodeConfigSecondaryBootDiskArgs(disk_image=image, mode="CONTAINER_IMAGE_CACHE")
            for image in options.secondary_boot_disk_images
        ]
        or None,
        gcfs_config=NodePoolNodeConfigGcfsConfigArgs(enabled=True),
        gvnic=NodePoolNodeConfigGvnicArgs(enabled=True),
    )


_UPGRADES_HELD = container.NodePoolMaintenancePolicyArgs(
    exclusion_until_end_of_supports=[container.NodePoolMaintenancePolicyExclusionUntilEndOfSupportArgs(enabled=True)]
)


def _upgrade_settings(pool: CheckedPool) -> NodePoolUpgradeSettingsArgs | None:
    """Return the upgrade settings, or None for DWS capacity and for a slice of TPUs.

    GKE sets SHORT_LIVED for DWS capacity by itself, and the provider does not accept it as input. GKE replaces a slice as a whole.
    """
    if pool.is_dws or pool.options.tpu_topology is not None:
        return None
    surge = pool.options.surge or GkeSurge()
    return NodePoolUpgradeSettingsArgs(strategy="SURGE", max_surge=surge.max_surge, max_unavailable=surge.max_unavailable)


def _placement(pool: CheckedPool) -> container.NodePoolPlacementPolicyArgs | None:
    if pool.options.tpu_topology is not None:
        return container.NodePoolPlacementPolicyArgs(type="COMPACT", tpu_topology=pool.options.tpu_topology)
    return container.NodePoolPlacementPolicyArgs(type="COMPACT") if pool.options.compact_placement else None


def _network_config(args: GkeGpuNodePoolArgs) -> container.NodePoolNetworkConfigArgs | None:
    """Return the additional networks, or None without any: GKE's answer has its own block then, which would show as a change."""
    further = args.get("further_networks")
    if not further:
        return None
    return container.NodePoolNetworkConfigArgs(
        additional_node_network_configs=[
            container.NodePoolNetworkConfigAdditionalNodeNetworkConfigArgs(network=each["network"], subnetwork=each["subnetwork"])
            for each in further
        ]
    )


def _max_run_duration(pool: CheckedPool) -> str | None:
    if pool.capacity_type is not CapacityType.FLEX_START:
        return None
    longest = facts_of("gke")[CapacityType.FLEX_START].max_run_seconds
    return f"{pool.args.get('max_run_seconds') or longest}s"


def _reservation_affinity(pool: CheckedPool) -> NodePoolNodeConfigReservationAffinityArgs:
    reservation, project = pool.options.reservation, pool.args["project"]
    if reservation is None:
        # Not GKE's default, with which a pool of another capacity type uses any open reservation that matches.
        return NodePoolNodeConfigReservationAffinityArgs(consume_reservation_type="NO_RESERVATION")
    if reservation.use is ReservationUse.ANY:
        # ANY_RESERVATION alone continues with on-demand nodes that no ceiling counts. A separate pool declares and limits those.
        return NodePoolNodeConfigReservationAffinityArgs(consume_reservation_type="ANY_RESERVATION_THEN_FAIL")
    owner, reserved = reservation.project or project, _within_reservation(reservation)
    return NodePoolNodeConfigReservationAffinityArgs(
        consume_reservation_type="SPECIFIC_RESERVATION",
        key="compute.googleapis.com/reservation-name",
        values=[reserved if owner == project else f"projects/{owner}/reservations/{reserved}"],
    )


def _within_reservation(reservation: GkeReservation) -> str:
    """Return the name of the reservation, or of the part of it that nodes come from, as GKE's API expects it.

    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/consuming-reservations. The form with blocks is that of
    AI-Hypercomputer/gpu-recipes (docs/configuring-environment-gke-a4.md) and of GoogleCloudPlatform/cluster-autoscaler's own tests
    (pkg/cloudprovider/gke/reservations; read 2026-11-25).
    """
    parts = [("", reservation.name), ("reservationBlocks/", reservation.block), ("reservationSubBlocks/", reservation.sub_block)]
    return "/".join(f"{kind}{name}" for kind, name in parts if name is not None)


def _guest_accelerator(pool: CheckedPool) -> NodePoolNodeConfigGuestAcceleratorArgs:
    sharing = pool.options.gpu_sharing
    return NodePoolNodeConfigGuestAcceleratorArgs(
        type=pool.args["accelerator"],
        count=pool.args["gpus_per_node"],
        gpu_driver_installation_config=NodePoolNodeConfigGuestAcceleratorGpuDriverInstallationConfigArgs(
            gpu_driver_version=GPU_DRIVERS[pool.options.gpu_driver]
        ),
        gpu_partition_size=pool.options.mig_partition,
        gpu_sharing_config=NodePoolNodeConfigGuestAcceleratorGpuSharingConfigArgs(
            gpu_sharing_strategy=SHARING_STRATEGIES[sharing.strategy],
            max_shared_clients_per_gpu=sharing.clients_per_gpu,
        )
        if sharing
        else None,
    )


def _kubelet_config(pool: CheckedPool) -> NodePoolNodeConfigKubeletConfigArgs | None:
    grace = pool.options.shutdown_grace_seconds
    if grace is None:
        return None
    return NodePoolNodeConfigKubeletConfigArgs(
        shutdown_grace_period_seconds=grace,
        shutdown_grace_period_critical_pods_seconds=CRITICAL_PODS_SECONDS,
    )


class GkeGpuNodePool(pulumi.ComponentResource):
    """A node pool whose nodes exist only while pods need them, from `min_nodes` up to a ceiling for the whole pool.

    Its capacity type determines what GKE requires and forbids. Spot nodes use no reservation. Flex-start and queued nodes start from zero,
    are neither repaired nor surged, and use any zone that has capacity. Reserved nodes use the named reservation. On-demand nodes use none.
    Create a pool without GPUs first: a cluster with only GPU pools has no place for pods that tolerate no taint.

    For TPU machines, each node has its own chips, or with `tpu_topology` all nodes form one slice, which is created and removed as a whole.

    A change of GPU, TPU topology, capacity type, reservation, local SSD, run time or additional network replaces the pool. The old pool and
    its work end first, because two pools cannot have the same name. Ceilings, labels, taints, the machine and its boot disk change in place
    (ForceNew in the provider's schema of 2026-08).

    Raises ValueError, before anything is registered: for values that a policy would reject, under the name of its rule, and for those that
    GKE would reject.
    """

    name: pulumi.Output[str]
    """The node pool's name."""

    def __init__(self, name: str, args: GkeGpuNodePoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        pool = checked_pool(name, args)
        super().__init__("flexspot:index:GkeGpuNodePool", name, {**args}, opts)
        node_pool = container.NodePool(
            f"{name}-node-pool",
            name=args["pool"],
            project=args["project"],
            location=args.get("cluster_zone") or args["region"],
            cluster=args["cluster"],
            node_locations=args["zones"],
            initial_node_count=0,
            # In total, which does not depend on where the control plane is. The other two limits are per zone.
            autoscaling=container.NodePoolAutoscalingArgs(
                total_min_node_count=args.get("min_nodes") or 0,
                total_max_node_count=args["max_nodes"],
                # Spot and DWS capacity is only in some zones. Balanced zones would wait for the one with the least.
                location_policy="ANY" if pool.is_spot or pool.is_dws or pool.options.tpu_topology is not None else "BALANCED",
            ),
            # The autoscaler's count is not read here, and GKE may change initial_node_count, which would replace the pool.
            ignore_node_count_changes=True,
            upgrade_settings=_upgrade_settings(pool),
            maintenance_policies=[_UPGRADES_HELD] if pool.options.hold_upgrades else None,
            management=container.NodePoolManagementArgs(auto_upgrade=True, auto_repair=not pool.is_dws),
            queued_provisioning=container.NodePoolQueuedProvisioningArgs(enabled=True)
            if pool.capacity_type is CapacityType.QUEUED
            else None,
            placement_policy=_placement(pool),
            max_pods_per_node=args.get("max_pods_per_node"),
            network_config=_network_config(args),
            node_config=node_config(pool),
            opts=pulumi.ResourceOptions(
                parent=self,
                ignore_changes=["initial_node_count"],
                delete_before_replace=True,
                # Neither the API nor the provider changes a pool's topology, and the provider would not report that.
                replace_on_changes=["placementPolicy.tpuTopology"] if pool.options.tpu_topology else None,
            ),
        )
        self.name = node_pool.name
        publish(self)
