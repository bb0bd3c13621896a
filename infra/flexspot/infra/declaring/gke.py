"""The platform on GKE: network, cluster, GPU pools, compute classes, Kueue, storage, and the plan's objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pulumi

from flexspot.capacity.catalog.capacity_type import CapacityType, Origin, facts_of
from flexspot.capacity.catalog.machines import Vendor, machines_of
from flexspot.capacity.catalog.node_labels import ARCHITECTURE_LABEL
from flexspot.capacity.plan.needs import cluster_needs
from flexspot.capacity.settings.cluster import GkeMode
from flexspot.capacity.values.names import is_production
from flexspot.components.cloud_names import ACCOUNT_ID_LENGTH, fitted
from flexspot.components.gke.cluster import GkeCluster
from flexspot.components.gke.cluster_args import GkeClusterArgs, GkeSystemPoolArgs
from flexspot.components.gke.compute_class import ComputeClass, ComputeClassArgs, ComputeClassPriorityArgs
from flexspot.components.gke.existing_cluster import ExistingGkeCluster, ExistingGkeClusterArgs
from flexspot.components.gke.gpu_node_pool import GkeGpuNodePool
from flexspot.components.gke.gpu_pool_args import DEVICE_LABELS, GkeGpuNodePoolArgs, GkeMachineArgs
from flexspot.components.gke.network import GkeNetwork, GkeNetworkArgs, GkeRdmaNetworks, GkeRdmaNetworksArgs, GkeRdmaNodes, GkeRdmaNodesArgs
from flexspot.components.gke.system_nodes import GkeNodeIdentity, GkeNodeIdentityArgs
from flexspot.components.shared_args import arguments
from flexspot.infra.declaring.gke_storage import declare_storage, workload_annotations
from flexspot.infra.declaring.platform_objects import after, billing_label, cluster_provider, declare_controllers, declare_platform_objects

if TYPE_CHECKING:
    from flexspot.capacity.plan.model import Plan, PoolPlan
    from flexspot.capacity.settings.platform import GkeSettings
    from flexspot.capacity.settings.pools import GkePool
    from flexspot.components.gke.cluster_args import GkeAutoProvisioningArgs
    from flexspot.infra.declaring.platform_objects import Outputs
    from flexspot.policies.judging import Settings


LEAST_GPUS = 1
"""Smallest limit of a kind of GPU that the provider accepts (google-beta 8.0.0, cluster_autoscaling.resource_limits.maximum)."""


def declare_node_pools(  # noqa: PLR0913 -- what the pools are made of and what they wait for
    plan: Plan,
    settings: GkeSettings,
    labels: dict[str, str],
    *,
    cluster: GkeCluster | ExistingGkeCluster,
    nodes: GkeNodeIdentity,
    rdma: GkeRdmaNetworks | None,
    opts: pulumi.ResourceOptions,
) -> None:
    """Register a node pool for each pool of the plan. `rdma` are the additional networks of pools with GPUDirect."""
    options = {pool.name: pool for pool in settings.pools}
    for pool in plan.pools:
        args = _pool(pool, options[pool.name], settings, cluster=cluster, nodes=nodes, labels=labels)
        if rdma is not None and pool.rdma_networks:
            args["further_networks"] = [
                {"network": rdma.networks[card], "subnetwork": rdma.subnetworks[card]} for card in range(pool.rdma_networks + 1)
            ]
        # With only GPU pools, GKE would omit its own taint, and the controllers would have no nodes to run on.
        GkeGpuNodePool(pool.name, args, opts)


def declare_rdma_networks(plan: Plan, settings: GkeSettings, name: str, within: pulumi.ResourceOptions) -> GkeRdmaNetworks | None:
    """Register the additional networks of the pools with GPUDirect, which are in one zone. Return None if there is no such pool."""
    pools = [pool for pool in plan.pools if pool.rdma_networks]
    if not pools:
        return None
    args = arguments(
        GkeRdmaNetworksArgs,
        settings,
        zone=pools[0].zones[0],
        network=name,
        rdma_networks=max(pool.rdma_networks for pool in pools),
        cidr=settings.network.gpudirect_cidr,
    )
    return GkeRdmaNetworks("rdma-networks", args, within)


def declare_rdma_nodes(plan: Plan, rdma: GkeRdmaNetworks, opts: pulumi.ResourceOptions) -> None:
    """Register the objects in the cluster that describe these networks, and the parts that the nodes need for them.

    `opts` names the cluster, and the resources to wait for.
    """
    pools = [pool for pool in plan.pools if pool.rdma_networks]
    args = arguments(
        GkeRdmaNodesArgs,
        plan,
        networks=rdma.networks,
        subnetworks=rdma.subnetworks,
        rdma_networks=max(pool.rdma_networks for pool in pools),
        accelerators=sorted({pool.accelerator for pool in pools}),
    )
    GkeRdmaNodes("rdma-nodes", args, opts)


def _pool(  # noqa: PLR0913 -- a pool is made of exactly these
    pool: PoolPlan,
    options: GkePool,
    settings: GkeSettings,
    *,
    cluster: GkeCluster | ExistingGkeCluster,
    nodes: GkeNodeIdentity,
    labels: dict[str, str],
) -> GkeGpuNodePoolArgs:
    marks = facts_of("gke")[pool.capacity_type].marks[Origin.NODE_POOL]
    set_by_gke = {*marks.labels, *DEVICE_LABELS}
    # GKE itself keeps pods that were built for amd64 off other nodes (docs.cloud.google.com/kubernetes-engine, prepare-arm-workloads).
    tainted_by_gke = {ARCHITECTURE_LABEL, *(taint.key for taint in marks.taints)}
    return arguments(
        GkeGpuNodePoolArgs,
        pool,
        options,
        settings.network,
        settings,
        boot_disk_kms_key=options.boot_disk_kms_key or settings.cluster.security.boot_disk_kms_key,
        pool=pool.name,
        cluster_zone=settings.cluster.zone,
        cluster=cluster.cluster_name,
        machine=pool.machines[0],
        machine_description=machine_description(settings, pool),
        node_labels={key: value for key, value in pool.labels.items() if key not in set_by_gke} | pool.owner_labels,
        taints=[taint for taint in pool.taints if taint.key not in tainted_by_gke],
        resource_labels=labels | billing_label(pool),
        service_account=nodes.email,
        # A queued pool's run time is that of its jobs. Other types have none to set.
        max_run_seconds=pool.max_run_seconds if pool.capacity_type is CapacityType.FLEX_START else None,
    )


def machine_description(settings: GkeSettings, pool: PoolPlan) -> GkeMachineArgs | None:
    """Return the settings' description of a pool's machine. None if the catalog contains the machine."""
    described = next((each for each in settings.machines if each.name == pool.machines[0]), None)
    if described is None or described.gpu is None or described.name in machines_of(Vendor.GCP):
        return None
    return arguments(GkeMachineArgs, described, gpu_memory_mib=described.gpu.memory_mib)


def declare_compute_classes(plan: Plan, settings: GkeSettings, opts: pulumi.ResourceOptions, *, nodes: GkeNodeIdentity) -> None:
    """Register the plan's compute classes: of its node pools, or on Autopilot of the nodes that GKE is to create.

    nodes: service account of auto-created nodes.
    """
    autopilot = settings.cluster.mode is GkeMode.AUTOPILOT
    options = {pool.name: pool for pool in settings.pools}
    pools = {pool.name: pool for pool in plan.pools}
    for each in plan.compute_classes:
        named = [{"pools": [name]} for name in each.pools]
        own: dict[str, Any] = {"priorities": named, "owner_labels": None}
        if autopilot:
            made = [_priority(pools[name], options[name], machine_description(settings, pools[name])) for name in each.pools]
            own = {"priorities": made, "owner_labels": plan.labels, "service_account": nodes.email, "autopilot": True}
        args = arguments(ComputeClassArgs, own, each, plan)
        ComputeClass(f"class-{each.name}", args, opts)


def _priority(pool: PoolPlan, options: GkePool, description: GkeMachineArgs | None) -> ComputeClassPriorityArgs:
    """Return the description of the nodes that GKE is to create for a pool of the plan."""
    named = options.reservation is not None and options.reservation.name is not None
    return arguments(
        ComputeClassPriorityArgs,
        pool,
        options,
        pools=None,
        machine=pool.machines[0],
        gpus=pool.gpus_per_node,
        machine_description=description,
        zones=sorted(options.zones) or None,
        driver=options.gpu_driver,
        max_run_seconds=pool.max_run_seconds if pool.capacity_type is CapacityType.FLEX_START else None,
        reservation=options.reservation if named else None,
    )


@dataclass(frozen=True)
class _Network:
    network: pulumi.Input[str]
    subnetwork: pulumi.Input[str]
    pods_range: pulumi.Input[str]
    services_range: pulumi.Input[str]


def declare_gke(plan: Plan, settings: GkeSettings, rules: Settings, within: pulumi.ResourceOptions) -> Outputs:
    """Register every resource of the plan on GKE, and return the stack's outputs.

    `rules` are the settings of the rules in the cluster's API server. `within` names the parent.
    """
    name = settings.cluster.name or settings.environment
    labels = settings.ownership
    identity = arguments(
        GkeNodeIdentityArgs,
        settings,
        account_id=fitted(f"{name}-nodes", ACCOUNT_ID_LENGTH),
        description=f"GPU and system nodes of the cluster {name}",
    )
    nodes = GkeNodeIdentity("nodes", identity, within)
    cluster = _cluster(plan, settings, name, labels, nodes=nodes, within=within)
    first: list[pulumi.Resource] = [cluster] if cluster.system_pool is None else [cluster.system_pool]
    rdma = declare_rdma_networks(plan, settings, name, within)
    if settings.cluster.mode is GkeMode.STANDARD:
        declare_node_pools(plan, settings, labels, cluster=cluster, nodes=nodes, rdma=rdma, opts=after(within, *first))
    path = cluster.cluster_name.apply(lambda known: f"projects/{settings.project}/locations/{settings.cluster_location}/clusters/{known}")
    kubernetes = pulumi.ResourceOptions(provider=cluster_provider("cluster", within, cluster.kubeconfig, path))
    on_cluster = pulumi.ResourceOptions.merge(within, kubernetes)
    in_cluster = after(on_cluster, *first)
    declare_compute_classes(plan, settings, in_cluster, nodes=nodes)
    if rdma is not None:
        declare_rdma_nodes(plan, rdma, in_cluster)
    kueue, measured = declare_controllers(plan, settings, in_cluster)
    teams, queues = declare_platform_objects(plan, on_cluster, [kueue], workload_annotations(settings), rules=rules)
    return {
        **measured,
        **queues,
        **declare_storage(plan, settings, labels, teams=teams, within=within, on_cluster=on_cluster, cluster=cluster),
        "credentials_command": cluster.credentials_command,
        "cluster": cluster.cluster_name,
        "dashboards": f"https://console.cloud.google.com/kubernetes/list/overview?project={settings.project}",
    }


def _cluster(  # noqa: PLR0913 -- what a cluster is made of, and where
    plan: Plan, settings: GkeSettings, name: str, labels: dict[str, str], *, nodes: GkeNodeIdentity, within: pulumi.ResourceOptions
) -> GkeCluster | ExistingGkeCluster:
    if settings.cluster.existing is not None:
        needs = cluster_needs(settings, plan)
        existing = arguments(
            ExistingGkeClusterArgs,
            needs,
            settings,
            cluster=settings.cluster.existing,
            zone=settings.cluster.zone,
            # Each team has a service account in Google Cloud and mounts its folders of both buckets.
            workload_identity=True,
            gcs_fuse=True,
            at_least=needs.versions,
        )
        return ExistingGkeCluster("cluster", existing, within)
    net = _network(settings, name, within)
    standard = settings.cluster.mode is GkeMode.STANDARD
    protected = settings.cluster.deletion_protection
    system, limits, made = settings.cluster.system_pool, plan.limits, plan.spending.made_by_itself
    auto_provisioning: GkeAutoProvisioningArgs | None = None
    if standard and limits is not None:
        # GKE creates no node for a kind of GPU without a limit. A missing limit does not stop pools from growing (kubernetes/autoscaler,
        # core/scaleup/resource/manager.go: CheckDeltaWithinLimits; read 2026-11-25). Kinds that have pools are limited to no less than
        # these may have.
        kinds = {name: plan.accelerators.get(name, LEAST_GPUS) for name in settings.cluster.former_accelerators}
        auto_provisioning = {
            "max_vcpu": limits.vcpu,
            "max_memory_gib": limits.memory_gib,
            "accelerators": kinds | dict(made.gpus if made else ()),
        }
    boot_disk = next((each.boot_disk for each in settings.machines if each.name == system.machine), None)
    args = arguments(
        GkeClusterArgs,
        net,
        settings.cluster,
        settings.network,
        settings.control_plane,
        settings.observability,
        settings,
        cluster=name,
        zones=sorted(settings.zones),
        access=settings.access,
        deletion_protection=is_production(settings.environment) if protected is None else protected,
        node_service_account=nodes.email,
        resource_labels=labels,
        owner_labels=plan.labels,
        system_pool=arguments(GkeSystemPoolArgs, system, boot_disk_type=boot_disk) if standard else None,
        auto_provisioning=auto_provisioning,
        security=settings.cluster.security.model_dump(mode="json", exclude_none=True),
        multi_networking=any(pool.rdma_networks for pool in plan.pools),
    )
    return GkeCluster("cluster", args, within)


def _network(settings: GkeSettings, name: str, within: pulumi.ResourceOptions) -> _Network:
    net = settings.network
    if net.existing_network is not None and net.existing_subnetwork is not None:
        return _Network(net.existing_network, net.existing_subnetwork, net.pods_range, net.services_range)
    made = GkeNetwork("network", arguments(GkeNetworkArgs, net, settings, network=name), within)
    return _Network(made.network, made.subnetwork, made.pods_range, made.services_range)
