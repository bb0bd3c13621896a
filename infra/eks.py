"""The platform on EKS: network, cluster, Karpenter with its pools, Kueue, storage, and the plan's objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi
from pulumi_aws.provider import Provider as AwsProvider

from capacity.values.names import is_production
from components.aws_names import EksPlace, node_role_name, partition_of, queue_name
from components.eks.cluster import EksCluster
from components.eks.existing_cluster import ExistingEksCluster
from components.eks.gpu_plugins import GpuPlugins
from components.eks.network import EksNetwork
from components.eks.system_nodes import CRITICAL_ADDONS, SYSTEM_LABEL
from components.karpenter.controller import KarpenterController
from components.karpenter.controller_identity import KarpenterControllerIdentity
from components.karpenter.interruption_queue import InterruptionQueue
from components.karpenter.node_identity import KarpenterNodeIdentity
from infra.cluster_provider import cluster_provider
from infra.eks_pools import declare_pools
from infra.eks_storage import declare_storage
from infra.measurement import declare_measurement
from infra.platform_objects import declare_platform_objects
from infra.queue_objects import declare_kueue

if TYPE_CHECKING:
    from pulumi_kubernetes import Provider

    from capacity.plan.model import Plan
    from capacity.settings.platform import EksSettings


def declare_eks(plan: Plan, settings: EksSettings) -> None:
    """Registers every resource of the plan on EKS, and exports what a person or the next tool needs."""
    name = settings.cluster.existing or settings.cluster.name or settings.environment
    tags = settings.ownership | {"cluster": name}
    place = EksPlace(name, settings.account, partition_of(settings.region), settings.region, tags)
    # Credentials of another account are refused before anything is made with them.
    aws = AwsProvider("aws", region=settings.region, allowed_account_ids=[settings.account])
    on_aws = pulumi.ResourceOptions(provider=aws)
    cluster = _cluster(plan, settings, place, on_aws)
    kubernetes = cluster_provider("cluster", cluster.kubeconfig)
    in_cluster = pulumi.ResourceOptions(provider=kubernetes, depends_on=cluster.ready)
    karpenter, nodes = _karpenter(settings, place, cluster, on_aws, kubernetes)
    declare_pools(plan, settings, place, cluster=cluster, nodes=nodes, aws=aws, kubernetes=kubernetes, karpenter=karpenter)
    efa = any(pool.efa for pool in settings.pools)
    GpuPlugins("gpu-plugins", {"ami": settings.cluster.ami, "efa": efa}, in_cluster)
    # A cluster of somebody else's has its own nodes for controllers.
    own = settings.cluster.existing is None
    node_selector = {SYSTEM_LABEL: "true"} if own else None
    tolerations = [{"key": CRITICAL_ADDONS, "operator": "Exists"}] if own else []
    kueue = declare_kueue(plan, in_cluster, existing=settings.queueing.existing_kueue, node_selector=node_selector, tolerations=tolerations)
    declare_measurement(plan, settings.measurement, in_cluster, node_selector=node_selector, tolerations=tolerations)
    teams = declare_platform_objects(plan, kubernetes, [kueue])
    declare_storage(plan, settings, place, teams=teams, cluster=cluster, aws=aws, kubernetes=kubernetes)
    pulumi.export("credentials_command", cluster.credentials_command)
    pulumi.export("cluster", cluster.cluster_name)
    pulumi.export("dashboards", f"https://{settings.region}.console.aws.amazon.com/eks/clusters/{name}?region={settings.region}")


def _cluster(plan: Plan, settings: EksSettings, place: EksPlace, on_aws: pulumi.ResourceOptions) -> EksCluster | ExistingEksCluster:
    if settings.cluster.existing is not None:
        return ExistingEksCluster(
            "cluster",
            {"cluster": place.cluster, "account": place.account, "partition": place.partition, "region": place.region},
            on_aws,
        )
    net, wanted = settings.network, settings.cluster
    vpc_id: pulumi.Input[str]
    subnet_ids: pulumi.Input[list[str]]
    if net.existing_vpc is not None:
        vpc_id, subnet_ids = net.existing_vpc, list(net.existing_private_subnets)
    else:
        zones = len(settings.zones)
        made = EksNetwork(
            "network",
            {
                "cluster": place.cluster,
                "region": place.region,
                "vpc_cidr": net.vpc_cidr,
                "zones": list(settings.zones),
                "private_cidrs": list(net.private_cidrs[:zones]),
                "public_cidrs": list(net.public_cidrs[:zones]),
                "nat": net.nat.value,
                "tags": place.tags,
            },
            on_aws,
        )
        vpc_id, subnet_ids = made.vpc_id, made.private_subnet_ids
    protected, system = wanted.deletion_protection, wanted.system_pool
    return EksCluster(
        "cluster",
        {
            "cluster": place.cluster,
            "account": place.account,
            "partition": place.partition,
            "region": place.region,
            "version": wanted.version,
            "support": wanted.support.value,
            "vpc_id": vpc_id,
            "subnet_ids": subnet_ids,
            "services_cidr": net.services_cidr,
            "access": settings.control_plane.access.value,
            "cidrs": list(settings.control_plane.cidrs),
            "private_cidrs": [*([] if net.existing_vpc else [net.vpc_cidr]), *net.runner_cidrs],
            "deletion_protection": is_production(settings.environment) if protected is None else protected,
            "log_retention_days": wanted.log_days,
            "admin_role_arns": list(wanted.admin_roles),
            "system_pool": {"machine": system.machine, "min_nodes": system.min_nodes, "max_nodes": system.max_nodes},
            "ami": wanted.ami,
            "owner_labels": plan.labels,
            "tags": place.tags,
        },
        on_aws,
    )


def _karpenter(
    settings: EksSettings, place: EksPlace, cluster: EksCluster | ExistingEksCluster, on_aws: pulumi.ResourceOptions, kubernetes: Provider
) -> tuple[KarpenterController, KarpenterNodeIdentity]:
    queue = InterruptionQueue(
        "interruptions",
        {
            "cluster": place.cluster,
            "account": place.account,
            "partition": place.partition,
            "region": place.region,
            "tags": place.tags,
        },
        on_aws,
    )
    nodes = KarpenterNodeIdentity(
        "karpenter-nodes",
        {
            "cluster": place.cluster,
            "cluster_name": cluster.cluster_name,
            "partition": place.partition,
            "create_spot_role": settings.cluster.create_spot_role,
            "tags": place.tags,
        },
        on_aws,
    )
    identity = KarpenterControllerIdentity(
        "karpenter-identity",
        {
            "cluster": place.cluster,
            "cluster_name": cluster.cluster_name,
            "account": place.account,
            "partition": place.partition,
            "region": place.region,
            "node_role_name": node_role_name(place.cluster),
            "queue_name": queue_name(place.cluster),
            "tags": place.tags,
        },
        on_aws,
    )
    karpenter = KarpenterController(
        "karpenter",
        {"cluster_name": cluster.cluster_name, "cluster_endpoint": cluster.endpoint, "queue_name": queue.queue_name},
        pulumi.ResourceOptions(provider=kubernetes, depends_on=[*cluster.ready, identity]),
    )
    return karpenter, nodes
