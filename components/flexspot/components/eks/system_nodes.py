"""The nodes of the controllers: a managed node group, so that there is somewhere for Karpenter to run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi
from pulumi_aws import ec2, eks

from flexspot.components.cloud_names import ROLE_NAME_LENGTH, fitted
from flexspot.components.eks.cluster_args import EksClusterArgs, EksSystemPoolArgs, ami_family, named, system_pool_of
from flexspot.components.iam import RoleShape, ec2_trust, granted_role

if TYPE_CHECKING:
    from collections.abc import Sequence

SYSTEM_LABEL = "flexspot.dev/system"
"""On the system nodes, with the value true: what must run there selects it."""

CRITICAL_ADDONS = "CriticalAddonsOnly"
"""Key of the system nodes' taint. Most add-ons tolerate it by themselves; everything else that belongs here says so."""

NODE_POLICIES = ("AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly", "AmazonSSMManagedInstanceCore")
"""To join, to pull images, to be reached without SSH. Not AmazonEKS_CNI_Policy: vpc-cni has it by its own identity, and every pod on the
host's network has the node's (EKS user guide, "Amazon EKS node IAM role")."""

AMI_TYPES = {"al2023": "AL2023_x86_64_STANDARD", "bottlerocket": "BOTTLEROCKET_x86_64"}
"""By the family of the alias; the variants without GPU drivers."""

_UNAVAILABLE_PERCENT = 33


def role_name(cluster: str, part: str) -> str:
    """The name of a role of the cluster, fitted into the 64 characters that IAM takes."""
    return fitted(f"{cluster}-{part}", ROLE_NAME_LENGTH)


def system_node_group(
    name: str,
    args: EksClusterArgs,
    cluster: pulumi.Input[str],
    parent: pulumi.Resource,
    after: Sequence[pulumi.Resource],
) -> eks.NodeGroup:
    """The node group, after the add-ons without which its nodes would not become ready.

    EKS makes the access entry of its role by itself. Karpenter's nodes have another role, for which somebody else makes one.
    """
    pool = system_pool_of(args)
    granted = granted_role(
        f"{name}-system-role",
        RoleShape(
            name=role_name(args["cluster"], "system"),
            description="Nodes of the cluster's controllers",
            trust=ec2_trust(args["partition"]),
            partition=args["partition"],
            policies=NODE_POLICIES,
            tags=args["tags"],
            iam_path=args["iam_path"],
            permissions_boundary=args["permissions_boundary"],
        ),
        parent,
    )
    template = _launch_template(name, args, pool, parent)
    return eks.NodeGroup(
        f"{name}-system-nodes",
        cluster_name=cluster,
        # A prefix: whatever replaces the group then makes the new one before the old one goes.
        node_group_name_prefix="system-",
        node_role_arn=granted.role.arn,
        subnet_ids=args["subnet_ids"],
        # The control plane's version, so that an upgrade takes the nodes with it.
        version=args["version"],
        release_version=pool["release"],
        ami_type=AMI_TYPES[ami_family(args)],
        capacity_type="ON_DEMAND",
        scaling_config=eks.NodeGroupScalingConfigArgs(
            desired_size=pool["min_nodes"], min_size=pool["min_nodes"], max_size=pool["max_nodes"]
        ),
        launch_template=eks.NodeGroupLaunchTemplateArgs(id=template.id, version=template.latest_version.apply(str)),
        labels={SYSTEM_LABEL: "true", **args["owner_labels"]},
        taints=[eks.NodeGroupTaintArgs(key=CRITICAL_ADDONS, value="true", effect="NO_SCHEDULE")],
        # Of two nodes that is one, because EKS rounds up.
        update_config=eks.NodeGroupUpdateConfigArgs(max_unavailable_percentage=_UNAVAILABLE_PERCENT),
        node_repair_config=eks.NodeGroupNodeRepairConfigArgs(enabled=pool["node_repair"]),
        tags=named(args, "system"),
        # Nothing scales the group, so its size is said here: EKS refuses a least size above the one that it has.
        opts=pulumi.ResourceOptions(parent=parent, depends_on=[*after, *granted.grants]),
    )


def _launch_template(name: str, args: EksClusterArgs, pool: EksSystemPoolArgs, parent: pulumi.Resource) -> ec2.LaunchTemplate:
    """What node groups cannot say themselves. It names neither AMI nor security group: EKS then adds its own of both."""
    tags = named(args, "system")
    return ec2.LaunchTemplate(
        f"{name}-system-template",
        name=f"{args['cluster']}-system",
        description="Nodes of the cluster's controllers",
        update_default_version=True,
        # Here, not in the group: another machine then rolls the nodes and does not replace the group.
        instance_type=pool["machine"],
        metadata_options=ec2.LaunchTemplateMetadataOptionsArgs(
            http_endpoint="enabled",
            http_tokens="required",
            # One hop ends at the node: a pod of the pod network cannot take the node's credentials.
            http_put_response_hop_limit=1,
        ),
        block_device_mappings=_disks(args, pool),
        tag_specifications=[
            ec2.LaunchTemplateTagSpecificationArgs(resource_type=kind, tags=tags) for kind in ("instance", "volume", "network-interface")
        ],
        tags=tags,
        opts=pulumi.ResourceOptions(parent=parent),
    )


def _disks(args: EksClusterArgs, pool: EksSystemPoolArgs) -> list[ec2.LaunchTemplateBlockDeviceMappingArgs]:
    """Encrypted disks. Bottlerocket has a small one for itself and a second one for images and pods; AL2023 has one."""
    disk = _disk("/dev/xvda" if ami_family(args) == "al2023" else "/dev/xvdb", pool["disk_gib"])
    return [disk] if ami_family(args) == "al2023" else [_disk("/dev/xvda", None), disk]


def _disk(device: str, gib: int | None) -> ec2.LaunchTemplateBlockDeviceMappingArgs:
    return ec2.LaunchTemplateBlockDeviceMappingArgs(
        device_name=device,
        ebs=ec2.LaunchTemplateBlockDeviceMappingEbsArgs(volume_type="gp3", volume_size=gib, encrypted="true", delete_on_termination="true"),
    )
