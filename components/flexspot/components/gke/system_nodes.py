"""Nodes other than those of GPU pools, and their service account: the system pool, and the defaults of node auto-provisioning."""

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
"""Roles that nodes need: to write logs and metrics, to pull images from the project's own registries, and to stream them.

Without the last role GKE falls back to pulling whole images (https://cloud.google.com/kubernetes-engine/docs/how-to/image-streaming,
requirements).
"""


class GkeNodeIdentityArgs(TypedDict):
    """Arguments of GkeNodeIdentity. All are plain because they shape the account."""

    project: str
    """Project id. The roles are granted in this project."""

    account_id: str
    """Account id, at least 6 characters. An id above Google Cloud's limit of 30 is cut, with a hash of the whole."""

    description: NotRequired[str]
    """Purpose of the account, at most 256 characters. Default: Nodes of GKE."""


class GkeNodeIdentity(pulumi.ComponentResource):
    """A dedicated service account for the nodes, with the roles that nodes need.

    It replaces the project's default Compute Engine account. Unless the organization forbids it, that account is an editor of the whole
    project, and everything on Compute Engine shares it. Every node would expose it to an attacker who breaks out of a pod. Pods get further
    permissions individually, by Workload Identity. Raises ValueError for an id that cannot be turned into a valid one.
    """

    email: pulumi.Output[str]
    """The account's email address, known once its roles are granted. Nodes that start earlier could not write logs or pull images."""

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
            # A member, not a binding, which would remove the role from all other members.
            projects.IAMMember(f"{name}-{key}", project=args["project"], role=role, member=account.member, opts=child)
            for key, role in ROLES.items()
        ]
        self.email = pulumi.Output.all(account.email, *(grant.id for grant in grants)).apply(lambda known: known[0])
        publish(self)


OAUTH_SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]
"""OAuth scopes of nodes. The service account's roles are the limit. Narrower scopes would only obscure them."""

POOL_LABEL = "flexspot.dev/pool"
SYSTEM_POOL = "system"


def first_pool_config(args: GkeClusterArgs) -> ClusterNodeConfigArgs:
    """Return the configuration of the first pool, which GKE requires and which is removed at once.

    Even for minutes it does not use the default account.
    """
    return ClusterNodeConfigArgs(
        service_account=args["node_service_account"],
        oauth_scopes=OAUTH_SCOPES,
        # An organization may forbid disks without its key.
        boot_disk_kms_key=_disk_key(args),
        shielded_instance_config=ClusterNodeConfigShieldedInstanceConfigArgs(enable_secure_boot=True, enable_integrity_monitoring=True),
        workload_metadata_config=ClusterNodeConfigWorkloadMetadataConfigArgs(mode="GKE_METADATA"),
    )


def system_node_pool(
    name: str, args: GkeClusterArgs, system_pool: GkeSystemPoolArgs, cluster: pulumi.Input[str], parent: pulumi.Resource
) -> NodePool:
    """Return the pool of the controllers: on-demand, without GPUs, in all zones of the cluster.

    It has no taint. With one, Kueue, the metrics and everything else that is installed, including GKE's own add-ons, would each need a
    toleration to run. Nothing runs on the expensive nodes by accident, because those have taints. The label lets controllers select the
    pool.
    """
    pool = filled(GkeSystemPoolArgs, system_pool)
    return NodePool(
        f"{name}-system-pool",
        name=SYSTEM_POOL,
        project=args["project"],
        location=args["region"],
        cluster=cluster,
        node_locations=sorted(args["zones"]),
        # Per zone. The autoscaler grows the pool to min_nodes. Later changes are ignored, and a new number would replace the pool.
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
    """Return the block for nodes whose memory is encrypted by `technology`, or None without one."""
    if technology is None:
        return None
    return NodePoolNodeConfigConfidentialNodesArgs(enabled=True, confidential_instance_type=technology.upper())


def _disk_key(args: GkeClusterArgs) -> str | None:
    return args["security"].get("boot_disk_kms_key")


def cluster_autoscaling(args: GkeClusterArgs) -> ClusterClusterAutoscalingArgs:
    """Return the autoscaling of the cluster. Autopilot rejects ceilings and a profile: there it only sets the nodes' service account."""
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
        # Idle nodes are removed sooner, and work is packed. Avoiding idle GPUs is the platform's purpose.
        autoscaling_profile="OPTIMIZE_UTILIZATION",
        auto_provisioning_locations=sorted(args["zones"]),
        resource_limits=resource_limits(args["auto_provisioning"]),
        auto_provisioning_defaults=ClusterClusterAutoscalingAutoProvisioningDefaultsArgs(
            service_account=args["node_service_account"],
            oauth_scopes=OAUTH_SCOPES,
            image_type="COS_CONTAINERD",
            disk_size=100,
            # Without it, the provider sends pd-standard, a spinning disk. Machines that only boot from Hyperdisk are declared pools.
            disk_type="pd-balanced",
            boot_disk_kms_key=_disk_key(args),
            management=ClusterClusterAutoscalingAutoProvisioningDefaultsManagementArgs(auto_repair=True, auto_upgrade=True),
            # Google signs the drivers that GKE installs, so Secure Boot does not stop them.
            shielded_instance_config=ClusterClusterAutoscalingAutoProvisioningDefaultsShieldedInstanceConfigArgs(
                enable_secure_boot=True, enable_integrity_monitoring=True
            ),
            # One node less for a while, not one more: if GPUs are sold out, there is no additional node and the upgrade would hang.
            upgrade_settings=ClusterClusterAutoscalingAutoProvisioningDefaultsUpgradeSettingsArgs(
                strategy="SURGE", max_surge=0, max_unavailable=1
            ),
        ),
    )


def resource_limits(auto_provisioning: GkeAutoProvisioningArgs) -> list[ClusterClusterAutoscalingResourceLimitArgs]:
    """Return the ceilings of vCPU, memory and each accelerator. GKE requires the first two for NAP, and one for each kind of GPU.

    The provider treats the list as ordered, so the order is always the same. It is not verified that GKE returns this order.
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
