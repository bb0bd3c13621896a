"""The plan's pools on EKS: a NodePool each, with a node class of its own for images, disks, network cards and reservations."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pulumi

from capacity.catalog.machines import Cloud, machines_of
from capacity.settings.pools import EksNodeDisk
from components.eks.gpu_plugins import EFA_NODE_LABEL
from components.karpenter.cpu_node_pool import CpuNodePool
from components.karpenter.ec2_node_class import Ec2NodeClass, ec2_node_class_ref
from components.karpenter.gpu_node_pool import GpuNodePool
from components.karpenter.placement import EfaPlacementGroup
from infra.karpenter_pools import node_pool_args
from infra.pool_marks import billing_label

if TYPE_CHECKING:
    from pulumi_aws.provider import Provider as AwsProvider
    from pulumi_kubernetes import Provider

    from capacity.plan.model import Plan, PoolPlan
    from capacity.settings.platform import EksSettings
    from capacity.settings.pools import EksPool
    from components.aws_names import EksPlace
    from components.eks.cluster import EksCluster
    from components.eks.existing_cluster import ExistingEksCluster
    from components.karpenter.controller import KarpenterController
    from components.karpenter.ec2_node_class import Ec2NodeClassArgs, EksNodeDiskArgs
    from components.karpenter.gpu_node_pool import GpuNodePoolArgs
    from components.karpenter.node_identity import KarpenterNodeIdentity
    from components.shared_args import NodeTaint

OTHER_WORK = "other-work"
"""The NodePool, and its node class, of what asks for no GPU. No pool can be called so: a name of the plan would be taken."""


DRIVER_TAINTS: list[NodeTaint] = [
    {"key": f"{driver}/agent-not-ready", "value": "", "effect": "NoExecute"} for driver in ("ebs.csi.aws.com", "s3.csi.aws.com")
]
"""Keep pods off a node until it can mount their volumes; the drivers take them off.

https://github.com/kubernetes-sigs/aws-ebs-csi-driver/blob/master/docs/faq.md and Mountpoint's driver v2, docs/CONFIGURATION.md
"""


def declare_pools(  # noqa: PLR0913 -- what the pools stand on, each from its own place
    plan: Plan,
    settings: EksSettings,
    place: EksPlace,
    *,
    cluster: EksCluster | ExistingEksCluster,
    nodes: KarpenterNodeIdentity,
    aws: AwsProvider,
    kubernetes: Provider,
    karpenter: KarpenterController,
) -> None:
    """Registers the pools of the plan, and the one of work without GPUs."""
    options = {pool.name: pool for pool in settings.pools}
    common = _common(settings, place, plan, cluster, nodes)
    # Only on a cluster of ours are the drivers known to be there, and to take off their taints.
    startup = [] if settings.cluster.existing else DRIVER_TAINTS
    # Karpenter's chart brings the definitions of both kinds.
    after_karpenter = pulumi.ResourceOptions(provider=kubernetes, depends_on=[karpenter])
    for pool in plan.pools:
        wanted = options[pool.name]
        group = None
        if wanted.compact_placement:
            group = EfaPlacementGroup(
                pool.name,
                {"cluster": place.cluster, "pool": pool.name, "tags": place.tags | billing_label(pool)},
                pulumi.ResourceOptions(provider=aws),
            )
        own = node_class_args(pool, wanted, common)
        if group is not None:
            own["placement_group"] = group.name
        node_class = Ec2NodeClass(f"{pool.name}-class", own, after_karpenter)
        node_pool = gpu_node_pool_args(plan, pool, wanted, startup)
        GpuNodePool(pool.name, node_pool, pulumi.ResourceOptions(provider=kubernetes, depends_on=[node_class]))
    other = settings.cluster.other_work
    if other.max_vcpu and other.max_memory_gib:
        node_class = Ec2NodeClass(f"{OTHER_WORK}-class", {**common, "node_class": OTHER_WORK}, after_karpenter)
        CpuNodePool(
            OTHER_WORK,
            {
                "pool": OTHER_WORK,
                "labels": plan.labels,
                "owner_labels": plan.labels,
                "max_vcpu": other.max_vcpu,
                "max_memory_gib": other.max_memory_gib,
                "zones": list(settings.zones),
                "startup_taints": startup,
                "node_class": ec2_node_class_ref(OTHER_WORK),
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
    settings: EksSettings, place: EksPlace, plan: Plan, cluster: EksCluster | ExistingEksCluster, nodes: KarpenterNodeIdentity
) -> Ec2NodeClassArgs:
    args: Ec2NodeClassArgs = {
        "node_class": "",
        "ami": settings.cluster.ami,
        # In production the settings refuse it already.
        "allow_latest_ami": settings.cluster.ami.endswith("@latest"),
        "cluster": place.cluster,
        "node_role": nodes.role_name,
        "tags": place.tags,
        "labels": plan.labels,
    }
    # What somebody else made has none of our tags to be found by.
    if settings.network.existing_vpc is not None:
        args["subnet_ids"] = list(settings.network.existing_private_subnets)
    if settings.cluster.existing is not None:
        args["security_group_ids"] = [cluster.security_group_id]
    return args


def node_class_args(pool: PoolPlan, wanted: EksPool, common: Ec2NodeClassArgs) -> Ec2NodeClassArgs:
    """The node class of one pool: what all have in common, with the pool's own disks, network cards, reservations and tags."""
    machines = [machines_of(Cloud.AWS)[name] for name in pool.machines]
    args: Ec2NodeClassArgs = {
        **common,
        "node_class": pool.name,
        "zones": list(pool.zones),
        **cast("EksNodeDiskArgs", wanted.model_dump(include=set(EksNodeDisk.model_fields))),
        "local_nvme": all(machine.local_ssd_gb for machine in machines),
        "efa_interfaces": machines[0].efa_interfaces if wanted.efa else 0,
        "tags": common["tags"] | billing_label(pool),
    }
    if wanted.reservation is not None:
        args["reservation_kind"] = wanted.reservation.kind.value
        args["reservation_ids"] = list(wanted.reservation.ids)
        args["reservation_tags"] = dict(wanted.reservation.tags)
    return args
