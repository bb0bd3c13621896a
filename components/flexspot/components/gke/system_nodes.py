"""Nodes besides those of the GPU pools, and who they run as: the system pool, and what GKE's cluster autoscaler makes by itself."""

from typing import NotRequired, TypedDict

import pulumi
from pulumi_gcp import projects, serviceaccount
from pulumi_gcp.container import (
    ClusterClusterAutoscalingArgs,
    ClusterClusterAutoscalingAutoProvisioningDefaultsArgs,
    ClusterClusterAutoscalingAutoProvisioningDefaultsManagementArgs,
    ClusterClusterAutoscalingAutoProvisioningDefaultsShieldedInstanceConfigArgs,
    ClusterClusterAutoscalingAutoProvisioningDefaultsUpgradeSettingsArgs,
    ClusterClusterAutoscalingResourceLimitArgs,
    ClusterNodeConfigArgs,
    ClusterNodeConfigShieldedInstanceConfigArgs,
    ClusterNodeConfigWorkloadMetadataConfigArgs,
    NodePool,
    NodePoolAutoscalingArgs,
    NodePoolManagementArgs,
    NodePoolNodeConfigArgs,
    NodePoolNodeConfigConfidentialNodesArgs,
    NodePoolNodeConfigGcfsConfigArgs,
    NodePoolNodeConfigGvnicArgs,
    NodePoolNodeConfigShieldedInstanceConfigArgs,
    NodePoolNodeConfigWorkloadMetadataConfigArgs,
    NodePoolUpgradeSettingsArgs,
)

from flexspot.components.cloud_names import ACCOUNT_ID_LENGTH, check_name, check_project, fitted
from flexspot.components.gke.cluster_args import GkeAutoProvisioningArgs, GkeClusterArgs, GkeSystemPoolArgs, boot_disk, is_autopilot
from flexspot.components.shared_args import filled, publish

_SHORTEST_ACCOUNT_ID = 6

ROLES = {
    "node": "roles/container.defaultNodeServiceAccount",
    "image-reader": "roles/artifactregistry.reader",
    "image-streamer": "roles/serviceusage.serviceUsageConsumer",
}
"""What nodes need: to write logs and metrics, to pull images of the project's own registries, and to stream them: without the last role
GKE falls back to pulling whole images (https://cloud.google.com/kubernetes-engine/docs/how-to/image-streaming, requirements)."""


class GkeNodeIdentityArgs(TypedDict):
    """Arguments of GkeNodeIdentity; all are plain because they args the account."""

    project: str
    """Project id; the roles are granted in this project."""

    account_id: str
    """Account id, at least 6 characters. An id above Google Cloud's limit of 30 is cut, with a hash of the whole."""

    description: NotRequired[str]
    """Purpose of the account, at most 256 characters. Default: Nodes of GKE."""


class GkeNodeIdentity(pulumi.ComponentResource):
    """A dedicated service account for the nodes, with the roles that nodes need.

    It replaces the project's default Compute Engine account: unless the organization forbids it, that account is an editor of the whole
    project, everything else on Compute Engine shares it, and every node would expose it to whoever breaks out of a pod. Pods get further
    permissions individually, by Workload Identity. Raises ValueError for an id that cannot be turned into a valid one.
    """

    email: pulumi.Output[str]
    """The account's e-mail address, known once its roles are granted: nodes that start before could not write logs or pull images."""

    def __init__(self, name: str, args: GkeNodeIdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        where = f"GkeNodeIdentity {name}:"
        check_project(f"{where} project", args["project"])
        account_id = fitted(args["account_id"], ACCOUNT_ID_LENGTH)
        check_name(f"{where} account_id", account_id, ACCOUNT_ID_LENGTH, _SHORTEST_ACCOUNT_ID)
        description = args.get("description", "Nodes of GKE")
        super().__init__("flexspot:index:GkeNodeIdentity", name, {**args, "description": description}, opts)
        child = pulumi.ResourceOptions(parent=self)
        account = serviceaccount.Account(
            f"{name}-account",
            project=args["project"],
            account_id=account_id,
            display_name=account_id,
            description=description,
            opts=child,
        )
        grants = [
            # A member, not a binding: a binding would take the role away from everybody else.
            projects.IAMMember(f"{name}-{key}", project=args["project"], role=role, member=account.member, opts=child)
            for key, role in ROLES.items()
        ]
        self.email = pulumi.Output.all(account.email, *(grant.id for grant in grants)).apply(lambda known: known[0])
        publish(self)


OAUTH_SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]
"""The service account's roles are the limit; narrower scopes would only hide them."""

POOL_LABEL = "flexspot.dev/pool"
SYSTEM_POOL = "system"


