"""What Karpenter's controller may do with machines: launch, tag and end its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.iam_document import VERSION, Document, Statement
from components.karpenter.controller_scope import CLUSTER_NAME_TAG, NODE_CLAIM_TAG, NODE_POOL_TAG

if TYPE_CHECKING:
    from components.karpenter.controller_scope import ControllerScope

_MADE = ("fleet", "instance", "volume", "network-interface", "launch-template", "spot-instances-request")
"""What a launch makes, all of which is tagged while it is made."""

_LAUNCHES = ["ec2:RunInstances", "ec2:CreateFleet"]

_EXISTING = "aws:ResourceTag"
_NEW = "aws:RequestTag"


def node_lifecycle(scope: ControllerScope) -> Document:
    """The policy NodeLifecycle of Karpenter v1.14, statement by statement.

    Machines are launched only with the cluster's tags, only from launch templates that have them, and ended only where they have them.
    """
    return {"Version": VERSION, "Statement": [*_launching(scope), *_tagging(scope), _deletion(scope)]}


def _launching(scope: ControllerScope) -> list[Statement]:
    return [
        {
            "Sid": "AllowScopedEC2InstanceAccessActions",
            "Effect": "Allow",
            "Resource": [
                *scope.ownerless("image", "snapshot"),
                *scope.ec2("security-group", "subnet", "capacity-reservation", "placement-group"),
            ],
            "Action": _LAUNCHES,
        },
        {
            "Sid": "AllowScopedEC2LaunchTemplateAccessActions",
            "Effect": "Allow",
            "Resource": scope.ec2("launch-template"),
            "Action": _LAUNCHES,
            "Condition": {"StringEquals": scope.owned(_EXISTING), "StringLike": {f"{_EXISTING}/{NODE_POOL_TAG}": "*"}},
        },
        {
            "Sid": "AllowScopedEC2InstanceActionsWithTags",
            "Effect": "Allow",
            "Resource": scope.ec2(*_MADE),
            "Action": [*_LAUNCHES, "ec2:CreateLaunchTemplate"],
            "Condition": {
                "StringEquals": {**scope.owned(_NEW), **scope.named()},
                "StringLike": {f"{_NEW}/{NODE_POOL_TAG}": "*"},
            },
        },
    ]


def _tagging(scope: ControllerScope) -> list[Statement]:
    """Tags while something is made, and three tags on the cluster's own machines later, when their node is known."""
    return [
        {
            "Sid": "AllowScopedResourceCreationTagging",
            "Effect": "Allow",
            "Resource": scope.ec2(*_MADE),
            "Action": "ec2:CreateTags",
            "Condition": {
                "StringEquals": {
                    **scope.owned(_NEW),
                    **scope.named(),
                    "ec2:CreateAction": ["RunInstances", "CreateFleet", "CreateLaunchTemplate"],
                },
                "StringLike": {f"{_NEW}/{NODE_POOL_TAG}": "*"},
            },
        },
        {
            "Sid": "AllowScopedResourceTagging",
            "Effect": "Allow",
            "Resource": scope.ec2("instance"),
            "Action": "ec2:CreateTags",
            "Condition": {
                "StringEquals": scope.owned(_EXISTING),
                "StringLike": {f"{_EXISTING}/{NODE_POOL_TAG}": "*"},
                "StringEqualsIfExists": scope.named(),
                "ForAllValues:StringEquals": {"aws:TagKeys": [CLUSTER_NAME_TAG, NODE_CLAIM_TAG, "Name"]},
            },
        },
    ]


def _deletion(scope: ControllerScope) -> Statement:
    return {
        "Sid": "AllowScopedDeletion",
        "Effect": "Allow",
        "Resource": scope.ec2("instance", "launch-template"),
        "Action": ["ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"],
        "Condition": {"StringEquals": scope.owned(_EXISTING), "StringLike": {f"{_EXISTING}/{NODE_POOL_TAG}": "*"}},
    }
