"""The platform on EKS: network, cluster, Karpenter with its pools, Kueue, storage, and the plan's objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pulumi
from pulumi_aws.provider import Provider as AwsProvider

from capacity.catalog.platform import partition_of
from capacity.plan.cluster_needs import eks_cluster_needs
from capacity.plan.cpu_work import OTHER_WORK, has_room
from capacity.plan.own_machines import machines_of_pool
from capacity.plan.teams import groups_by_role
from capacity.settings.cluster import EksMode
from capacity.settings.network import CONTROL_PLANE_ZONES
from capacity.settings.pools import OTHER_WORK_VOLUME, default_volume
from capacity.values.names import is_production
from components.cloud_names import EksPlace, cluster_arn
from components.eks.addons import EFA_NODE_LABEL
from components.eks.cluster import EksCluster
from components.eks.efa_security_group import EfaSecurityGroup
from components.eks.existing_cluster import ExistingEksCluster
from components.eks.network import EksNetwork
from components.eks.system_nodes import CRITICAL_ADDONS, SYSTEM_LABEL
from components.eks.team_logins import EksTeamLogins
from components.karpenter.cpu_node_pool import CpuNodePool
from components.karpenter.ec2_node_class import Ec2NodeClass, EfaPlacementGroup, ec2_node_class_ref
from components.karpenter.gpu_node_pool import GpuNodePool
from components.storage.efs_volume import DRIVER as EFS_DRIVER
from components.storage.gp3_storage_class import AUTO_MODE_DRIVER, Gp3StorageClass
from components.storage.lustre_volume import DRIVER as LUSTRE_DRIVER
from infra.eks_auto_mode import declare_auto_mode
from infra.eks_controllers import declare_gpu_daemons, declare_karpenter, declare_load_balancers
from infra.eks_existing import read_parts
from infra.eks_storage import declare_storage
from infra.exported import export
from infra.karpenter_pools import disk_args, node_pool_args, other_work_args
from infra.platform_objects import (
    billing_label,
    cluster_provider,
    declare_jobset,
    declare_kueue,
    declare_measurement,
    declare_platform_objects,
    declare_stock_out_watch,
)

if TYPE_CHECKING:
    from pulumi_kubernetes import Provider

    from capacity.catalog.node_images import ImageBook
    from capacity.plan.cluster_needs import EksClusterNeeds
    from capacity.plan.model import Plan, PoolPlan
    from capacity.settings.platform import EksSettings
    from capacity.settings.pools import EksPool
    from components.eks.cluster_args import EksSystemPoolArgs
    from components.eks.existing_cluster import ExistingEksClusterArgs
    from components.eks.team_logins import EksTeamLoginsArgs
    from components.karpenter.ec2_node_class import Ec2NodeClassArgs
    from components.karpenter.gpu_node_pool import GpuNodePoolArgs
    from components.karpenter.node_bootstrap import KubeletArgs
    from components.shared_args import NodeTaint
    from infra.eks_existing import KarpenterNodes
    from policies.judging import Settings


def driver_taints(settings: EksSettings) -> list[NodeTaint]:
    """Keep pods off a node until it can mount their volumes; the drivers take them off.

    https://github.com/kubernetes-sigs/aws-ebs-csi-driver/blob/master/docs/faq.md, Mountpoint's driver v2, docs/CONFIGURATION.md, and
    https://github.com/kubernetes-sigs/aws-efs-csi-driver/blob/master/docs/README.md, and docs/install.md of aws-fsx-csi-driver. Only on a
    cluster of ours are the drivers known to be there.
    """
    if settings.cluster.existing is not None:
        return []
    storage = settings.storage
    # Auto Mode's own EBS driver takes no such taint off (EKS user guide, "Create a storage class", considerations).
    drivers = ["s3.csi.aws.com"] if settings.cluster.mode is EksMode.AUTO else ["ebs.csi.aws.com", "s3.csi.aws.com"]
    drivers += [driver for driver, used in ((EFS_DRIVER, storage.has_efs), (LUSTRE_DRIVER, storage.has_lustre)) if used]
    return [{"key": f"{driver}/agent-not-ready", "value": "", "effect": "NoExecute"} for driver in drivers]


def declare_pools(  # noqa: PLR0913 -- what the pools stand on, each from its own place
    plan: Plan,
    settings: EksSettings,
    place: EksPlace,
    *,
    cluster: EksCluster | ExistingEksCluster,
    nodes: KarpenterNodes,
    aws: AwsProvider,
    kubernetes: Provider,
) -> None:
    """Registers the pools of the plan, and the one of work without GPUs."""
    options = {pool.name: pool for pool in settings.pools}
    common = _common(settings, place, plan, cluster, nodes.role_name)
    efa: pulumi.Input[str] = ""
    if any(pool.efa for pool in settings.pools):
        members = EfaSecurityGroup(
            "efa", {"cluster": place.cluster, "vpc_id": cluster.vpc_id, "tags": place.tags}, pulumi.ResourceOptions(provider=aws)
        )
        efa = members.security_group_id
    startup = driver_taints(settings)
    # Karpenter's chart brings the definitions of both kinds.
    after_karpenter = pulumi.ResourceOptions(provider=kubernetes, depends_on=[nodes.karpenter])
    for pool in plan.pools:
        wanted = options[pool.name]
        group = None
        if wanted.compact_placement:
            group = EfaPlacementGroup(
                pool.name,
                {"cluster": place.cluster, "pool": pool.name, "tags": place.tags | billing_label(pool)},
                pulumi.ResourceOptions(provider=aws),
            )
        own = node_class_args(plan, pool, wanted, common)
        if group is not None:
            own["placement_group"] = group.name
        if wanted.efa:
            own["more_security_group_ids"] = [efa]
        node_class = Ec2NodeClass(f"{pool.name}-class", own, after_karpenter)
        node_pool = gpu_node_pool_args(plan, pool, wanted, startup)
        GpuNodePool(pool.name, node_pool, pulumi.ResourceOptions(provider=kubernetes, depends_on=[node_class]))
    other = settings.cluster.other_work
    if has_room(settings):
        disk = disk_args(other.volume(OTHER_WORK_VOLUME))
        own: Ec2NodeClassArgs = {**common, "node_class": OTHER_WORK, **disk}  # pyrefly: ignore[open-unpacking] -- no other keys
        node_class = Ec2NodeClass(f"{OTHER_WORK}-class", own, after_karpenter)
        CpuNodePool(
            OTHER_WORK,
            {
                **other_work_args(plan, other, ec2_node_class_ref(OTHER_WORK)),
                "zones": list(settings.zones),
                "startup_taints": startup,
            },
            pulumi.ResourceOptions(provider=kubernetes, depends_on=[node_class]),
        )


def gpu_node_pool_args(plan: Plan, pool: PoolPlan, wanted: EksPool, startup: list[NodeTaint]) -> GpuNodePoolArgs:
    """The NodePool of one pool, with what EKS alone has: quiet hours, taints of drivers that are about to start, a mark of EFA."""
    args = node_pool_args(plan, pool, ec2_node_class_ref(pool.name))
    args["quiet_hours"] = [{"schedule": each.schedule, "hours": each.hours} for each in wanted.quiet_hours]
    args["startup_taints"] = startup
    if wanted.efa:
        args["node_labels"] = {**args["node_labels"], **dict([EFA_NODE_LABEL])}
    return args


def _common(
    settings: EksSettings, place: EksPlace, plan: Plan, cluster: EksCluster | ExistingEksCluster, node_role: pulumi.Input[str]
) -> Ec2NodeClassArgs:
    args: Ec2NodeClassArgs = {
        "node_class": "",
        "ami": settings.cluster.image,
        # In production the settings refuse it already.
        "allow_latest_ami": settings.cluster.image.endswith("@latest"),
        "cluster": place.cluster,
        "node_role": node_role,
        "tags": place.tags,
        "labels": plan.labels,
        "kubelet": cast("KubeletArgs", settings.cluster.nodes.kubelet.model_dump(mode="json", exclude_defaults=True)),
        "user_data": settings.cluster.nodes.boot_data,
    }
    # What somebody else made has none of our tags to be found by.
    if settings.network.existing_vpc is not None:
        args["subnet_ids"] = list(settings.network.existing_private_subnets)
    if settings.cluster.existing is not None:
        args["security_group_ids"] = [cluster.security_group_id]
    return args


def node_class_args(plan: Plan, pool: PoolPlan, wanted: EksPool, common: Ec2NodeClassArgs) -> Ec2NodeClassArgs:
    """The node class of one pool: what all have in common, with the pool's own disks, network cards, reservations and tags."""
    machines = machines_of_pool(plan, pool)
    args: Ec2NodeClassArgs = {  # pyrefly: ignore[open-unpacking] -- no other keys
        **common,
        "node_class": pool.name,
        "zones": list(pool.zones),
        **disk_args(wanted.volume(default_volume(machines))),
        "local_nvme": all(machine.local_ssd_gb for machine in machines),
        "efa_interfaces": machines[0].efa_interfaces if wanted.efa else 0,
        "tags": common["tags"] | billing_label(pool),
    }
    if wanted.efa and machines[0].efa_first_card:
        args["efa_first_card"] = machines[0].efa_first_card
    if wanted.reservation is not None:
        args["reservation_kind"] = wanted.reservation.kind.value
        args["reservation_ids"] = list(wanted.reservation.ids)
        args["reservation_tags"] = dict(wanted.reservation.tags)
        args["reservation_owner"] = wanted.reservation.owner
    return args


