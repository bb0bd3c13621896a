"""The managed policies of Karpenter's controller, as documents, and the scope of its permissions."""

from __future__ import annotations

from dataclasses import dataclass

from flexspot.components.cloud_names import cluster_arn
from flexspot.components.iam import MANAGED_POLICY_CHARACTERS, VERSION, PolicyDocument, Statement, counted_characters, role_arn

NODE_POOL_TAG = "karpenter.sh/nodepool"
NODE_CLAIM_TAG = "karpenter.sh/nodeclaim"
NODE_CLASS_TAG = "karpenter.k8s.aws/ec2nodeclass"
CLUSTER_NAME_TAG = "eks:eks-cluster-name"
REGION_TAG = "topology.kubernetes.io/region"
"""Tags that Karpenter sets on resources it creates. It may change only resources that have them."""


@dataclass(frozen=True)
class ControllerScope:
    """The scope of the controller's permissions: one cluster in one region, the role of its nodes and its queue. Names are complete."""

    cluster: str
    account: str
    partition: str
    region: str
    node_role_name: str
    queue_name: str
    iam_path: str | None = None

    @property
    def cluster_arn(self) -> str:
        """The cluster's ARN."""
        return cluster_arn(self.partition, self.region, self.account, self.cluster)

    @property
    def node_role_arn(self) -> str:
        """The ARN of the role of the nodes, with the path of the stack's roles."""
        return role_arn(self.partition, self.account, self.node_role_name, self.iam_path)

    @property
    def queue_arn(self) -> str:
        """The interruption queue's ARN."""
        return f"arn:{self.partition}:sqs:{self.region}:{self.account}:{self.queue_name}"

    @property
    def instance_profiles(self) -> str:
        """The ARNs of the account's instance profiles."""
        return f"arn:{self.partition}:iam::{self.account}:instance-profile/*"

    def ec2(self, *kinds: str) -> list[str]:
        """Return the ARNs of EC2 resources of some kinds in the region, including those shared from another account."""
        return [f"arn:{self.partition}:ec2:{self.region}:*:{kind}/*" for kind in kinds]

    def ownerless(self, *kinds: str) -> list[str]:
        """Return the ARNs of EC2 resources whose ARN has no account: images and snapshots."""
        return [f"arn:{self.partition}:ec2:{self.region}::{kind}/*" for kind in kinds]

    def owned(self, tags: str) -> dict[str, str]:
        """Return the condition that the cluster owns a resource: aws:ResourceTag if it exists, aws:RequestTag while it is created."""
        return {f"{tags}/kubernetes.io/cluster/{self.cluster}": "owned"}

    def named(self) -> dict[str, str]:
        """Return the condition that a resource being created has the cluster's name, under the key that EKS itself uses."""
        return {f"aws:RequestTag/{CLUSTER_NAME_TAG}": self.cluster}

    def regional(self, tags: str) -> dict[str, str]:
        """Return the condition that a resource belongs to this region, which instance profiles themselves do not have."""
        return {f"{tags}/{REGION_TAG}": self.region}


_LAUNCHED = ("fleet", "instance", "volume", "network-interface", "launch-template", "spot-instances-request")
"""Kinds of resources that a launch creates. All are tagged at creation."""

_LAUNCHES = ["ec2:RunInstances", "ec2:CreateFleet"]

_EXISTING = "aws:ResourceTag"
_NEW = "aws:RequestTag"


def node_lifecycle(scope: ControllerScope) -> PolicyDocument:
    """Return the policy NodeLifecycle of Karpenter v1.14, statement by statement.

    Instances are launched only with the cluster's tags and only from launch templates that have them. Only instances with them are
    terminated.
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
            "Resource": scope.ec2(*_LAUNCHED),
            "Action": [*_LAUNCHES, "ec2:CreateLaunchTemplate"],
            "Condition": {
                "StringEquals": {**scope.owned(_NEW), **scope.named()},
                "StringLike": {f"{_NEW}/{NODE_POOL_TAG}": "*"},
            },
        },
    ]


def _tagging(scope: ControllerScope) -> list[Statement]:
    """Allow tags at creation, and three tags on the cluster's own instances later, when their node is known."""
    return [
        {
            "Sid": "AllowScopedResourceCreationTagging",
            "Effect": "Allow",
            "Resource": scope.ec2(*_LAUNCHED),
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


SPOT_ROLE = "SpotRole"
"""Name of the policy that upstream does not have."""

_SPOT_SERVICE = "spot.amazonaws.com"


def _spot_role(scope: ControllerScope) -> Statement:
    """Allow the launch of the first Spot instance to create the account's role for Spot. EC2 creates it if the caller may create it.

    docs/decisions/0024-ec2-makes-the-role-for-spot.md explains why nothing else creates it.
    """
    role = f"arn:{scope.partition}:iam::{scope.account}:role/aws-service-role/{_SPOT_SERVICE}/AWSServiceRoleForEC2Spot"
    return {
        **_allow("AllowCreationOfSpotServiceLinkedRole", "iam:CreateServiceLinkedRole", role),
        "Condition": {"StringEquals": {"iam:AWSServiceName": _SPOT_SERVICE}},
    }


def controller_policies(scope: ControllerScope) -> dict[str, PolicyDocument]:
    """Return Karpenter v1.14's six policies for one cluster, and a seventh, by the part of their names that says what they are for.

    They are separate documents, as upstream: a single document exceeds IAM's limit once the cluster's name has about 18 characters.
    Source: website/content/en/v1.14/getting-started/getting-started-with-karpenter/cloudformation.yaml of aws/karpenter-provider-aws.

    Raises ValueError for names so long that IAM would reject a document.
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
        SPOT_ROLE: _document(_spot_role(scope)),
    }
    for policy, document in documents.items():
        characters = counted_characters(document)
        if characters > MANAGED_POLICY_CHARACTERS:
            raise ValueError(
                f"policy {policy} of Karpenter's controller has {characters:,} characters without white space; IAM accepts at most "
                f"{MANAGED_POLICY_CHARACTERS:,}; shorten the cluster's name ({len(scope.cluster)} characters), which the policy repeats"
            )
    return documents


def _instance_profiles(scope: ControllerScope) -> list[Statement]:
    """Allow instance profiles of the cluster's own node classes, with no role but the nodes'."""
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
    """Allow reading available machines and their prices. Nothing here changes anything."""
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


def _document(*statements: Statement) -> PolicyDocument:
    return {"Version": VERSION, "Statement": [*statements]}
