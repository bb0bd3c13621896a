"""KarpenterControllerIdentity: a role with the seven policies, only for the controller's pods."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pulumi
import pytest
from karpenter_args import ACCOUNT, ATTACHMENT, POLICY, REGION, ROLE, TAGS, declared, scope

from flexspot.components.cloud_names import node_role_name, queue_name
from flexspot.components.karpenter.controller import KarpenterControllerIdentity, KarpenterControllerIdentityArgs
from flexspot.components.karpenter.controller_policies import controller_policies

if TYPE_CHECKING:
    from component_types import Refusal
    from karpenter_args import Aws

ASSOCIATION = "aws:eks/podIdentityAssociation:PodIdentityAssociation"

KINDS = {"node-lifecycle", "iam-integration", "eks-integration", "interruption", "zonal-shift", "resource-discovery", "spot-role"}


def args(**changes: Any) -> KarpenterControllerIdentityArgs:
    cluster = changes.get("cluster", "training")
    # pyrefly: ignore[bad-return] -- some arguments are invalid on purpose
    return {
        "cluster": cluster,
        "cluster_name": pulumi.Output.from_input(cluster),
        "account": ACCOUNT,
        "region": REGION,
        "node_role_name": node_role_name(cluster),
        "queue_name": queue_name(cluster),
        "tags": TAGS,
    } | changes


def registered(**changes: Any) -> Aws:
    return declared(lambda: KarpenterControllerIdentity("karpenter", args(**changes)))[0]


def test_the_role_has_the_seven_policies_each_by_a_separate_attachment() -> None:
    aws = registered()

    documents = {inputs["name"]: json.loads(inputs["policy"]) for inputs in aws.of(POLICY).values()}
    assert documents == {
        f"KarpenterController{policy}Policy-training": document for policy, document in controller_policies(scope()).items()
    }
    assert set(aws.of(POLICY)) == {f"karpenter-{kind}-policy" for kind in KINDS}
    assert {name: (inputs["role"], inputs["policyArn"]) for name, inputs in aws.of(ATTACHMENT).items()} == {
        f"karpenter-{name}-attachment": ("KarpenterControllerRole-training", f"arn:aws:iam::{ACCOUNT}:policy/{policy['name']}")
        for kind in KINDS
        for name, policy in [(kind, aws.of(POLICY)[f"karpenter-{kind}-policy"])]
    }


def test_pods_of_the_controllers_service_account_are_bound_to_the_role() -> None:
    aws = registered()

    assert aws.of(ASSOCIATION) == {
        "karpenter-association": {
            "clusterName": "training",
            "region": REGION,
            "namespace": "kube-system",
            "serviceAccount": "karpenter",
            "roleArn": f"arn:aws:iam::{ACCOUNT}:role/KarpenterControllerRole-training",
            "tags": TAGS,
        }
    }


def test_only_pods_of_this_cluster_namespace_and_service_account_can_assume_the_role() -> None:
    [trust] = json.loads(registered().of(ROLE)["karpenter-role"]["assumeRolePolicy"])["Statement"]

    assert trust == {
        "Effect": "Allow",
        "Principal": {"Service": "pods.eks.amazonaws.com"},
        "Action": ["sts:AssumeRole", "sts:TagSession"],
        "Condition": {
            "StringEquals": {
                "aws:RequestTag/eks-cluster-arn": f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/training",
                "aws:RequestTag/kubernetes-namespace": "kube-system",
                "aws:RequestTag/kubernetes-service-account": "karpenter",
            }
        },
    }


def test_namespace_service_account_and_partition_can_be_set() -> None:
    changes = {"namespace": "karpenter", "service_account": "controller", "partition": "aws-us-gov", "region": "us-gov-west-1"}

    aws = registered(**changes)

    association = aws.of(ASSOCIATION)["karpenter-association"]
    assert (association["namespace"], association["serviceAccount"]) == ("karpenter", "controller")
    trust = aws.of(ROLE)["karpenter-role"]["assumeRolePolicy"]
    assert f"arn:aws-us-gov:eks:us-gov-west-1:{ACCOUNT}:cluster/training" in trust
    assert all('"arn:aws:' not in inputs["policy"] for inputs in aws.of(POLICY).values())


def test_its_output_is_the_roles_arn() -> None:
    _, outputs = declared(lambda: KarpenterControllerIdentity("karpenter", args()))

    assert outputs == {"role_arn": f"arn:aws:iam::{ACCOUNT}:role/KarpenterControllerRole-training"}


@pytest.mark.parametrize(
    "change,problem",
    [
        ({"cluster": "-prod"}, "cluster (is '-prod'): must be"),
        ({"region": "cn-north-1"}, "partition (is 'aws'): region cn-north-1"),
        ({"node_role_name": "*"}, "node_role_name (is '*'): must be 1 to 64 letters, digits and _+=,.@-; use node_role_name(cluster)"),
        ({"node_role_name": "n" * 65}, "use node_role_name(cluster)"),
        ({"queue_name": "training*"}, "queue_name (is 'training*'): must be 1 to 80"),
        ({"queue_name": ""}, "use queue_name(cluster)"),
        ({"namespace": "Kube_System"}, "namespace (is 'Kube_System'): must be"),
        ({"service_account": ""}, "service_account (is ''): must be"),
    ],
)
def test_arguments_that_aws_would_reject_or_that_are_too_wide_are_refused_before_anything_is_registered(
    change: dict[str, Any], problem: str, refusal: Refusal
) -> None:
    assert problem in refusal(KarpenterControllerIdentity, "karpenter", args(**{"cluster": "training", **change}))
