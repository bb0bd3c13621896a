"""The nodes of the controllers: a managed node group, on which Karpenter can run."""

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
"""Label of the system nodes, with the value true. Pods that must run there select it."""

CRITICAL_ADDONS = "CriticalAddonsOnly"
"""Key of the system nodes' taint. Most add-ons tolerate it by default. Everything else that runs here tolerates it explicitly."""

NODE_POLICIES = ("AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly", "AmazonSSMManagedInstanceCore")
"""Policies of the nodes: to join the cluster, to pull images, and to be reached without SSH.

AmazonEKS_CNI_Policy is not among them: vpc-cni has it by a separate identity, and every pod on the host's network has the node's
permissions (EKS user guide, "Amazon EKS node IAM role").
"""

AMI_TYPES = {"al2023": "AL2023_x86_64_STANDARD", "bottlerocket": "BOTTLEROCKET_x86_64"}
"""AMI type by the family of the alias. All are variants without GPU drivers."""

_UNAVAILABLE_PERCENT = 33


def role_name(cluster: str, part: str) -> str:
    """Return the name of one of the cluster's roles, fitted into IAM's limit of 64 characters."""
    return fitted(f"{cluster}-{part}", ROLE_NAME_LENGTH)


def system_node_group(
    name: str,
    args: EksClusterArgs,
    cluster: pulumi.Input[str],
    parent: pulumi.Resource,
    after: Sequence[pulumi.Resource],
) -> eks.NodeGroup:
    """Return the node group, which waits for the add-ons that its nodes need to become ready.

    EKS creates the access entry of its role by itself. Karpenter's nodes have another role, whose entry is created elsewhere.
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
        # A prefix, so that a replacement creates the new group before it deletes the old one.
        node_group_name_prefix="system-",
        node_role_arn=granted.role.arn,
        subnet_ids=args["subnet_ids"],
        # The control plane's version, so that an upgrade includes the nodes.
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
        # One of two nodes, because EKS rounds up.
        update_config=eks.NodeGroupUpdateConfigArgs(max_unavailable_percentage=_UNAVAILABLE_PERCENT),
        node_repair_config=eks.NodeGroupNodeRepairConfigArgs(enabled=pool["node_repair"]),
        tags=named(args, "system"),
        # Nothing scales the group, so its size is set here: EKS rejects a minimum size above the current one.
        opts=pulumi.ResourceOptions(parent=parent, depends_on=[*after, *granted.grants]),
    )


def _launch_template(name: str, args: EksClusterArgs, pool: EksSystemPoolArgs, parent: pulumi.Resource) -> ec2.LaunchTemplate:
    """Return the properties that node groups do not have. It names neither AMI nor security group, so EKS uses its own."""
    tags = named(args, "system")
    return ec2.LaunchTemplate(
        f"{name}-system-template",
        name=f"{args['cluster']}-system",
        description="Nodes of the cluster's controllers",
        update_default_version=True,
        # Here, not in the group, so that another machine replaces the nodes and not the group.
        instance_type=pool["machine"],
        metadata_options=ec2.LaunchTemplateMetadataOptionsArgs(
            http_endpoint="enabled",
            http_tokens="required",
            # One hop ends at the node, so pods on the pod network cannot get the node's credentials.
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
    """Return encrypted disks. Bottlerocket has a small one for itself and a second one for images and pods. AL2023 has one."""
    disk = _disk("/dev/xvda" if ami_family(args) == "al2023" else "/dev/xvdb", pool["disk_gib"])
    return [disk] if ami_family(args) == "al2023" else [_disk("/dev/xvda", None), disk]


def _disk(device: str, gib: int | None) -> ec2.LaunchTemplateBlockDeviceMappingArgs:
    return ec2.LaunchTemplateBlockDeviceMappingArgs(
        device_name=device,
        ebs=ec2.LaunchTemplateBlockDeviceMappingEbsArgs(volume_type="gp3", volume_size=gib, encrypted="true", delete_on_termination="true"),
    )