def declare_eks(plan: Plan, settings: EksSettings, rules: Settings, images: ImageBook) -> None:
    """Registers every resource of the plan on EKS, and exports what a person or the next tool needs.

    `rules` are those that the cluster's API server holds, `images` the releases that are known of nodes' images.
    """
    name = settings.cluster.existing or settings.cluster.name or settings.environment
    tags = settings.tags | settings.ownership | {"cluster": name}
    boundary = settings.iam.permissions_boundary
    path = settings.iam.path if settings.iam.path != "/" else None
    place = EksPlace(name, settings.account, partition_of(settings.region), settings.region, tags, path, boundary)
    # Credentials of another account are refused before anything is made with them.
    aws = AwsProvider("aws", region=settings.region, allowed_account_ids=[settings.account])
    on_aws = pulumi.ResourceOptions(provider=aws)
    needs = eks_cluster_needs(settings, plan, images) if settings.cluster.existing is not None else None
    cluster, subnets = _cluster(plan, settings, place, on_aws, needs)
    # A destroy by somebody who did not make the cluster needs their access until the last Kubernetes object is gone.
    arn = cluster.cluster_name.apply(lambda known: cluster_arn(place.partition, place.region, place.account, known))
    found = None if needs is None or isinstance(cluster, EksCluster) else read_parts(plan, settings, needs, cluster)
    first, kubeconfig = ([*cluster.access], cluster.kubeconfig) if found is None else ([*found.read], found.kubeconfig)
    kubernetes = cluster_provider("cluster", kubeconfig, arn, pulumi.ResourceOptions(depends_on=first))
    ready = cluster.ready
    in_cluster = pulumi.ResourceOptions(provider=kubernetes, depends_on=ready)
    if groups := groups_by_role(settings.teams):
        logins: EksTeamLoginsArgs = {"cluster_name": cluster.cluster_name, "groups": groups, "partition": place.partition, "tags": tags}
        EksTeamLogins("team-logins", logins, on_aws)
    auto = settings.cluster.mode is EksMode.AUTO
    if auto:
        ready = declare_auto_mode(plan, settings, place, cluster=cluster, aws=aws, kubernetes=kubernetes, startup=driver_taints(settings))
        in_cluster = pulumi.ResourceOptions(provider=kubernetes, depends_on=ready)
    else:
        theirs = found.nodes if found is not None else None
        nodes = theirs or declare_karpenter(plan, settings, place, cluster, on_aws, in_cluster)
        declare_pools(plan, settings, place, cluster=cluster, nodes=nodes, aws=aws, kubernetes=kubernetes)
    declare_gpu_daemons(plan, settings, in_cluster)
    # A cluster of somebody else's has its own nodes for controllers, and its own idea of a default class.
    own = settings.cluster.existing is None
    if own:
        Gp3StorageClass("gp3", {"labels": plan.labels, **({"driver": AUTO_MODE_DRIVER} if auto else {})}, in_cluster)
    node_selector = {SYSTEM_LABEL: "true"} if own else None
    tolerations = [{"key": CRITICAL_ADDONS, "operator": "Exists"}] if own else []
    kueue = declare_kueue(plan, in_cluster, settings, node_selector=node_selector, tolerations=tolerations)
    declare_jobset(plan, in_cluster, settings, node_selector=node_selector, tolerations=tolerations)
    after_kueue = pulumi.ResourceOptions.merge(in_cluster, pulumi.ResourceOptions(depends_on=[kueue]))
    declare_stock_out_watch(plan, settings, after_kueue, node_selector=node_selector, tolerations=tolerations)
    declare_measurement(plan, settings, in_cluster, node_selector=node_selector, tolerations=tolerations)
    # Its role is AWS's, its release the cluster's.
    in_both = pulumi.ResourceOptions(providers=[aws, kubernetes], depends_on=ready)
    load_balancers = declare_load_balancers(plan, settings, place, cluster, in_both, node_selector=node_selector, tolerations=tolerations)
    teams = declare_platform_objects(plan, kubernetes, [kueue], outlived_by=load_balancers, rules=rules)
    declare_storage(plan, settings, place, teams=teams, cluster=cluster, subnets=subnets, aws=aws, kubernetes=kubernetes)
    export("credentials_command", cluster.credentials_command)
    export("cluster", cluster.cluster_name)
    export("dashboards", f"https://{settings.region}.console.aws.amazon.com/eks/clusters/{name}?region={settings.region}")


