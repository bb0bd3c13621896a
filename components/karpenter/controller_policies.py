"""The managed policies of Karpenter's controller, as documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.iam_document import MANAGED_POLICY_CHARACTERS, VERSION, Document, Statement, counted_characters
from components.karpenter.controller_scope import NODE_CLASS_TAG
from components.karpenter.node_lifecycle_policy import node_lifecycle

if TYPE_CHECKING:
    from components.karpenter.controller_scope import ControllerScope

_EXISTING = "aws:ResourceTag"
_NEW = "aws:RequestTag"

_DESCRIBED = (
    "CapacityReservations",
    "Images",
    "Instances",
    "InstanceStatus",
    "InstanceTypeOfferings",
    "InstanceTypes",
    "LaunchTemplates",
    "PlacementGroups",
    "SecurityGroups",
    "SpotPriceHistory",
    "Subnets",
)


def controller_policies(scope: ControllerScope) -> dict[str, Document]:
    """Karpenter v1.14's six policies for one cluster, by the part of their names that says what they are for.

    Six, as upstream has them: in one document they are over what IAM takes as soon as the cluster's name has 18 characters or so.
    Source: website/content/en/v1.14/getting-started/getting-started-with-karpenter/cloudformation.yaml of aws/karpenter-provider-aws.

    Raises ValueError for names so long that IAM would refuse a document.
    """
    documents = {
        "NodeLifecycle": node_lifecycle(scope),
        "IAMIntegration": _document(*_instance_profiles(scope)),
        "EKSIntegration": _document(_allow("AllowAPIServerEndpointDiscovery", "eks:DescribeCluster", scope.cluster_arn)),
        "Interruption": _document(
            _allow("AllowInterruptionQueueActions", ["sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"], scope.queue_arn)
        ),
        "ZonalShift": _document(
            {
                **_allow("AllowZonalShiftStatusReadOnly", ["arc-zonal-shift:GetManagedResource"], "*"),
                "Condition": {"StringEquals": {"arc-zonal-shift:ResourceIdentifier": scope.cluster_arn}},
            }
        ),
        "ResourceDiscovery": _document(*_discovery(scope)),
    }
    for policy, document in documents.items():
        characters = counted_characters(document)
        if characters > MANAGED_POLICY_CHARACTERS:
            raise ValueError(
                f"policy {policy} of Karpenter's controller has {characters:,} characters without white space; IAM takes at most "
                f"{MANAGED_POLICY_CHARACTERS:,}; shorten the cluster's name, now {len(scope.cluster)}, which stands in it again and again"
            )
    return documents


def _instance_profiles(scope: ControllerScope) -> list[Statement]:
    """Instance profiles of the cluster's own node classes, and the one role that may be put into them."""
    profiles = scope.instance_profiles
    existing = {**scope.owned(_EXISTING), **scope.regional(_EXISTING)}
    new = {**scope.owned(_NEW), **scope.named(), **scope.regional(_NEW)}
    of_a_class = {tags: {f"{tags}/{NODE_CLASS_TAG}": "*"} for tags in (_EXISTING, _NEW)}
    return [
        {
            **_allow("AllowPassingInstanceRole", "iam:PassRole", scope.node_role_arn),
            "Condition": {"StringEquals": {"iam:PassedToService": ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"]}},
        },
        {
            **_allow("AllowScopedInstanceProfileCreationActions", ["iam:CreateInstanceProfile"], profiles),
            "Condition": {"StringEquals": new, "StringLike": of_a_class[_NEW]},
        },
        {
            **_allow("AllowScopedInstanceProfileTagActions", ["iam:TagInstanceProfile"], profiles),
            "Condition": {"StringEquals": {**existing, **new}, "StringLike": {**of_a_class[_EXISTING], **of_a_class[_NEW]}},
        },
        {
            **_allow(
                "AllowScopedInstanceProfileActions",
                ["iam:AddRoleToInstanceProfile", "iam:RemoveRoleFromInstanceProfile", "iam:DeleteInstanceProfile"],
                profiles,
            ),
            "Condition": {"StringEquals": existing, "StringLike": of_a_class[_EXISTING]},
        },
    ]


def _discovery(scope: ControllerScope) -> list[Statement]:
    """Reading what may be launched and at what price; nothing here changes anything."""
    return [
        {
            **_allow("AllowRegionalReadActions", [f"ec2:Describe{what}" for what in _DESCRIBED], "*"),
            "Condition": {"StringEquals": {"aws:RequestedRegion": scope.region}},
        },
        _allow("AllowSSMReadActions", "ssm:GetParameter", f"arn:{scope.partition}:ssm:{scope.region}::parameter/aws/service/*"),
        _allow("AllowPricingReadActions", "pricing:GetProducts", "*"),
        _allow("AllowUnscopedInstanceProfileListAction", "iam:ListInstanceProfiles", "*"),
        _allow("AllowInstanceProfileReadActions", "iam:GetInstanceProfile", scope.instance_profiles),
    ]


def _allow(sid: str, action: str | list[str], resource: str) -> Statement:
    return {"Sid": sid, "Effect": "Allow", "Resource": resource, "Action": action}


def _document(*statements: Statement) -> Document:
    return {"Version": VERSION, "Statement": [*statements]}
