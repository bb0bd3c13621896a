"""What EKS Auto Mode may do in the account: AWS's policies of the cluster's role, and one for tags of our own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi
from pulumi_aws import iam

from components.cloud_names import POLICY_NAME_CHARACTERS, fitted
from components.iam import VERSION, Document, Statement, as_json

if TYPE_CHECKING:
    from components.eks.cluster_args import ClusterShape

AUTO_MODE_POLICIES = ("AmazonEKSComputePolicy", "AmazonEKSBlockStoragePolicy", "AmazonEKSLoadBalancingPolicy", "AmazonEKSNetworkingPolicy")
"""Besides AmazonEKSClusterPolicy: machines, volumes, load balancers and network interfaces.

awsdocs/amazon-eks-user-guide, latest/ug/automode/automode-get-started-cli.adoc at 01385604, "Cluster IAM Role" (read 2026-11-25).
"""

_OF_THE_CLUSTER = {"aws:RequestTag/eks:eks-cluster-name": "${aws:PrincipalTag/eks:eks-cluster-name}"}
"""EKS takes the role with this tag of its session, so that one role makes nothing for another cluster."""


def tag_document() -> Document:
    """Lets Auto Mode set tags of ours on what it makes for NodeClasses: AWS's own policies allow a list of keys of EKS's.

    The statements `Compute` and `Networking` of AWS's example (auto-learn-iam.adoc at 1fe584bb, "Custom AWS tags for EKS Auto resources").
    Those for volumes of claims, load balancers and Shield are left out: nothing here tags these.
    """
    return {
        "Version": VERSION,
        "Statement": [
            _statement(
                "Compute",
                ["ec2:CreateFleet", "ec2:RunInstances", "ec2:CreateLaunchTemplate"],
                ["eks:kubernetes-node-class-name", "eks:kubernetes-node-pool-name"],
            ),
            _statement("Networking", ["ec2:CreateNetworkInterface"], ["eks:kubernetes-cni-node-name"]),
        ],
    }


def _statement(sid: str, actions: list[str], marks: list[str]) -> Statement:
    return {
        "Sid": sid,
        "Effect": "Allow",
        "Action": actions,
        "Resource": "*",
        "Condition": {"StringEquals": _OF_THE_CLUSTER, "StringLike": {f"aws:RequestTag/{mark}": "*" for mark in marks}},
    }


def own_tags(name: str, shape: ClusterShape, role: iam.Role, parent: pulumi.Resource) -> pulumi.CustomResource:
    """The policy for tags, attached to the cluster's role; returns the attachment."""
    child = pulumi.ResourceOptions(parent=parent)
    policy = iam.Policy(
        f"{name}-own-tags-policy",
        name=fitted(f"{shape.cluster}-auto-mode-tags", POLICY_NAME_CHARACTERS),
        path=shape.iam_path,
        description=f"Tags of nodes that Auto Mode makes for {shape.cluster}",
        policy=as_json(tag_document()),
        tags=shape.tags,
        opts=child,
    )
    return iam.RolePolicyAttachment(f"{name}-own-tags-attachment", role=role.name, policy_arn=policy.arn, opts=child)