def _cluster(
    plan: Plan, settings: EksSettings, place: EksPlace, on_aws: pulumi.ResourceOptions, needs: EksClusterNeeds | None
) -> tuple[EksCluster | ExistingEksCluster, dict[str, pulumi.Input[str]]]:
    """The cluster, and the private subnets by zone, as far as they are known."""
    net, wanted = settings.network, settings.cluster
    subnets: dict[str, pulumi.Input[str]] = dict(zip(settings.zones, net.existing_private_subnets, strict=False))
    if needs is not None:
        there: ExistingEksClusterArgs = {
            "cluster": place.cluster,
            "account": place.account,
            "partition": place.partition,
            "region": place.region,
            "versions": [{"user": each.user, "least": each.least, "most": each.most, "remedy": each.remedy} for each in needs.versions],
        }
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
        made = EksNetwork(
            "network",
            {
                "cluster": place.cluster,
                "region": place.region,
                "vpc_cidr": net.vpc_cidr,
                "zones": list(settings.zones),
                "private_cidrs": list(net.private_cidrs[:zones]),
                "public_cidrs": list(net.public_cidrs[:zones]),
                "control_plane_zones": list(settings.control_plane_zones),
                "control_plane_cidrs": list(settings.control_plane_cidrs),
                "deletion_protection": protected,
                "nat": net.nat.value,
                "endpoints": settings.interface_services,
                "tags": place.tags,
            },
            on_aws,
        )
        vpc_id, subnet_ids, control_plane = made.vpc_id, made.private_subnet_ids, made.control_plane_subnet_ids
        subnets = made.private_subnets
    auto, system = wanted.mode is EksMode.AUTO, wanted.system_pool
    nodes: EksSystemPoolArgs = {
        "machine": system.machine,
        "min_nodes": system.min_nodes,
        "max_nodes": system.max_nodes,
        "release": plan.versions.system_release,
        "node_repair": wanted.node_repair,
    }
    cluster = EksCluster(
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
            "control_plane_subnet_ids": control_plane,
            "services_cidr": net.services_cidr,
            "access": settings.access.value,
            "cidrs": list(settings.control_plane.cidrs),
            "private_cidrs": [*([] if net.existing_vpc else [net.vpc_cidr]), *net.runner_cidrs],
            "deletion_protection": protected,
            "log_retention_days": wanted.log_days,
            "logs_kms_key": wanted.logs_kms_key,
            "admin_role_arns": list(wanted.admin_roles),
            "auto_mode": auto,
            "system_pool": None if auto else nodes,
            "ami": wanted.ami,
            "addon_versions": plan.versions.addons,
            "efs_driver": settings.storage.has_efs,
            "lustre_driver": settings.storage.has_lustre,
            "metrics_server": wanted.addons.metrics_server,
            "owner_labels": plan.labels,
            "tags": place.tags,
            "iam_path": place.iam_path,
            "permissions_boundary": place.permissions_boundary,
        },
        on_aws,
    )
    return cluster, subnets
