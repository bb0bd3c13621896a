"""Nodes of a platform on EKS: the plan's pools and those of other work, for Karpenter on the cluster or for EKS Auto Mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexspot.capacity.catalog.node_labels import AUTO_MODE_INSTANCE
from flexspot.capacity.plan.checks.managed_nodes import DRAIN_HOURS, SYSTEM_POOL, node_hours
from flexspot.capacity.plan.cpu_work import OTHER_WORK, has_room
from flexspot.capacity.plan.resolve import machines_of_pool
from flexspot.capacity.plan.spending import EKS_SYSTEM_DISK_GIB
from flexspot.capacity.settings.cluster import EksMode
from flexspot.capacity.settings.pools import OTHER_WORK_VOLUME, Gp3Volume, default_volume
from flexspot.capacity.values.quantities import SECONDS_OF_AN_HOUR
from flexspot.components.eks.addons import EFA_NODE_LABEL
from flexspot.components.eks.auto_mode import (
    AutoAddons,
    AutoAddonsArgs,
    AutoNodeClass,
    AutoNodeClassArgs,
    AutoNodeIdentity,
    AutoNodeIdentityArgs,
    AutoSystemPool,
    AutoSystemPoolArgs,
    auto_node_class_ref,
)
from flexspot.components.eks.network import EfaSecurityGroup, EfaSecurityGroupArgs
from flexspot.components.karpenter.ec2_node_class import (
    Ec2NodeClass,
    Ec2NodeClassArgs,
    EfaPlacementGroup,
    EfaPlacementGroupArgs,
    ec2_node_class_ref,
)
from flexspot.components.karpenter.node_pools import CpuNodePool, GpuNodePool
from flexspot.components.shared_args import arguments
from flexspot.components.storage.efs import DRIVER as EFS_DRIVER
from flexspot.components.storage.lustre import DRIVER as LUSTRE_DRIVER
from flexspot.infra.declaring.platform_objects import after, billing_label, node_pool_args, other_work_args

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pulumi

    from flexspot.capacity.plan.model import Plan, PoolPlan
    from flexspot.capacity.settings.platform import EksSettings
    from flexspot.capacity.settings.pools import EksPool
    from flexspot.components.karpenter.ec2_node_class import EksNodeDiskArgs
    from flexspot.components.karpenter.node_pools import GpuNodePoolArgs
    from flexspot.components.shared_args import NodeTaint
    from flexspot.infra.declaring.eks_controllers import EksStack, KarpenterNodes


def driver_taints(settings: EksSettings) -> list[NodeTaint]:
    """Return the taints that keep pods off a node until it can mount their volumes. The drivers remove them.

    https://github.com/kubernetes-sigs/aws-ebs-csi-driver/blob/master/docs/faq.md, Mountpoint's driver v2, docs/CONFIGURATION.md, and
    https://github.com/kubernetes-sigs/aws-efs-csi-driver/blob/master/docs/README.md, and docs/install.md of aws-fsx-csi-driver. Only on a
    cluster that Flexspot creates are the drivers known to be installed.
    """
    if settings.cluster.existing is not None:
        return []
    storage = settings.storage
    # Auto Mode's EBS driver does not remove this taint (EKS user guide, "Create a storage class", considerations).
    drivers = ["s3.csi.aws.com"] if settings.cluster.mode is EksMode.AUTO else ["ebs.csi.aws.com", "s3.csi.aws.com"]
    drivers += [driver for driver, used in ((EFS_DRIVER, storage.has_efs), (LUSTRE_DRIVER, storage.has_lustre)) if used]
    return [{"key": f"{driver}/agent-not-ready", "value": "", "effect": "NoExecute"} for driver in drivers]


def declare_karpenter_pools(stack: EksStack, nodes: KarpenterNodes) -> None:
    """Register the pools of Karpenter on the cluster, whose chart installs the definitions of both kinds."""
    cluster = stack.settings.cluster
    common: dict[str, Any] = {
        "ami": cluster.image,
        # In production, the settings already reject it.
        "allow_latest_ami": cluster.image.endswith("@latest"),
        "node_role": nodes.role_name,
        "kubelet": cluster.nodes.kubelet.model_dump(mode="json", exclude_defaults=True),
        "user_data": cluster.nodes.boot_data,
    }
    # An existing cluster's security group does not have the tags to find it by.
    if cluster.existing is not None:
        common["security_group_ids"] = [stack.cluster.security_group_id]
    _declare_pools(stack, common, after(stack.on_cluster, nodes.karpenter))


def declare_auto_mode(stack: EksStack) -> list[pulumi.Resource]:
    """Register all resources of nodes in Auto Mode. Return the resources that everything else in the cluster waits for."""
    identity = arguments(AutoNodeIdentityArgs, stack.place, cluster_name=stack.cluster.cluster_name)
    common = {"node_role": AutoNodeIdentity("auto-nodes", identity, stack.on_aws).role_name}
    # EKS installs the definitions of both kinds with the cluster.
    in_cluster = after(stack.on_cluster, *stack.cluster.ready)
    ready = [*stack.cluster.ready, *_for_controllers(stack, common, in_cluster)]
    _declare_pools(stack, common, in_cluster)
    return ready


def _for_controllers(stack: EksStack, common: Mapping[str, Any], in_cluster: pulumi.ResourceOptions) -> list[pulumi.Resource]:
    plan, settings = stack.plan, stack.settings
    own = {"node_class": SYSTEM_POOL, **disk_args(Gp3Volume(EKS_SYSTEM_DISK_GIB))}
    node_class = _node_class(stack, {**common, **own}, in_cluster)
    system = arguments(
        AutoSystemPoolArgs,
        settings.cluster.system_pool,
        settings,
        plan,
        pool=SYSTEM_POOL,
        node_class=auto_node_class_ref(SYSTEM_POOL),
        expire_after_hours=node_hours(),
        drain_hours=DRAIN_HOURS,
        owner_labels=plan.labels,
    )
    pool = AutoSystemPool(SYSTEM_POOL, system, after(stack.on_cluster, node_class))
    wanted = arguments(
        AutoAddonsArgs,
        stack.place,
        settings.cluster.addons,
        plan,
        cluster_name=stack.cluster.cluster_name,
        addon_versions=plan.versions.addons,
        version=settings.cluster.version,
        efs_driver=settings.storage.has_efs,
        lustre_driver=settings.storage.has_lustre,
    )
    return [pool, *AutoAddons("auto-addons", wanted, after(stack.on_both, *stack.cluster.ready, pool)).ready]


def _declare_pools(stack: EksStack, common: Mapping[str, Any], in_cluster: pulumi.ResourceOptions) -> None:
    """Register the plan's pools, and the pool of work without GPUs. `common` are the arguments that all node classes share."""
    plan, settings, place = stack.plan, stack.settings, stack.place
    auto, startup = settings.cluster.mode is EksMode.AUTO, driver_taints(settings)
    options = {pool.name: pool for pool in settings.pools}
    efa: pulumi.Input[str] = ""
    if any(pool.efa for pool in settings.pools):
        members = EfaSecurityGroup("efa", arguments(EfaSecurityGroupArgs, place, vpc_id=stack.cluster.vpc_id), stack.on_aws)
        efa = members.security_group_id
    for pool in plan.pools:
        wanted = options[pool.name]
        own = {**common, **node_class_of_pool(plan, pool, wanted), "tags": place.tags | billing_label(pool)}
        if wanted.compact_placement:
            group = arguments(EfaPlacementGroupArgs, place, pool=pool.name, tags=own["tags"])
            own["placement_group"] = EfaPlacementGroup(pool.name, group, stack.on_aws).name
        if wanted.efa:
            own |= {"more_security_group_ids": [efa], "pods": settings.network.pods_per_node}
        node_class = _node_class(stack, own, in_cluster)
        args = gpu_node_pool_args(plan, pool, wanted, startup, auto=auto)
        GpuNodePool(pool.name, args, after(stack.on_cluster, node_class))
    other = settings.cluster.other_work
    if has_room(settings):
        own = {"node_class": OTHER_WORK, **disk_args(other.volume(OTHER_WORK_VOLUME))}
        node_class = _node_class(stack, {**common, **own}, in_cluster)
        args = other_work_args(plan, other, auto_node_class_ref(OTHER_WORK) if auto else ec2_node_class_ref(OTHER_WORK))
        args["zones"], args["startup_taints"] = list(settings.zones), startup
        if auto:
            args["expire_after_hours"], args["instance_labels"] = node_hours(), AUTO_MODE_INSTANCE
        CpuNodePool(OTHER_WORK, args, after(stack.on_cluster, node_class))


