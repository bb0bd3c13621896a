"""The platform on GKE: network, cluster, GPU pools, compute classes, Kueue, storage, and the plan's objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pulumi

from capacity.settings.cluster import GkeMode
from capacity.values.names import is_production
from components.fitted_name import fitted
from components.gcp_names import ACCOUNT_ID_LENGTH
from components.gke.cluster import GkeCluster
from components.gke.existing_cluster import ExistingGkeCluster
from components.gke.network import GkeNetwork
from components.gke.node_identity import GkeNodeIdentity
from infra.cluster_provider import cluster_provider
from infra.gke_pools import declare_compute_classes, declare_node_pools
from infra.gke_storage import declare_storage, workload_annotations
from infra.measurement import declare_measurement
from infra.platform_objects import declare_platform_objects
from infra.queue_objects import declare_kueue

if TYPE_CHECKING:
    from capacity.plan.model import Plan
    from capacity.settings.platform import GkeSettings


@dataclass(frozen=True)
class _Network:
    network: pulumi.Input[str]
    subnetwork: pulumi.Input[str]
    pods_range: pulumi.Input[str]
    services_range: pulumi.Input[str]


def declare_gke(plan: Plan, settings: GkeSettings) -> None:
    """Registers every resource of the plan on GKE, and exports what a person or the next tool needs."""
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
    provider = cluster_provider("cluster", cluster.kubeconfig)
    on_cluster = pulumi.ResourceOptions(provider=provider, depends_on=first)
    declare_compute_classes(plan, settings, on_cluster, nodes=nodes)
    kueue = declare_kueue(plan, on_cluster, existing=settings.queueing.existing_kueue)
    declare_measurement(plan, settings.measurement, on_cluster)
    teams = declare_platform_objects(plan, provider, [kueue], workload_annotations(settings))
    declare_storage(plan, settings, labels, teams=teams, provider=provider, cluster=cluster)
    pulumi.export("credentials_command", cluster.credentials_command)
    pulumi.export("cluster", cluster.cluster_name)
    pulumi.export("dashboards", f"https://console.cloud.google.com/kubernetes/list/overview?project={settings.project}")


def _cluster(
    plan: Plan, settings: GkeSettings, name: str, labels: dict[str, str], nodes: GkeNodeIdentity
) -> GkeCluster | ExistingGkeCluster:
    if settings.cluster.existing is not None:
        return ExistingGkeCluster(
            "cluster",
            {
                "cluster": settings.cluster.existing,
                "project": settings.project,
                "region": settings.region,
                "access": settings.control_plane.access.value,
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
            "access": settings.control_plane.access.value,
            "cidrs": list(settings.control_plane.cidrs),
            "release_channel": settings.cluster.release_channel.value,
            "min_version": settings.cluster.min_version,
            "mode": settings.cluster.mode.value,
            "deletion_protection": is_production(settings.environment) if protected is None else protected,
            "node_service_account": nodes.email,
            "resource_labels": labels,
            "owner_labels": plan.labels,
            "max_pods_per_node": settings.network.max_pods_per_node,
            "system_pool": {"machine": system.machine, "min_nodes": system.min_nodes, "max_nodes": system.max_nodes} if standard else None,
            "auto_provisioning": {
                "max_vcpu": limits.vcpu,
                "max_memory_gib": limits.memory_gib,
                "accelerators": plan.accelerators,
            }
            if standard and limits is not None
            else None,
            "groups_domain": settings.cluster.groups_domain,
            "managed_prometheus": settings.observability.managed_prometheus,
            "maintenance": {"start_utc": settings.cluster.maintenance.start_utc, "hours": settings.cluster.maintenance.hours},
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
