"""GKE's cluster autoscaler, and the node pools that it makes by itself (NAP)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulumi_gcp.container import (
    ClusterClusterAutoscalingArgs,
    ClusterClusterAutoscalingAutoProvisioningDefaultsArgs,
    ClusterClusterAutoscalingAutoProvisioningDefaultsManagementArgs,
    ClusterClusterAutoscalingAutoProvisioningDefaultsShieldedInstanceConfigArgs,
    ClusterClusterAutoscalingAutoProvisioningDefaultsUpgradeSettingsArgs,
    ClusterClusterAutoscalingResourceLimitArgs,
)

from components.gke.system_pool import OAUTH_SCOPES

if TYPE_CHECKING:
    from components.gke.cluster_args import ClusterShape, GkeAutoProvisioningArgs


def cluster_autoscaling(shape: ClusterShape) -> ClusterClusterAutoscalingArgs:
    """How the cluster grows. On Autopilot, which refuses ceilings and profile, it says only which service account the nodes run as."""
    if shape.is_autopilot:
        # Without it Autopilot's nodes run as the project's default Compute Engine account.
        return ClusterClusterAutoscalingArgs(
            auto_provisioning_defaults=ClusterClusterAutoscalingAutoProvisioningDefaultsArgs(
                service_account=shape.node_service_account, oauth_scopes=OAUTH_SCOPES
            )
        )
    if shape.auto_provisioning is None:
        return ClusterClusterAutoscalingArgs(enabled=False, autoscaling_profile="OPTIMIZE_UTILIZATION")
    return ClusterClusterAutoscalingArgs(
        enabled=True,
        # Idle nodes go sooner, and work is packed: idle GPUs are what the platform is there to avoid.
        autoscaling_profile="OPTIMIZE_UTILIZATION",
        auto_provisioning_locations=sorted(shape.zones),
        resource_limits=resource_limits(shape.auto_provisioning),
        auto_provisioning_defaults=ClusterClusterAutoscalingAutoProvisioningDefaultsArgs(
            service_account=shape.node_service_account,
            oauth_scopes=OAUTH_SCOPES,
            image_type="COS_CONTAINERD",
            disk_size=100,
            # No disk_type: GKE then takes pd-balanced, and hyperdisk-balanced for machines that take no other, as those of B200.
            management=ClusterClusterAutoscalingAutoProvisioningDefaultsManagementArgs(auto_repair=True, auto_upgrade=True),
            # Google signs the drivers that GKE installs, so Secure Boot does not stop them.
            shielded_instance_config=ClusterClusterAutoscalingAutoProvisioningDefaultsShieldedInstanceConfigArgs(
                enable_secure_boot=True, enable_integrity_monitoring=True
            ),
            # One node less for a while, not one more: where GPUs are sold out, one more is not to be had and the upgrade would hang.
            upgrade_settings=ClusterClusterAutoscalingAutoProvisioningDefaultsUpgradeSettingsArgs(
                strategy="SURGE", max_surge=0, max_unavailable=1
            ),
        ),
    )


def resource_limits(auto_provisioning: GkeAutoProvisioningArgs) -> list[ClusterClusterAutoscalingResourceLimitArgs]:
    """Ceilings in vCPU, in memory and in each accelerator. GKE refuses NAP without the first two, and a GPU without one of its own.

    The provider takes the list as ordered, so the order is always the same. That GKE answers in this order is not verified.
    """
    ceilings = {
        "cpu": auto_provisioning["max_vcpu"],
        "memory": auto_provisioning["max_memory_gib"],
        **dict(sorted(auto_provisioning.get("accelerators", {}).items())),
    }
    return [
        ClusterClusterAutoscalingResourceLimitArgs(resource_type=resource, minimum=0, maximum=ceiling)
        for resource, ceiling in ceilings.items()
    ]
