"""AWS IAM: policy documents and their length, roles and their trust policies.

Documents are pure: the same arguments give the same text.
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
"""Maximum characters of a managed policy. White space does not count.

Source: IAM user guide, "IAM and AWS STS quotas"; the quota cannot be raised.
"""

VERSION = "2012-10-17"

Conditions = Mapping[str, Mapping[str, str | Sequence[str]]]
"""Values by operator, such as StringEquals, and by key. If a key has several values, one must match."""


class Statement(TypedDict):
    """One permission, or with the effect Deny its opposite. Keys and values are IAM's."""

    Sid: NotRequired[str]
    Effect: str
    Principal: NotRequired[str | Mapping[str, str | Sequence[str]]]
    Action: str | Sequence[str]
    Resource: NotRequired[str | Sequence[str]]
    Condition: NotRequired[Conditions]


class PolicyDocument(TypedDict):
    """A policy document: permissions of an identity, permissions for a resource, or the principals that may assume a role."""

    Version: str
    Id: NotRequired[str]
    Statement: list[Statement]


def as_json(document: PolicyDocument) -> str:
    """Return the document without white space and with its keys in the order written, so that the text is always the same."""
    return json.dumps(document, separators=(",", ":"))


def counted_characters(document: PolicyDocument) -> int:
    """Return the number of characters that IAM counts: all but white space."""
    return len(re.sub(r"\s", "", as_json(document)))


@dataclass(frozen=True)
class GrantedRole:
    """A role and its attachments. Without them it has no permissions, so resources that use the role wait for them."""

    role: iam.Role
    grants: Sequence[pulumi.CustomResource]


def service_trust(service: str, *, tags_session: bool = False) -> str:
    """Return a trust policy for an AWS service, such as eks.amazonaws.com. With `tags_session` it may also set session tags."""
    action: str | list[str] = ["sts:AssumeRole", "sts:TagSession"] if tags_session else "sts:AssumeRole"
    return _document({"Effect": "Allow", "Principal": {"Service": service}, "Action": action})


def ec2_trust(partition: str) -> str:
    """Return a trust policy for EC2 instances. EC2 has a different name in China (IAM's service principals by partition)."""
    return service_trust("ec2.amazonaws.com.cn" if partition == "aws-cn" else "ec2.amazonaws.com")


def pod_trust(cluster_arn: str, namespace: str, service_account: str) -> str:
    """Return a trust policy for EKS Pod Identity that only admits one service account of one cluster.

    Without the conditions, anyone who may create an association in any cluster of the account could give the role to a pod. Pod Identity
    sets these tags by itself (EKS user guide, "Create IAM role with trust policy required by EKS Pod Identity").
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
    """Return the ARN of a role, which is known before the role exists."""
    return f"arn:{partition}:iam::{account}:role{iam_path or '/'}{name}"


@dataclass(frozen=True, kw_only=True)
class RoleShape:
    """A role's name, trust policy, AWS managed policies and other properties."""

    name: str
    description: str
    trust: str
    partition: str
    policies: Sequence[str]
    tags: dict[str, str]
    iam_path: str | None = None
    permissions_boundary: str | None = None


def granted_role(name: str, shape: RoleShape, parent: pulumi.Resource) -> GrantedRole:
    """Return a role with its policies. `name` is its Pulumi name and the prefix of its attachments' names."""
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
        # An attachment, not managed_policy_arns, which would remove policies that others attach.
        iam.RolePolicyAttachment(
            f"{name}-{policy.rpartition('/')[2]}", role=role.name, policy_arn=managed_policy(shape.partition, policy), opts=child
        )
        for policy in shape.policies
    ]
    return GrantedRole(role, grants)


@dataclass(frozen=True, kw_only=True)
class PodRoleShape:
    """A role of a controller's pods.

    `policies` are its policies, each with its name in IAM, by the prefix of their Pulumi names.
    """

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
    """Return a role with separate policies that one service account assumes through EKS Pod Identity. Pulumi names begin with `name`.

    Its grants include the association, because pods that start before it have no permissions.
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