def disk_args(volume: Gp3Volume) -> EksNodeDiskArgs:
    """Return the arguments for a node's volume in a node class of either kind."""
    return {"boot_disk_gib": volume.gib, "boot_disk_iops": volume.iops, "boot_disk_throughput_mib": volume.throughput_mib}


def node_class_of_pool(plan: Plan, pool: PoolPlan, wanted: EksPool) -> dict[str, Any]:
    """Return the arguments of a node class that are specific to one pool: name, disks, network cards and reservations."""
    machines = machines_of_pool(plan, pool)
    own: dict[str, Any] = {
        "node_class": pool.name,
        "zones": list(pool.zones),
        **disk_args(wanted.volume(default_volume(machines))),
        "local_nvme": all(machine.local_ssd_gb for machine in machines),
        "efa_interfaces": machines[0].efa_interfaces if wanted.efa else 0,
    }
    if wanted.efa and machines[0].efa_first_card:
        own["efa_first_card"] = machines[0].efa_first_card
    if wanted.reservation is not None:
        own |= {f"reservation_{field}": value for field, value in wanted.reservation}
    return own


def _node_class(stack: EksStack, own: dict[str, Any], opts: pulumi.ResourceOptions) -> Ec2NodeClass | AutoNodeClass:
    network = stack.settings.network
    # An existing VPC's subnets do not have the tags to find them by.
    subnets = {"subnet_ids": None if network.existing_vpc is None else network.existing_private_subnets}
    if stack.settings.cluster.mode is EksMode.AUTO:
        args = arguments(AutoNodeClassArgs, own, subnets, stack.place, stack.plan)
        return AutoNodeClass(f"{own['node_class']}-class", args, opts)
    return Ec2NodeClass(f"{own['node_class']}-class", arguments(Ec2NodeClassArgs, own, subnets, stack.place, stack.plan), opts)


def gpu_node_pool_args(plan: Plan, pool: PoolPlan, wanted: EksPool, startup: list[NodeTaint], *, auto: bool = False) -> GpuNodePoolArgs:
    """Return the NodePool of one pool, with the parts specific to EKS: quiet hours, taints of starting drivers, and a label for EFA.

    In Auto Mode (`auto`) nodes drain before AWS terminates them.
    """
    args = node_pool_args(plan, pool, auto_node_class_ref(pool.name) if auto else ec2_node_class_ref(pool.name))
    args["quiet_hours"] = [{"schedule": each.schedule, "hours": each.hours} for each in wanted.quiet_hours]
    args["startup_taints"] = startup
    if auto:
        args["instance_labels"] = AUTO_MODE_INSTANCE
        args["expire_after_seconds"] = node_hours() * SECONDS_OF_AN_HOUR
        args["termination_grace_seconds"] = args.get("termination_grace_seconds") or DRAIN_HOURS * SECONDS_OF_AN_HOUR
    elif wanted.efa:
        args["node_labels"] = {**args["node_labels"], **dict([EFA_NODE_LABEL])}
    return args
