"""A platform on EKS Auto Mode: nodes for controllers, what Auto Mode leaves to be installed, and the plan's pools as NodePools of AWS's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from capacity.catalog.node_labels import AUTO_MODE_INSTANCE
from capacity.plan.checks.auto_mode import DRAIN_HOURS, SYSTEM_POOL, node_hours
from capacity.plan.cpu_work import OTHER_WORK, has_room
from capacity.plan.own_machines import machines_of_pool
from capacity.plan.spending import EKS_SYSTEM_DISK_GIB
from capacity.settings.pools import OTHER_WORK_VOLUME, Gp3Volume, default_volume
from capacity.values.quantities import SECONDS_OF_AN_HOUR
from components.eks.auto_addons import AutoAddons
from components.eks.auto_node_class import AutoNodeClass, auto_node_class_ref
from components.eks.auto_node_identity import AutoNodeIdentity
from components.eks.auto_system_pool import AutoSystemPool
from components.eks.efa_security_group import EfaSecurityGroup
from components.karpenter.cpu_node_pool import CpuNodePool
from components.karpenter.ec2_node_class import EfaPlacementGroup
from components.karpenter.gpu_node_pool import GpuNodePool
from infra.karpenter_pools import disk_args, node_pool_args, other_work_args
from infra.platform_objects import billing_label

if TYPE_CHECKING:
    from pulumi_aws.provider import Provider as AwsProvider
    from pulumi_kubernetes import Provider

    from capacity.plan.model import Plan, PoolPlan
    from capacity.settings.platform import EksSettings
    from capacity.settings.pools import EksPool
    from components.cloud_names import EksPlace
    from components.eks.auto_node_class import AutoNodeClassArgs
    from components.eks.cluster import EksCluster
    from components.eks.existing_cluster import ExistingEksCluster
    from components.karpenter.ec2_node_class import EfaPlacementGroupArgs
    from components.karpenter.gpu_node_pool import GpuNodePoolArgs
    from components.shared_args import NodeTaint


def declare_auto_mode(  # noqa: PLR0913 -- what it stands on, each from its own place
    plan: Plan,
    settings: EksSettings,
    place: EksPlace,
    *,
    cluster: EksCluster | ExistingEksCluster,
    aws: AwsProvider,
    kubernetes: Provider,
    startup: list[NodeTaint],
) -> list[pulumi.Resource]:
    """Registers everything of nodes; returns what all else inside the cluster waits for."""
    on_aws = pulumi.ResourceOptions(provider=aws)
    nodes = AutoNodeIdentity(
        "auto-nodes",
        {
            "cluster": place.cluster,
            "cluster_name": cluster.cluster_name,
            "partition": place.partition,
            "tags": place.tags,
            "iam_path": place.iam_path,
            "permissions_boundary": place.permissions_boundary,
        },
        on_aws,
    )
    common: AutoNodeClassArgs = {
        "node_class": "",
        "cluster": place.cluster,
        "node_role": nodes.role_name,
        "tags": place.tags,
        "labels": plan.labels,
    }
    # What somebody else made has none of our tags to be found by.
    if settings.network.existing_vpc is not None:
        common["subnet_ids"] = list(settings.network.existing_private_subnets)
    # EKS brings the definitions of both kinds with the cluster.
    in_cluster = pulumi.ResourceOptions(provider=kubernetes, depends_on=cluster.ready)
    ready = [*cluster.ready, *_for_controllers(plan, settings, place, cluster, common, aws, kubernetes)]
    efa: pulumi.Input[str] = ""
    if any(pool.efa for pool in settings.pools):
        members = EfaSecurityGroup("efa", {"cluster": place.cluster, "vpc_id": cluster.vpc_id, "tags": place.tags}, on_aws)
        efa = members.security_group_id
    for pool in plan.pools:
        wanted = next(each for each in settings.pools if each.name == pool.name)
        own = auto_node_class_args(plan, pool, wanted, common)
        if wanted.compact_placement:
            group: EfaPlacementGroupArgs = {"cluster": place.cluster, "pool": pool.name, "tags": place.tags | billing_label(pool)}
            own["placement_group"] = EfaPlacementGroup(pool.name, group, on_aws).name
        if wanted.efa:
            own["more_security_group_ids"] = [efa]
            own["pods"] = settings.network.pods_per_node
        node_class = AutoNodeClass(f"{pool.name}-class", own, in_cluster)
        GpuNodePool(
            pool.name,
            auto_node_pool_args(plan, pool, wanted, startup),
            pulumi.ResourceOptions(provider=kubernetes, depends_on=[node_class]),
        )
    _other_work(plan, settings, common, startup, kubernetes, in_cluster)
    return ready


def _for_controllers(  # noqa: PLR0913, PLR0917 -- what they stand on, each from its own place
    plan: Plan,
    settings: EksSettings,
    place: EksPlace,
    cluster: EksCluster | ExistingEksCluster,
    common: AutoNodeClassArgs,
    aws: AwsProvider,
    kubernetes: Provider,
) -> list[pulumi.Resource]:
    in_cluster = pulumi.ResourceOptions(provider=kubernetes, depends_on=cluster.ready)
    disk = disk_args(Gp3Volume(EKS_SYSTEM_DISK_GIB))
    own: AutoNodeClassArgs = {**common, "node_class": SYSTEM_POOL, **disk}  # pyrefly: ignore[open-unpacking] -- no other keys
    node_class = AutoNodeClass(f"{SYSTEM_POOL}-class", own, in_cluster)
    system = settings.cluster.system_pool
    pool = AutoSystemPool(
        SYSTEM_POOL,
        {
            "pool": SYSTEM_POOL,
            "machine": system.machine,
            "max_nodes": system.max_nodes,
            "zones": list(settings.zones),
            "node_class": auto_node_class_ref(SYSTEM_POOL),
            "expire_after_hours": node_hours(),
            "drain_hours": DRAIN_HOURS,
            "labels": plan.labels,
            "owner_labels": plan.labels,
        },
        pulumi.ResourceOptions(provider=kubernetes, depends_on=[node_class]),
    )
    addons = AutoAddons(
        "auto-addons",
        {
            "cluster": place.cluster,
            "cluster_name": cluster.cluster_name,
            "account": place.account,
            "partition": place.partition,
            "region": place.region,
            "addon_versions": plan.versions.addons,
            "version": settings.cluster.version,
            "efs_driver": settings.storage.has_efs,
            "lustre_driver": settings.storage.has_lustre,
            "metrics_server": settings.cluster.addons.metrics_server,
            "labels": plan.labels,
            "tags": place.tags,
            "iam_path": place.iam_path,
            "permissions_boundary": place.permissions_boundary,
        },
        pulumi.ResourceOptions(providers=[aws, kubernetes], depends_on=[*cluster.ready, pool]),
    )
    return [pool, *addons.ready]


def _other_work(  # noqa: PLR0913, PLR0917 -- what it stands on, each from its own place
    plan: Plan,
    settings: EksSettings,
    common: AutoNodeClassArgs,
    startup: list[NodeTaint],
    kubernetes: Provider,
    in_cluster: pulumi.ResourceOptions,
) -> None:
    other = settings.cluster.other_work
    if not has_room(settings):
        return
    disk = disk_args(other.volume(OTHER_WORK_VOLUME))
    own: AutoNodeClassArgs = {**common, "node_class": OTHER_WORK, **disk}  # pyrefly: ignore[open-unpacking] -- no other keys
    node_class = AutoNodeClass(f"{OTHER_WORK}-class", own, in_cluster)
    CpuNodePool(
        OTHER_WORK,
        {
            **other_work_args(plan, other, auto_node_class_ref(OTHER_WORK)),
            "zones": list(settings.zones),
            "startup_taints": startup,
            "expire_after_hours": node_hours(),
            "instance_labels": AUTO_MODE_INSTANCE,
        },
        pulumi.ResourceOptions(provider=kubernetes, depends_on=[node_class]),
    )


def auto_node_pool_args(plan: Plan, pool: PoolPlan, wanted: EksPool, startup: list[NodeTaint]) -> GpuNodePoolArgs:
    """The NodePool of one pool in Auto Mode, whose nodes drain before AWS ends them."""
    args = node_pool_args(plan, pool, auto_node_class_ref(pool.name))
    args["instance_labels"] = AUTO_MODE_INSTANCE
    args["quiet_hours"] = [{"schedule": each.schedule, "hours": each.hours} for each in wanted.quiet_hours]
    args["startup_taints"] = startup
    args["expire_after_seconds"] = node_hours() * SECONDS_OF_AN_HOUR
    args["termination_grace_seconds"] = args.get("termination_grace_seconds") or DRAIN_HOURS * SECONDS_OF_AN_HOUR
    return args


def auto_node_class_args(plan: Plan, pool: PoolPlan, wanted: EksPool, common: AutoNodeClassArgs) -> AutoNodeClassArgs:
    """The NodeClass of one pool: what all have in common, with the pool's own volume, network cards, reservations and tags."""
    machines = machines_of_pool(plan, pool)
    args: AutoNodeClassArgs = {  # pyrefly: ignore[open-unpacking] -- no other keys
        **common,
        "node_class": pool.name,
        "tags": common["tags"] | billing_label(pool),
        **disk_args(wanted.volume(default_volume(machines))),
        "efa_interfaces": machines[0].efa_interfaces if wanted.efa else 0,
    }
    if wanted.efa and machines[0].efa_first_card:
        args["efa_first_card"] = machines[0].efa_first_card
    if wanted.reservation is not None:
        args["reservation_ids"] = list(wanted.reservation.ids)
        args["reservation_tags"] = dict(wanted.reservation.tags)
        args["reservation_owner"] = wanted.reservation.owner
    return args
