"""AWS IAM: policy documents and how long they may be, roles and who may assume them.

The documents are pure: the same text for the same arguments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

import pulumi
from pulumi_aws import eks, iam

from flexspot.components.cloud_names import managed_policy

MANAGED_POLICY_CHARACTERS = 6144
"""The most that a managed policy may have; white space does not count.

Source: IAM user guide, "IAM and AWS STS quotas"; the quota cannot be raised.
"""

VERSION = "2012-10-17"

Conditions = Mapping[str, Mapping[str, str | Sequence[str]]]
"""By operator, such as StringEquals, and by key; of several values of a key one must match."""


class Statement(TypedDict):
    """One permission, or with the effect Deny the opposite; keys and values are IAM's own."""

    Sid: NotRequired[str]
    Effect: str
    Principal: NotRequired[str | Mapping[str, str | Sequence[str]]]
    Action: str | Sequence[str]
    Resource: NotRequired[str | Sequence[str]]
    Condition: NotRequired[Conditions]


class PolicyDocument(TypedDict):
    """A policy document: what an identity may do, what may be done with a resource, or who may take a role."""

    Version: str
    Id: NotRequired[str]
    Statement: list[Statement]


def as_json(document: PolicyDocument) -> str:
    """The document without white space, its keys in the order in which they were written: the same text every time."""
    return json.dumps(document, separators=(",", ":"))


def counted_characters(document: PolicyDocument) -> int:
    """How many characters IAM counts: all but white space."""
    return len(re.sub(r"\s", "", as_json(document)))


@dataclass(frozen=True)
class GrantedRole:
    """A role and the attachments without which it may do nothing: what uses the role waits for them."""

    role: iam.Role
    grants: Sequence[pulumi.CustomResource]


def service_trust(service: str, *, tags_session: bool = False) -> str:
    """A trust policy for a service of AWS, such as eks.amazonaws.com, which may set tags of its session where policies ask for them."""
    action: str | list[str] = ["sts:AssumeRole", "sts:TagSession"] if tags_session else "sts:AssumeRole"
    return _document({"Effect": "Allow", "Principal": {"Service": service}, "Action": action})


def ec2_trust(partition: str) -> str:
    """A trust policy for machines. In China EC2 has a name of its own (IAM's service principals by partition)."""
    return service_trust("ec2.amazonaws.com.cn" if partition == "aws-cn" else "ec2.amazonaws.com")


def pod_trust(cluster_arn: str, namespace: str, service_account: str) -> str:
    """A trust policy for EKS Pod Identity that holds for one service account of one cluster.

    Without the conditions, whoever may make an association in any cluster of the account could hand the role to a pod of theirs. The tags
    are those that Pod Identity sets by itself (EKS user guide, "Create IAM role with trust policy required by EKS Pod Identity").
    """
    return _document(
        {
            "Effect": "Allow",
            "Principal": {"Service": "pods.eks.amazonaws.com"},
            "Action": ["sts:AssumeRole", "sts:TagSession"],
            "Condition": {
                "StringEquals": {
                    "aws:RequestTag/eks-cluster-arn": cluster_arn,
                    "aws:RequestTag/kubernetes-namespace": namespace,
                    "aws:RequestTag/kubernetes-service-account": service_account,
                }
            },
        }
    )


def _document(statement: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]}, separators=(",", ":"))


def role_arn(partition: str, account: str, name: str, iam_path: str | None = None) -> str:
    """The ARN of a role, which is known before the role is there."""
    return f"arn:{partition}:iam::{account}:role{iam_path or '/'}{name}"


@dataclass(frozen=True, kw_only=True)
class RoleShape:
    """What a role is called, who may assume it, and which of AWS's own policies it has."""

    name: str
    description: str
    trust: str
    partition: str
    policies: Sequence[str]
    tags: dict[str, str]
    iam_path: str | None = None
    permissions_boundary: str | None = None


def granted_role(name: str, shape: RoleShape, parent: pulumi.Resource) -> GrantedRole:
    """A role with its policies; `name` is its Pulumi name, and the attachments' begin with it."""
    child = pulumi.ResourceOptions(parent=parent)
    role = iam.Role(
        name,
        name=shape.name,
        path=shape.iam_path,
        permissions_boundary=shape.permissions_boundary,
        description=shape.description,
        assume_role_policy=shape.trust,
        tags=shape.tags,
        opts=child,
    )
    grants: list[pulumi.CustomResource] = [
        # An attachment, not managed_policy_arns: that would take away what somebody else attaches.
        iam.RolePolicyAttachment(
            f"{name}-{policy.rpartition('/')[2]}", role=role.name, policy_arn=managed_policy(shape.partition, policy), opts=child
        )
        for policy in shape.policies
    ]
    return GrantedRole(role, grants)


@dataclass(frozen=True, kw_only=True)
class PodRoleShape:
    """A role of a controller's pods: who they are, and its policies by the beginning of their Pulumi names, each with its name in IAM."""

    name: str
    description: str
    cluster_arn: str
    cluster_name: pulumi.Input[str]
    region: str
    namespace: str
    service_account: str
    policies: Mapping[str, tuple[str, PolicyDocument]]
    tags: dict[str, str]
    iam_path: str | None = None
    permissions_boundary: str | None = None


def pod_role(name: str, shape: PodRoleShape, parent: pulumi.Resource) -> GrantedRole:
    """A role with policies of its own that one service account takes through EKS Pod Identity; Pulumi names begin with `name`.

    Among its grants is the association: what runs before it could do nothing.
    """
    child = pulumi.ResourceOptions(parent=parent)
    role = iam.Role(
        f"{name}-role",
        name=shape.name,
        path=shape.iam_path,
        permissions_boundary=shape.permissions_boundary,
        description=shape.description,
        assume_role_policy=pod_trust(shape.cluster_arn, shape.namespace, shape.service_account),
        tags=shape.tags,
        opts=child,
    )
    grants: list[pulumi.CustomResource] = []
    for logical, (called, document) in shape.policies.items():
        text = as_json(document)
        policy = iam.Policy(f"{logical}-policy", name=called, path=shape.iam_path, policy=text, tags=shape.tags, opts=child)
        grants.append(iam.RolePolicyAttachment(f"{logical}-attachment", role=role.name, policy_arn=policy.arn, opts=child))
    grants.append(
        eks.PodIdentityAssociation(
            f"{name}-association",
            cluster_name=shape.cluster_name,
            region=shape.region,
            namespace=shape.namespace,
            service_account=shape.service_account,
            role_arn=role.arn,
            tags=shape.tags,
            opts=child,
        )
    )
    return GrantedRole(role, grants)
