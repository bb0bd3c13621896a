"""KarpenterControllerIdentity: a role with the seven policies, for the controller's pods alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pulumi
import pytest
from iam_evaluator import Request, Verdict, decide
from karpenter_args import ACCOUNT, ATTACHMENT, LONG_NAME, POLICY, REGION, ROLE, TAGS, declared, parents_of, refusal, scope
from pulumi.provider.experimental.analyzer import Analyzer

from components.cloud_names import node_role_name, queue_name
from components.karpenter.controller import KarpenterControllerIdentity, KarpenterControllerIdentityArgs
from components.karpenter.controller_policies import controller_policies

if TYPE_CHECKING:
    from karpenter_args import Aws

ASSOCIATION = "aws:eks/podIdentityAssociation:PodIdentityAssociation"

KINDS = {"node-lifecycle", "iam-integration", "eks-integration", "interruption", "zonal-shift", "resource-discovery", "spot-role"}


def args(**changes: Any) -> KarpenterControllerIdentityArgs:
    cluster = changes.get("cluster", "training")
    arguments: KarpenterControllerIdentityArgs = {
        "cluster": cluster,
        "cluster_name": pulumi.Output.from_input(cluster),
        "account": ACCOUNT,
        "region": REGION,
        "node_role_name": node_role_name(cluster),
        "queue_name": queue_name(cluster),
        "tags": TAGS,
    }
    arguments.update(changes)  # pyrefly: ignore[no-matching-overload] -- what is wrong on purpose, too
    return arguments


def registered(**changes: Any) -> Aws:
    return declared(lambda: KarpenterControllerIdentity("karpenter", args(**changes)))[0]


def test_the_role_has_the_seven_policies_each_by_an_attachment_of_its_own() -> None:
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


@pytest.mark.slow
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


@pytest.mark.parametrize(
    "change,verdict",
    [
        ({}, Verdict.ALLOWED),
        ({"aws:RequestTag/eks-cluster-arn": f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/inference"}, Verdict.NOT_ALLOWED),
        ({"aws:RequestTag/eks-cluster-arn": f"arn:aws:eks:{REGION}:444455556666:cluster/training"}, Verdict.NOT_ALLOWED),
        ({"aws:RequestTag/kubernetes-namespace": "team-red"}, Verdict.NOT_ALLOWED),
        ({"aws:RequestTag/kubernetes-service-account": "default"}, Verdict.NOT_ALLOWED),
    ],
)
@pytest.mark.parametrize("action", ["sts:AssumeRole", "sts:TagSession"])
def test_the_role_is_taken_by_pods_of_this_cluster_namespace_and_service_account_alone(
    change: dict[str, str], verdict: Verdict, action: str
) -> None:
    trust = json.loads(registered().of(ROLE)["karpenter-role"]["assumeRolePolicy"])
    tags = {
        "aws:RequestTag/eks-cluster-arn": f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/training",
        "aws:RequestTag/kubernetes-namespace": "kube-system",
        "aws:RequestTag/kubernetes-service-account": "karpenter",
    }

    assert decide([trust], Request(action, "*", {**tags, **change}, principal="pods.eks.amazonaws.com")) is verdict
    assert decide([trust], Request(action, "*", {**tags, **change}, principal="ec2.amazonaws.com")) is Verdict.NOT_ALLOWED


def test_namespace_service_account_and_partition_are_the_callers() -> None:
    changes = {"namespace": "karpenter", "service_account": "controller", "partition": "aws-us-gov", "region": "us-gov-west-1"}

    aws = registered(**changes)

    association = aws.of(ASSOCIATION)["karpenter-association"]
    assert (association["namespace"], association["serviceAccount"]) == ("karpenter", "controller")
    trust = aws.of(ROLE)["karpenter-role"]["assumeRolePolicy"]
    assert f"arn:aws-us-gov:eks:us-gov-west-1:{ACCOUNT}:cluster/training" in trust
    assert all('"arn:aws:' not in inputs["policy"] for inputs in aws.of(POLICY).values())


def test_a_cluster_with_the_longest_name_has_names_that_fit() -> None:
    aws = registered(cluster=LONG_NAME)

    assert len(aws.of(ROLE)["karpenter-role"]["name"]) == 64
    assert {len(inputs["name"]) <= 128 for inputs in aws.of(POLICY).values()} == {True}


def test_role_and_policies_are_tagged() -> None:
    aws = registered()

    assert {json.dumps(inputs["tags"]) for kind in (ROLE, POLICY) for inputs in aws.of(kind).values()} == {json.dumps(TAGS)}


def test_its_output_is_the_roles_arn() -> None:
    _, outputs = declared(lambda: KarpenterControllerIdentity("karpenter", args()))

    assert outputs == {"role_arn": f"arn:aws:iam::{ACCOUNT}:role/KarpenterControllerRole-training"}


def test_its_children_are_its_own_and_named_after_it() -> None:
    parents, made = parents_of(lambda opts: KarpenterControllerIdentity("karpenter", args(), opts))

    children = {f"karpenter-{kind}-{part}" for kind in KINDS for part in ("policy", "attachment")}
    assert parents == {"karpenter": None} | dict.fromkeys(children | {"karpenter-role", "karpenter-association"}, made)


@pytest.mark.parametrize(
    "change,problem",
    [
        ({"cluster": "c" * 101}, "cluster is 'ccc"),
        ({"cluster": "-prod"}, "cluster is '-prod'; it must be"),
        ({"account": "1234"}, "account is '1234'; it must be"),
        ({"partition": "aws-iso"}, "partition is 'aws-iso'; allowed"),
        ({"region": "europe"}, "region is 'europe'; it must be"),
        ({"region": "us-gov-west-1"}, "partition is 'aws' with region us-gov-west-1"),
        ({"region": "cn-north-1"}, "partition is 'aws' with region cn-north-1"),
        ({"node_role_name": "*"}, "node_role_name is '*'; it must be 1 to 64"),
        ({"node_role_name": "n" * 65}, "use node_role_name(cluster)"),
        ({"queue_name": "training*"}, "queue_name is 'training*'; it must be 1 to 80"),
        ({"queue_name": ""}, "use queue_name(cluster)"),
        ({"namespace": "Kube_System"}, "namespace is 'Kube_System'; it must be"),
        ({"service_account": ""}, "service_account is ''; it must be"),
    ],
)
def test_what_aws_would_refuse_or_take_too_widely_is_refused_before_anything_is_registered(change: dict[str, Any], problem: str) -> None:
    said, resources = refusal(lambda: KarpenterControllerIdentity("karpenter", args(**{"cluster": "training", **change})))

    assert said.startswith("KarpenterControllerIdentity karpenter:")
    assert problem in said
    assert resources == []


def test_pulumis_component_host_knows_which_arguments_are_optional() -> None:
    described = Analyzer("flexspot").analyze([KarpenterControllerIdentity])["component_definitions"]["KarpenterControllerIdentity"]

    assert {name for name, each in described.inputs.items() if each.optional} == {
        "partition",
        "namespace",
        "serviceAccount",
        "iamPath",
        "permissionsBoundary",
    }
