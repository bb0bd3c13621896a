"""The platform on GKE: network, cluster, GPU pools, compute classes, Kueue, storage, and the plan's objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pulumi

from capacity.catalog.capacity_type import CapacityType, Origin, facts_of
from capacity.catalog.node_labels import ARCHITECTURE_LABEL, GKE_ACCELERATOR_LABEL, TEAM_LABEL
from capacity.plan.cluster_needs import cluster_needs
from capacity.settings.cluster import GkeMode
from capacity.settings.pools import GkeNodeOptions
from capacity.values.names import is_production
from capacity.workloads.requests import SERVICE_ACCOUNT
from components.cloud_names import ACCOUNT_ID_LENGTH, fitted
from components.gke.cluster import GkeCluster
from components.gke.compute_class import ComputeClass
from components.gke.existing_cluster import ExistingGkeCluster
from components.gke.gpu_node_pool import GkeGpuNodePool
from components.gke.network import GkeNetwork
from components.gke.system_nodes import GkeNodeIdentity
from components.storage.claimed_volume import CHECKPOINTS, DATASETS
from components.storage.gcs_bucket import GcsBucket, GcsFuseVolume, bucket_name
from components.storage.gcs_team_access import GcsTeamAccess, account_id
from components.storage.pubsub_work_queue import PubsubWorkQueue
from infra.platform_objects import (
    billing_label,
    cluster_provider,
    declare_kueue,
    declare_measurement,
    declare_platform_objects,
    declare_stock_out_watch,
)
from infra.queue_objects import node_taint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi_kubernetes import Provider

    from capacity.plan.model import Plan, PoolPlan
    from capacity.settings.platform import GkeSettings
    from capacity.settings.pools import GkePool
    from components.gke.cluster_args import GkeMaintenanceArgs, GkeSecurityArgs
    from components.gke.compute_class import ComputeClassArgs, ComputeClassPriorityArgs
    from components.gke.gpu_pool_args import GkeGpuNodePoolArgs, GkeNodeOptionsArgs
    from components.tenancy.team import Team
    from policies.judging import Settings


LEAST_GPUS = 1
"""The least limit of a kind of GPU that the provider takes (google-beta 8.0.0, cluster_autoscaling.resource_limits.maximum)."""


def declare_node_pools(  # noqa: PLR0913 -- what the pools are made of and what they wait for
    plan: Plan,
    settings: GkeSettings,
    labels: dict[str, str],
    *,
    cluster: GkeCluster | ExistingGkeCluster,
    nodes: GkeNodeIdentity,
    first: Sequence[pulumi.Resource],
) -> None:
    """Registers a node pool for each pool of the plan, after `first`."""
    options = {pool.name: pool for pool in settings.pools}
    for pool in plan.pools:
        args = _pool(plan, pool, options[pool.name], settings, cluster=cluster, nodes=nodes, labels=labels)
        # With a pool of GPUs alone GKE would leave out its own taint, and the controllers would have nowhere to run.
        GkeGpuNodePool(pool.name, args, pulumi.ResourceOptions(depends_on=list(first)))


def _pool(  # noqa: PLR0913 -- a pool is made of exactly these
    plan: Plan,
    pool: PoolPlan,
    options: GkePool,
    settings: GkeSettings,
    *,
    cluster: GkeCluster | ExistingGkeCluster,
    nodes: GkeNodeIdentity,
    labels: dict[str, str],
) -> GkeGpuNodePoolArgs:
    marks = facts_of("gke")[pool.capacity_type].marks[Origin.NODE_POOL]
    set_by_gke = {*marks.labels, GKE_ACCELERATOR_LABEL}
    # GKE keeps pods that were built for amd64 off other nodes by itself (docs.cloud.google.com/kubernetes-engine, prepare-arm-workloads).
    tainted_by_gke = {ARCHITECTURE_LABEL, *(taint.key for taint in marks.taints)}
    node_options = cast("GkeNodeOptionsArgs", options.model_dump(mode="json", include=set(GkeNodeOptions.model_fields)))
    return {  # pyrefly: ignore[open-unpacking] -- no other keys
        **node_options,
        "boot_disk_kms_key": options.boot_disk_kms_key or settings.cluster.security.boot_disk_kms_key,
        "pool": pool.name,
        "project": settings.project,
        "region": plan.region,
        "cluster_zone": settings.cluster.zone,
        "cluster": cluster.cluster_name,
        "zones": list(pool.zones),
        "machine": pool.machines[0],
        "accelerator": pool.accelerator,
        "gpus_per_node": pool.gpus_per_node,
        "capacity_type": pool.capacity_type.value,
        "min_nodes": pool.min_nodes,
        "max_nodes": pool.max_nodes,
        "node_labels": {key: value for key, value in pool.labels.items() if key not in set_by_gke} | pool.owner_labels,
        "taints": [node_taint(taint) for taint in pool.taints if taint.key not in tainted_by_gke],
        "resource_labels": labels | billing_label(pool),
        "service_account": nodes.email,
        # A queued pool's run time is its jobs' own, and other types have none to set.
        "max_run_seconds": pool.max_run_seconds if pool.capacity_type is CapacityType.FLEX_START else None,
        "max_pods_per_node": settings.network.max_pods_per_node,
    }


def declare_compute_classes(plan: Plan, settings: GkeSettings, opts: pulumi.ResourceOptions, *, nodes: GkeNodeIdentity) -> None:
    """Registers each compute class of the plan: of the plan's node pools, or on Autopilot of what GKE is to make.

    `nodes` is what the nodes that GKE makes run as.
    """
    autopilot = settings.cluster.mode is GkeMode.AUTOPILOT
    options = {pool.name: pool for pool in settings.pools}
    pools = {pool.name: pool for pool in plan.pools}
    for each in plan.compute_classes:
        named: list[ComputeClassPriorityArgs] = [{"pools": [name]} for name in each.pools]
        args: ComputeClassArgs = {
            "name": each.name,
            "labels": plan.labels,
            "priorities": named,
            "consolidation_delay_minutes": each.consolidation_delay_minutes,
        }
        if autopilot:
            made = [_made(pools[name], options[name]) for name in each.pools]
            args = {**args, "priorities": made, "autopilot": True, "service_account": nodes.email, "owner_labels": plan.labels}
        ComputeClass(f"class-{each.name}", args, opts)


def _made(pool: PoolPlan, options: GkePool) -> ComputeClassPriorityArgs:
    """What GKE is to make for a pool of the plan."""
    reservation = options.reservation
    priority: ComputeClassPriorityArgs = {
        "machine": pool.machines[0],
        "accelerator": pool.accelerator,
        "gpus": pool.gpus_per_node,
        "capacity_type": pool.capacity_type.value,
        "zones": sorted(options.zones) or None,
        "driver": options.gpu_driver.value,
        "max_run_seconds": pool.max_run_seconds if pool.capacity_type is CapacityType.FLEX_START else None,
        "boot_disk_gib": options.boot_disk_gib,
    }
    if reservation is not None and reservation.name is not None:
        priority["reservation"] = {"name": reservation.name, "project": reservation.project}
    return priority


def workload_annotations(settings: GkeSettings) -> dict[str, dict[str, str]]:
    """What makes each team's service account in Kubernetes the one of GcsTeamAccess in Google Cloud, by name of the team.

    Written from the account's id, which is ours: a namespace waits for no identity, and a pod that comes before its identity has none yet.
    The address of a project of a domain, acme.com:ai, ends in ai.acme.com (https://docs.cloud.google.com/iam/docs/service-account-types).
    """
    domain, _, project = settings.project.rpartition(":")
    place = f"{project}.{domain}" if domain else project
    return {
        team.name: {"iam.gke.io/gcp-service-account": f"{account_id(team.name, settings.environment)}@{place}.iam.gserviceaccount.com"}
        for team in settings.teams
    }


def declare_storage(  # noqa: PLR0913 -- what the cluster and its teams are, each from its own place
    plan: Plan,
    settings: GkeSettings,
    labels: dict[str, str],
    *,
    teams: dict[str, Team],
    provider: Provider,
    cluster: GkeCluster | ExistingGkeCluster,
) -> None:
    """Registers the buckets, and for each team its access, volumes and work queue; exports their addresses."""
    buckets = {purpose: _bucket(settings, labels, purpose) for purpose in (CHECKPOINTS, DATASETS)}
    subscriptions: dict[str, pulumi.Output[str]] = {}
    checkpoints: dict[str, pulumi.Output[str]] = {}
    grace = max(route.grace_seconds for route in plan.routes)
    for team in sorted(settings.teams, key=lambda each: each.name):
        own_labels = {**labels, "team": team.name}
        access = GcsTeamAccess(
            f"{team.name}-storage",
            {
                "team": team.name,
                "environment": settings.environment,
                "project": settings.project,
                "namespace": team.name,
                "service_account": SERVICE_ACCOUNT,
                "checkpoint_bucket": buckets[CHECKPOINTS].name,
                "dataset_bucket": buckets[DATASETS].name,
            },
            # The identity pool that it is bound to appears with the cluster.
            pulumi.ResourceOptions(depends_on=[cluster]),
        )
        checkpoints[team.name] = access.checkpoint_url
        for purpose, bucket in buckets.items():
            GcsFuseVolume(
                f"{team.name}-{purpose}",
                {
                    "team": team.name,
                    "namespace": team.name,
                    "bucket": bucket.name,
                    "purpose": purpose,
                    "labels": {**plan.labels, TEAM_LABEL: team.name},
                },
                pulumi.ResourceOptions(provider=provider, depends_on=[teams[team.name]]),
            )
        if team.work_queue is not None:
            queue = PubsubWorkQueue(
                f"{team.name}.{team.work_queue.name}",
                {
                    # With a dot, which no name holds: a-b of c and a of b-c stay apart.
                    "queue": f"{settings.environment}.{team.name}.{team.work_queue.name}",
                    "project": settings.project,
                    "worker_email": access.email,
                    "grace_seconds": grace,
                    "labels": own_labels,
                    "kms_key": settings.storage.encryption_key,
                    "ack_deadline_seconds": team.work_queue.lease_seconds,
                    "max_delivery_attempts": team.work_queue.max_attempts,
                },
            )
            subscriptions[team.name] = queue.subscription
    pulumi.export("buckets", {purpose: bucket.url for purpose, bucket in buckets.items()})
    pulumi.export("checkpoints", checkpoints)
    pulumi.export("subscriptions", subscriptions)


def _bucket(settings: GkeSettings, labels: dict[str, str], purpose: str) -> GcsBucket:
    return GcsBucket(
        purpose,
        {
            "bucket": bucket_name(settings.project, settings.environment, purpose),
            "project": settings.project,
            "location": settings.storage.location or settings.region,
            "cluster_region": settings.region,
            "purpose": purpose,
            "labels": labels,
            "retention_days": settings.storage.checkpoint_days if purpose == CHECKPOINTS else None,
            "kms_key": settings.storage.encryption_key,
            "force_destroy": purpose == CHECKPOINTS and not is_production(settings.environment),
        },
    )


@dataclass(frozen=True)
class _Network:
    network: pulumi.Input[str]
    subnetwork: pulumi.Input[str]
    pods_range: pulumi.Input[str]
    services_range: pulumi.Input[str]


def declare_gke(plan: Plan, settings: GkeSettings, rules: Settings) -> None:
    """Registers every resource of the plan on GKE, and exports what a person or the next tool needs.

    `rules` are those that the cluster's API server holds.
    """
    name = settings.cluster.name or settings.environment
    labels = settings.ownership
    nodes = GkeNodeIdentity(
        "nodes",
        {
            "project": settings.project,
            "account_id": fitted(f"{name}-nodes", ACCOUNT_ID_LENGTH),
            "description": f"GPU and system nodes of the cluster {name}",
        },
    )
    cluster = _cluster(plan, settings, name, labels, nodes)
    first: list[pulumi.Resource] = [cluster] if cluster.system_pool is None else [cluster.system_pool]
    if settings.cluster.mode is GkeMode.STANDARD:
        declare_node_pools(plan, settings, labels, cluster=cluster, nodes=nodes, first=first)
    path = cluster.cluster_name.apply(lambda known: f"projects/{settings.project}/locations/{settings.cluster_location}/clusters/{known}")
    provider = cluster_provider("cluster", cluster.kubeconfig, path)
    on_cluster = pulumi.ResourceOptions(provider=provider, depends_on=first)
    declare_compute_classes(plan, settings, on_cluster, nodes=nodes)
    kueue = declare_kueue(plan, on_cluster, settings)
    declare_stock_out_watch(plan, settings, pulumi.ResourceOptions.merge(on_cluster, pulumi.ResourceOptions(depends_on=[kueue])))
    declare_measurement(plan, settings, on_cluster)
    teams = declare_platform_objects(plan, provider, [kueue], workload_annotations(settings), rules=rules)
    declare_storage(plan, settings, labels, teams=teams, provider=provider, cluster=cluster)
    pulumi.export("credentials_command", cluster.credentials_command)
    pulumi.export("cluster", cluster.cluster_name)
    pulumi.export("dashboards", f"https://console.cloud.google.com/kubernetes/list/overview?project={settings.project}")


def _cluster(
    plan: Plan, settings: GkeSettings, name: str, labels: dict[str, str], nodes: GkeNodeIdentity
) -> GkeCluster | ExistingGkeCluster:
    if settings.cluster.existing is not None:
        needs = cluster_needs(settings, plan)
        return ExistingGkeCluster(
            "cluster",
            {
                "cluster": settings.cluster.existing,
                "project": settings.project,
                "region": settings.region,
                "zone": settings.cluster.zone,
                "access": settings.access.value,
                "mode": needs.mode.value,
                # Each team has an account in Google Cloud and mounts its folders of both buckets.
                "workload_identity": True,
                "gcs_fuse": True,
                "at_least": [{"version": each.version, "user": each.user} for each in needs.versions],
                "room": needs.room,
            },
        )
    net = _network(settings, name)
    standard = settings.cluster.mode is GkeMode.STANDARD
    protected = settings.cluster.deletion_protection
    system, limits = settings.cluster.system_pool, plan.limits
    return GkeCluster(
        "cluster",
        {
            "cluster": name,
            "project": settings.project,
            "region": settings.region,
            "zones": sorted(settings.zones),
            "network": net.network,
            "subnetwork": net.subnetwork,
            "pods_range": net.pods_range,
            "services_range": net.services_range,
            "control_plane_cidr": settings.network.control_plane_cidr,
            "access": settings.access.value,
            "cidrs": list(settings.control_plane.cidrs),
            "runner_cidrs": list(settings.network.runner_cidrs),
            "release_channel": settings.cluster.release_channel.value,
            "min_version": settings.cluster.min_version,
            "mode": settings.cluster.mode.value,
            "deletion_protection": is_production(settings.environment) if protected is None else protected,
            "node_service_account": nodes.email,
            "resource_labels": labels,
            "owner_labels": plan.labels,
            "max_pods_per_node": settings.network.max_pods_per_node,
            "system_pool": {
                "machine": system.machine,
                "min_nodes": system.min_nodes,
                "max_nodes": system.max_nodes,
                "confidential_nodes": system.confidential_nodes,
            }
            if standard
            else None,
            "auto_provisioning": {
                "max_vcpu": limits.vcpu,
                "max_memory_gib": limits.memory_gib,
                # GKE makes no node for a kind of GPU without a limit. Pools still grow: a limit that is not there holds nothing back
                # (kubernetes/autoscaler, core/scaleup/resource/manager.go: CheckDeltaWithinLimits; read 2026-11-25).
                "accelerators": dict.fromkeys(settings.cluster.former_accelerators, LEAST_GPUS)
                | (plan.accelerators if settings.cluster.gpu_auto_provisioning else {}),
            }
            if standard and limits is not None
            else None,
            "groups_domain": settings.cluster.groups_domain,
            "managed_prometheus": settings.observability.managed_prometheus,
            "maintenance": cast("GkeMaintenanceArgs", settings.cluster.maintenance.model_dump(mode="json")),
            "security": cast("GkeSecurityArgs", settings.cluster.security.model_dump(mode="json", exclude_none=True)),
        },
    )


def _network(settings: GkeSettings, name: str) -> _Network:
    net = settings.network
    if net.existing_network is not None and net.existing_subnetwork is not None:
        return _Network(net.existing_network, net.existing_subnetwork, net.pods_range, net.services_range)
    made = GkeNetwork(
        "network",
        {
            "project": settings.project,
            "region": settings.region,
            "network": name,
            "nodes_cidr": net.nodes_cidr,
            "pods_cidr": net.pods_cidr,
            "services_cidr": net.services_cidr,
            "pods_range": net.pods_range,
            "services_range": net.services_range,
        },
    )
    return _Network(made.network, made.subnetwork, made.pods_range, made.services_range)
