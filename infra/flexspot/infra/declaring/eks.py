"""The platform on EKS: network, cluster, Karpenter with its pools, Kueue, storage, and the plan's objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi
from pulumi_aws.provider import Provider as AwsProvider

from flexspot.capacity.catalog.platform import partition_of
from flexspot.capacity.plan.needs import eks_cluster_needs
from flexspot.capacity.plan.teams import groups_by_role
from flexspot.capacity.settings.cluster import EksMode
from flexspot.capacity.settings.network import CONTROL_PLANE_ZONES
from flexspot.capacity.values.names import is_production
from flexspot.components.cloud_names import EksPlace, cluster_arn
from flexspot.components.eks.cluster import EksCluster, EksTeamLogins, EksTeamLoginsArgs
from flexspot.components.eks.cluster_args import EksClusterArgs, EksSystemPoolArgs
from flexspot.components.eks.existing_cluster import ExistingEksCluster, ExistingEksClusterArgs
from flexspot.components.eks.network import EksNetwork, EksNetworkArgs
from flexspot.components.eks.system_nodes import CRITICAL_ADDONS, SYSTEM_LABEL
from flexspot.components.shared_args import arguments
from flexspot.components.storage.gp3_storage_class import AUTO_MODE_DRIVER, Gp3StorageClass
from flexspot.infra.declaring.eks_controllers import EksStack, declare_gpu_daemons, declare_karpenter, declare_load_balancers, read_parts
from flexspot.infra.declaring.eks_pools import declare_auto_mode, declare_karpenter_pools
from flexspot.infra.declaring.eks_storage import declare_storage
from flexspot.infra.declaring.platform_objects import (
    ANYWHERE,
    ControllerNodes,
    after,
    cluster_provider,
    declare_controllers,
    declare_platform_objects,
)

if TYPE_CHECKING:
    from flexspot.capacity.catalog.node_images import ImageBook
    from flexspot.capacity.plan.model import Plan
    from flexspot.capacity.plan.needs import EksClusterNeeds
    from flexspot.capacity.settings.platform import EksSettings
    from flexspot.infra.declaring.platform_objects import Outputs
    from flexspot.policies.judging import Settings


def declare_eks(plan: Plan, settings: EksSettings, rules: Settings, images: ImageBook, within: pulumi.ResourceOptions) -> Outputs:
    """Register every resource of the plan on EKS, and return the stack's outputs.

    `rules` are the settings of the rules in the cluster's API server. `images` are the known releases of node images. `within` names the
    parent.
    """
    name = settings.cluster.existing or settings.cluster.name or settings.environment
    tags = settings.tags | settings.ownership | {"cluster": name}
    boundary = settings.iam.permissions_boundary
    path = settings.iam.path if settings.iam.path != "/" else None
    place = EksPlace(name, settings.account, partition_of(settings.region), settings.region, tags, path, boundary)
    # Credentials of another account are rejected before anything is created with them.
    aws = AwsProvider("aws", region=settings.region, allowed_account_ids=[settings.account], opts=within)
    on_aws = pulumi.ResourceOptions.merge(within, pulumi.ResourceOptions(provider=aws))
    needs = eks_cluster_needs(settings, plan, images) if settings.cluster.existing is not None else None
    cluster, subnets = _cluster(plan, settings, place, on_aws, needs)
    # A person who did not create the cluster needs its access entries in a destroy, until the last Kubernetes object is deleted.
    arn = cluster.cluster_name.apply(lambda known: cluster_arn(place.partition, place.region, place.account, known))
    found = None if needs is None or isinstance(cluster, EksCluster) else read_parts(plan, settings, needs, cluster, within)
    first, kubeconfig = ([*cluster.access], cluster.kubeconfig) if found is None else ([*found.read], found.kubeconfig)
    kubernetes = cluster_provider("cluster", after(within, *first), kubeconfig, arn)
    if groups := groups_by_role(settings.teams):
        logins = arguments(EksTeamLoginsArgs, place, cluster_name=cluster.cluster_name, groups=groups)
        EksTeamLogins("team-logins", logins, on_aws)
    stack = EksStack(plan, settings, place, cluster, subnets, within, aws, kubernetes)
    auto, ready = settings.cluster.mode is EksMode.AUTO, cluster.ready
    if auto:
        ready = declare_auto_mode(stack)
    else:
        theirs = found.nodes if found is not None else None
        declare_karpenter_pools(stack, theirs or declare_karpenter(stack))
    in_cluster = after(stack.on_cluster, *ready)
    declare_gpu_daemons(plan, settings, in_cluster)
    # An existing cluster has its own nodes for controllers, and its own default storage class.
    nodes = ANYWHERE
    if settings.cluster.existing is None:
        Gp3StorageClass("gp3", {"labels": plan.labels, **({"driver": AUTO_MODE_DRIVER} if auto else {})}, in_cluster)
        nodes = ControllerNodes({SYSTEM_LABEL: "true"}, [{"key": CRITICAL_ADDONS, "operator": "Exists"}])
    load_balancers = declare_load_balancers(stack, after(stack.on_both, *ready), nodes)
    kueue, measured = declare_controllers(plan, settings, in_cluster, nodes)
    teams, queues = declare_platform_objects(plan, stack.on_cluster, [kueue], outlived_by=load_balancers, rules=rules)
    return {
        **measured,
        **queues,
        **declare_storage(stack, teams),
        "credentials_command": cluster.credentials_command,
        "cluster": cluster.cluster_name,
        "dashboards": f"https://{settings.region}.console.aws.amazon.com/eks/clusters/{name}?region={settings.region}",
    }


def _cluster(
    plan: Plan, settings: EksSettings, place: EksPlace, on_aws: pulumi.ResourceOptions, needs: EksClusterNeeds | None
) -> tuple[EksCluster | ExistingEksCluster, dict[str, pulumi.Input[str]]]:
    """Return the cluster, and the private subnets by zone as far as they are known."""
    net, wanted = settings.network, settings.cluster
    subnets: dict[str, pulumi.Input[str]] = dict(zip(settings.zones, net.existing_private_subnets, strict=False))
    if needs is not None:
        there = arguments(ExistingEksClusterArgs, place, needs)
        return ExistingEksCluster("cluster", there, on_aws), subnets
    vpc_id: pulumi.Input[str]
    subnet_ids: pulumi.Input[list[str]]
    control_plane: pulumi.Input[list[str]]
    protected = is_production(settings.environment) if wanted.deletion_protection is None else wanted.deletion_protection
    if net.existing_vpc is not None:
        vpc_id, subnet_ids = net.existing_vpc, list(net.existing_private_subnets)
        control_plane = list(net.existing_control_plane_subnets or net.existing_private_subnets[:CONTROL_PLANE_ZONES])
    else:
        zones = len(settings.zones)
        network = arguments(
            EksNetworkArgs,
            place,
            settings,
            net,
            private_cidrs=net.private_cidrs[:zones],
            public_cidrs=net.public_cidrs[:zones],
            deletion_protection=protected,
            endpoints=settings.interface_services,
        )
        vpc = EksNetwork("network", network, on_aws)
        vpc_id, subnet_ids, control_plane = vpc.vpc_id, vpc.private_subnet_ids, vpc.control_plane_subnet_ids
        subnets = vpc.private_subnets
    auto, system = wanted.mode is EksMode.AUTO, wanted.system_pool
    nodes = arguments(EksSystemPoolArgs, system, wanted, release=plan.versions.system_release)
    args = arguments(
        EksClusterArgs,
        place,
        wanted,
        vpc_id=vpc_id,
        subnet_ids=subnet_ids,
        control_plane_subnet_ids=control_plane,
        services_cidr=net.services_cidr,
        access=settings.access,
        cidrs=settings.control_plane.cidrs,
        private_cidrs=[*([] if net.existing_vpc else [net.vpc_cidr]), *net.runner_cidrs],
        deletion_protection=protected,
        log_retention_days=wanted.log_days,
        admin_role_arns=wanted.admin_roles,
        auto_mode=auto,
        system_pool=None if auto else nodes,
        addon_versions=plan.versions.addons,
        efs_driver=settings.storage.has_efs,
        lustre_driver=settings.storage.has_lustre,
        metrics_server=wanted.addons.metrics_server,
        owner_labels=plan.labels,
    )
    return EksCluster("cluster", args, on_aws), subnets