def first_pool_config(args: GkeClusterArgs) -> ClusterNodeConfigArgs:
    """The pool without which GKE makes no cluster, and which is removed at once: even for minutes not as the default account."""
    return ClusterNodeConfigArgs(
        service_account=args["node_service_account"],
        oauth_scopes=OAUTH_SCOPES,
        # An organization may forbid every other disk.
        boot_disk_kms_key=_disk_key(args),
        shielded_instance_config=ClusterNodeConfigShieldedInstanceConfigArgs(enable_secure_boot=True, enable_integrity_monitoring=True),
        workload_metadata_config=ClusterNodeConfigWorkloadMetadataConfigArgs(mode="GKE_METADATA"),
    )


def system_node_pool(
    name: str, args: GkeClusterArgs, system_pool: GkeSystemPoolArgs, cluster: pulumi.Input[str], parent: pulumi.Resource
) -> NodePool:
    """The pool of the controllers: on-demand, without GPUs, in all zones of the cluster.

    It has no taint. With one, Kueue, the metrics and everything else that is installed, GKE's own add-ons included, would each need a
    toleration and stay pending without; and nothing strays onto the expensive nodes, because those are tainted. Its label lets a
    controller ask for it.
    """
    pool = filled(GkeSystemPoolArgs, system_pool)
    return NodePool(
        f"{name}-system-pool",
        name=SYSTEM_POOL,
        project=args["project"],
        location=args["region"],
        cluster=cluster,
        node_locations=sorted(args["zones"]),
        # In each zone. The autoscaler brings the pool up to min_nodes; later changes are not ours, and a new number would replace the pool.
        initial_node_count=max(1, pool["min_nodes"] // len(args["zones"])),
        autoscaling=NodePoolAutoscalingArgs(
            total_min_node_count=pool["min_nodes"], total_max_node_count=pool["max_nodes"], location_policy="BALANCED"
        ),
        management=NodePoolManagementArgs(auto_repair=True, auto_upgrade=True),
        upgrade_settings=NodePoolUpgradeSettingsArgs(strategy="SURGE", max_surge=1, max_unavailable=0),
        ignore_node_count_changes=True,
        node_config=NodePoolNodeConfigArgs(
            machine_type=pool["machine"],
            image_type="COS_CONTAINERD",
            disk_size_gb=pool["disk_gib"],
            disk_type=boot_disk(pool).value,
            boot_disk_kms_key=_disk_key(args),
            confidential_nodes=confidential_nodes(pool["confidential_nodes"]),
            labels={POOL_LABEL: SYSTEM_POOL, **args["owner_labels"]},
            resource_labels=args["resource_labels"],
            service_account=args["node_service_account"],
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


def confidential_nodes(technology: str | None) -> NodePoolNodeConfigConfidentialNodesArgs | None:
    """Nodes whose memory is encrypted by `technology`, in the settings' words; None where it is not."""
    if technology is None:
        return None
    return NodePoolNodeConfigConfidentialNodesArgs(enabled=True, confidential_instance_type=technology.upper())


def _disk_key(args: GkeClusterArgs) -> str | None:
    return args["security"].get("boot_disk_kms_key")


def cluster_autoscaling(args: GkeClusterArgs) -> ClusterClusterAutoscalingArgs:
    """How the cluster grows. On Autopilot, which refuses ceilings and profile, it says only which service account the nodes run as."""
    if is_autopilot(args):
        # Without it Autopilot's nodes run as the project's default Compute Engine account.
        return ClusterClusterAutoscalingArgs(
            auto_provisioning_defaults=ClusterClusterAutoscalingAutoProvisioningDefaultsArgs(
                service_account=args["node_service_account"], oauth_scopes=OAUTH_SCOPES, boot_disk_kms_key=_disk_key(args)
            )
        )
    if args["auto_provisioning"] is None:
        return ClusterClusterAutoscalingArgs(enabled=False, autoscaling_profile="OPTIMIZE_UTILIZATION")
    return ClusterClusterAutoscalingArgs(
        enabled=True,
        # Idle nodes go sooner, and work is packed: idle GPUs are what the platform is there to avoid.
        autoscaling_profile="OPTIMIZE_UTILIZATION",
        auto_provisioning_locations=sorted(args["zones"]),
        resource_limits=resource_limits(args["auto_provisioning"]),
        auto_provisioning_defaults=ClusterClusterAutoscalingAutoProvisioningDefaultsArgs(
            service_account=args["node_service_account"],
            oauth_scopes=OAUTH_SCOPES,
            image_type="COS_CONTAINERD",
            disk_size=100,
            # Left out, the provider sends pd-standard, a spinning disk. Machines that boot from Hyperdisk alone are declared pools.
            disk_type="pd-balanced",
            boot_disk_kms_key=_disk_key(args),
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
