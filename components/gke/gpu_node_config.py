"""What a GKE GPU node is made of, as GKE's API takes it."""

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
)

from capacity.catalog.capacity_type import CapacityType, facts_of
from capacity.catalog.gke_rules import CRITICAL_PODS_SECONDS, HYPERDISK_ONLY
from capacity.catalog.machines import Machine
from components.gke.gpu_pool_args import GpuPool
from components.gke.gpu_pool_checks import DISK_GB, GPU_DRIVERS, SHARING_STRATEGIES, TAINT_EFFECTS


def node_config(pool: GpuPool, machine: Machine) -> NodePoolNodeConfigArgs:
    """The nodes of `pool`, which have passed its checks.

    What is false or empty is left out: GKE answers without it, and it would show as a change in every later preview.
    """
    bundled = machine.local_ssd_gb // DISK_GB if pool.bundled_local_ssd_disks is None else pool.bundled_local_ssd_disks
    disks = bundled + pool.local_ssd_disks
    default_disk = "hyperdisk-balanced" if machine.name.startswith(HYPERDISK_ONLY) else "pd-balanced"
    return NodePoolNodeConfigArgs(
        machine_type=machine.name,
        image_type="COS_CONTAINERD",
        spot=True if pool.is_spot else None,
        flex_start=True if pool.is_dws else None,
        max_run_duration=_max_run_duration(pool),
        reservation_affinity=_reservation_affinity(pool),
        guest_accelerators=[_guest_accelerator(pool)],
        labels=pool.node_labels or None,
        taints=[
            NodePoolNodeConfigTaintArgs(key=taint["key"], value=taint["value"], effect=TAINT_EFFECTS[taint["effect"]])
            for taint in pool.taints
        ],
        resource_labels=pool.resource_labels,
        service_account=pool.service_account,
        # The service account's roles are the limit; narrower scopes would only hide them.
        oauth_scopes=["https://www.googleapis.com/auth/cloud-platform"],
        workload_metadata_config=NodePoolNodeConfigWorkloadMetadataConfigArgs(mode="GKE_METADATA"),
        shielded_instance_config=NodePoolNodeConfigShieldedInstanceConfigArgs(
            # Google signs the drivers that GKE installs. Secure Boot refuses those of others (NVIDIA/gpu-operator issue 1726).
            enable_secure_boot=pool.gpu_driver != "disabled",
            enable_integrity_monitoring=True,
        ),
        kubelet_config=_kubelet_config(pool),
        disk_size_gb=pool.boot_disk_gib,
        disk_type=pool.boot_disk_type or default_disk,
        ephemeral_storage_local_ssd_config=NodePoolNodeConfigEphemeralStorageLocalSsdConfigArgs(local_ssd_count=disks) if disks else None,
        secondary_boot_disks=[
            NodePoolNodeConfigSecondaryBootDiskArgs(disk_image=image, mode="CONTAINER_IMAGE_CACHE")
            for image in pool.secondary_boot_disk_images
        ]
        or None,
        gcfs_config=NodePoolNodeConfigGcfsConfigArgs(enabled=True),
        gvnic=NodePoolNodeConfigGvnicArgs(enabled=True) if pool.gvnic or machine.gvnic else None,
    )


def _max_run_duration(pool: GpuPool) -> str | None:
    if pool.capacity_type != CapacityType.FLEX_START:
        return None
    longest = facts_of("gke")[CapacityType.FLEX_START].max_run_seconds
    return f"{pool.max_run_seconds or longest}s"


def _reservation_affinity(pool: GpuPool) -> NodePoolNodeConfigReservationAffinityArgs:
    reservation = pool.reservation
    if reservation is None:
        # Not GKE's default: without it, a pool of another capacity type uses up whichever open reservation matches.
        return NodePoolNodeConfigReservationAffinityArgs(consume_reservation_type="NO_RESERVATION")
    if reservation["use"] == "any":
        return NodePoolNodeConfigReservationAffinityArgs(consume_reservation_type="ANY_RESERVATION")
    owner, reserved = reservation.get("project") or pool.project, reservation.get("name") or ""
    return NodePoolNodeConfigReservationAffinityArgs(
        consume_reservation_type="SPECIFIC_RESERVATION",
        key="compute.googleapis.com/reservation-name",
        values=[reserved if owner == pool.project else f"projects/{owner}/reservations/{reserved}"],
    )


def _guest_accelerator(pool: GpuPool) -> NodePoolNodeConfigGuestAcceleratorArgs:
    sharing = pool.gpu_sharing
    return NodePoolNodeConfigGuestAcceleratorArgs(
        type=pool.accelerator,
        count=pool.gpus_per_node,
        gpu_driver_installation_config=NodePoolNodeConfigGuestAcceleratorGpuDriverInstallationConfigArgs(
            gpu_driver_version=GPU_DRIVERS[pool.gpu_driver]
        ),
        gpu_partition_size=pool.mig_partition,
        gpu_sharing_config=NodePoolNodeConfigGuestAcceleratorGpuSharingConfigArgs(
            gpu_sharing_strategy=SHARING_STRATEGIES[sharing["strategy"]],
            max_shared_clients_per_gpu=sharing["clients_per_gpu"],
        )
        if sharing
        else None,
    )


def _kubelet_config(pool: GpuPool) -> NodePoolNodeConfigKubeletConfigArgs | None:
    if pool.shutdown_grace_seconds is None:
        return None
    return NodePoolNodeConfigKubeletConfigArgs(
        shutdown_grace_period_seconds=pool.shutdown_grace_seconds,
        shutdown_grace_period_critical_pods_seconds=CRITICAL_PODS_SECONDS,
    )
