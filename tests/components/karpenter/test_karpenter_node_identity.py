"""KarpenterNodeIdentity: the role of the nodes, and their access entry."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pulumi
import pytest
from karpenter_args import ACCOUNT, ATTACHMENT, ROLE, TAGS, declared

from flexspot.components.karpenter.controller import KarpenterNodeIdentity, KarpenterNodeIdentityArgs

if TYPE_CHECKING:
    from component_types import Refusal
    from karpenter_args import Aws

ACCESS_ENTRY = "aws:eks/accessEntry:AccessEntry"

CNI = "AmazonEKS_CNI_Policy"
UPSTREAM = {"AmazonEKSWorkerNodePolicy", CNI, "AmazonEC2ContainerRegistryPullOnly", "AmazonSSMManagedInstanceCore"}
"""Policies of nodes in Karpenter v1.14's own template."""


def args(**changes: Any) -> KarpenterNodeIdentityArgs:
    # pyrefly: ignore[bad-return] -- some arguments are invalid on purpose
    return {"cluster": "training", "cluster_name": pulumi.Output.from_input("training"), "tags": TAGS} | changes


def registered(**changes: Any) -> Aws:
    return declared(lambda: KarpenterNodeIdentity("nodes", args(**changes)))[0]


@pytest.mark.parametrize("has_cni_policy,policies", [(False, UPSTREAM - {CNI}), (True, UPSTREAM)])
def test_nodes_have_a_role_with_the_policies_of_karpenters_template_and_the_cnis_policy_on_request(
    has_cni_policy: object, policies: set[str]
) -> None:
    aws = registered(cni_policy=has_cni_policy)

    [role] = aws.of(ROLE).values()
    assert (role["name"], role["tags"]) == ("KarpenterNodeRole-training", TAGS)
    assert {(each["role"], each["policyArn"]) for each in aws.of(ATTACHMENT).values()} == {
        ("KarpenterNodeRole-training", f"arn:aws:iam::aws:policy/{policy}") for policy in policies
    }


@pytest.mark.parametrize(
    "partition,service", [("aws", "ec2.amazonaws.com"), ("aws-us-gov", "ec2.amazonaws.com"), ("aws-cn", "ec2.amazonaws.com.cn")]
)
def test_only_ec2_can_assume_the_role_under_its_name_in_the_partition(partition: str, service: str) -> None:
    aws = registered(partition=partition)

    [role] = aws.of(ROLE).values()
    [statement] = json.loads(role["assumeRolePolicy"])["Statement"]
    assert statement["Principal"] == {"Service": service}
    assert statement["Action"] in ("sts:AssumeRole", ["sts:AssumeRole"])
    assert {each["policyArn"].split(":")[1] for each in aws.of(ATTACHMENT).values()} == {partition}


def test_nodes_join_by_an_access_entry_without_groups_or_user_which_eks_would_reject() -> None:
    assert registered().of(ACCESS_ENTRY) == {
        "nodes-access": {
            "clusterName": "training",
            "principalArn": f"arn:aws:iam::{ACCOUNT}:role/KarpenterNodeRole-training",
            "type": "EC2_LINUX",
            "tags": TAGS,
        }
    }


def test_its_outputs_are_the_roles_name_and_arn() -> None:
    _, outputs = declared(lambda: KarpenterNodeIdentity("nodes", args()))

    assert outputs == {"role_name": "KarpenterNodeRole-training", "role_arn": f"arn:aws:iam::{ACCOUNT}:role/KarpenterNodeRole-training"}


@pytest.mark.parametrize(
    "change,problem",
    [
        ({"cluster": "prod.eu"}, "cluster (is 'prod.eu'): must be"),
        ({"partition": "gcp"}, "partition (is 'gcp'): must be one of"),
    ],
)
def test_arguments_that_aws_would_reject_are_refused_before_anything_is_registered(
    change: dict[str, Any], problem: str, refusal: Refusal
) -> None:
    assert problem in refusal(KarpenterNodeIdentity, "nodes", args(**change))
