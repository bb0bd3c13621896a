"""LoadBalancerController: the chart's values, and a role that only reaches resources of its own cluster's controller."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
import yaml
from chart_values import unknown_values
from iam_judge import Request, decided_otherwise, findings
from moto import mock_aws

from flexspot.components.eks import load_balancer_controller
from flexspot.components.eks.load_balancer_controller import (
    LoadBalancerController,
    LoadBalancerControllerArgs,
    controller_policy,
    upstream_policy,
)
from flexspot.components.iam import MANAGED_POLICY_CHARACTERS, as_json, counted_characters

if TYPE_CHECKING:
    from component_types import Register


RELEASE = "kubernetes:helm.sh/v3:Release"
UPSTREAM_SHA256 = "16f232c9d9f79366fe949c4550ad517a202380058a9e48d45a4e215044a20a6a"
"""SHA-256 of docs/install/iam_policy.json in the Go module sigs.k8s.io/aws-load-balancer-controller@v0.0.0-20260423195125-93ff3b5fdaad."""

CHART_VALUES = yaml.safe_load(
    """
    replicaCount: 2
    serviceAccount: {create: true, annotations: {}, name: , automountServiceAccountToken: true, imagePullSecrets: }
    resources: {}
    nodeSelector: {}
    tolerations: []
    affinity: {}
    clusterName:
    region:
    vpcId:
    vpcTags: {}
    defaultTags: {}
    podDisruptionBudget: {}
    enableServiceMutatorWebhook: true
    """
)
"""Values of the chart that this component sets: helm/aws-load-balancer-controller/values.yaml of the same module."""

CLUSTER = "ml-prod"
OTHER = "ml-dev"


def args(**changes: Any) -> LoadBalancerControllerArgs:
    given = {
        "cluster": CLUSTER,
        "cluster_name": CLUSTER,
        "account": "111122223333",
        "region": "eu-central-1",
        "vpc_id": "vpc-0a1b2c3d4e5f60718",
        "tags": {"cost-center": "4711"},
    }
    return given | changes  # pyrefly: ignore[bad-return] -- a test's own


def made(register: Register, **changes: Any) -> Any:
    return register(lambda: LoadBalancerController("load-balancers", args(**changes)))


def release(register: Register, **changes: Any) -> dict[str, Any]:
    [inputs] = made(register, **changes).of(RELEASE)
    return inputs


def test_the_chart_is_pinned_to_the_version_whose_policy_its_role_has(register: Register) -> None:
    inputs = release(register)

    assert (inputs["chart"], inputs["version"], inputs["namespace"]) == ("aws-load-balancer-controller", "3.2.2", "kube-system")
    assert inputs["repositoryOpts"] == {"repo": "https://aws.github.io/eks-charts"}
    assert inputs["atomic"] is True


def test_the_chart_has_every_value_that_it_is_given(register: Register) -> None:
    assert unknown_values(release(register)["values"], CHART_VALUES) == []


def test_its_cluster_and_vpc_are_set_because_pods_cannot_reach_node_metadata(register: Register) -> None:
    values = release(register)["values"]

    assert (values["clusterName"], values["region"], values["vpcId"]) == (CLUSTER, "eu-central-1", "vpc-0a1b2c3d4e5f60718")


def test_other_services_do_not_depend_on_it(register: Register) -> None:
    """The webhook for new Services rejects all of them while no replica runs. Kueue's chart, for example, could not be installed then."""
    assert release(register)["values"]["enableServiceMutatorWebhook"] is False


def test_its_load_balancers_have_the_stacks_tags(register: Register) -> None:
    assert release(register)["values"]["defaultTags"] == {"cost-center": "4711"}


def test_its_size_is_that_of_the_settings(register: Register) -> None:
    assert release(register)["values"]["resources"] == {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "256Mi"}}
    larger = release(register, replicas=3, cpu_milli=500, memory_mib=1024)["values"]
    assert (larger["replicaCount"], larger["resources"]["requests"]) == (3, {"cpu": "500m", "memory": "1Gi"})


def test_only_its_pods_can_assume_its_role(register: Register) -> None:
    resources = made(register)
    [role] = resources.of("aws:iam/role:Role")
    [bound] = resources.of("aws:eks/podIdentityAssociation:PodIdentityAssociation")

    [statement] = json.loads(role["assumeRolePolicy"])["Statement"]
    assert statement["Condition"]["StringEquals"] == {
        "aws:RequestTag/eks-cluster-arn": f"arn:aws:eks:eu-central-1:111122223333:cluster/{CLUSTER}",
        "aws:RequestTag/kubernetes-namespace": "kube-system",
        "aws:RequestTag/kubernetes-service-account": "aws-load-balancer-controller",
    }
    assert (bound["namespace"], bound["serviceAccount"]) == ("kube-system", release(register)["values"]["serviceAccount"]["name"])


@pytest.mark.parametrize(
    "changes,problem",
    [
        ({"replicas": 0}, "replicas"),
        ({"version": "latest"}, "version"),
        ({"account": "1234"}, "account"),
        ({"partition": "aws-cn"}, "eu-central-1"),
        ({"tags": {"aws:mine": "x"}}, "aws:mine"),
    ],
)
def test_arguments_that_aws_or_the_chart_would_reject_are_refused_before_anything_is_registered(
    changes: dict[str, Any], problem: str, register: Register
) -> None:
    with pytest.raises(ValueError, match=problem):
        made(register, **changes)


def test_upstreams_policy_is_kept_as_it_was_published() -> None:
    written = Path(load_balancer_controller.__file__).with_name("load_balancer_policy.json").read_bytes()

    assert hashlib.sha256(written).hexdigest() == UPSTREAM_SHA256


@pytest.mark.parametrize("partition", ["aws", "aws-cn", "aws-us-gov"])
def test_the_policy_fits_into_iams_limit_for_the_longest_cluster_name(partition: str) -> None:
    assert counted_characters(controller_policy("c" * 100, partition)) <= MANAGED_POLICY_CHARACTERS


def test_the_policy_names_no_other_partition() -> None:
    assert "arn:aws:" not in as_json(controller_policy(CLUSTER, "aws-us-gov"))


def test_narrowing_to_the_cluster_only_changes_conditions_on_its_tag() -> None:
    """Actions and resources are the same. Where the tag of any cluster was required, this cluster's is, and nothing else is required."""
    for ours, theirs in zip(controller_policy(CLUSTER, "aws")["Statement"], upstream_policy()["Statement"], strict=True):
        assert {**ours, "Condition": None} == {**theirs, "Condition": None}
        assert conditions(ours) == {
            ("StringEquals", key, CLUSTER) if (operator, value) == ("Null", "false") else (operator, key, value)
            for operator, key, value in conditions(theirs)
        }


def conditions(statement: Any) -> set[tuple[str, str, str]]:
    return {(operator, key, str(value)) for operator, keys in statement.get("Condition", {}).items() for key, value in keys.items()}


def test_an_iam_linter_finds_no_more_than_in_upstreams_policy() -> None:
    upstream = {(each.issue, each.details) for each in findings(as_json(upstream_policy()))}
    ours = {(each.issue, each.details) for each in findings(as_json(controller_policy(CLUSTER, "aws")))}

    assert ours - upstream == set()


@mock_aws
def test_motos_iam_accepts_the_policy() -> None:
    made = boto3.client("iam").create_policy(PolicyName="controller", PolicyDocument=as_json(controller_policy("c" * 100, "aws")))

    assert made["Policy"].get("PolicyName") == "controller"


BALANCER = "arn:aws:elasticloadbalancing:eu-central-1:111122223333:loadbalancer/app/k8s-web/0123456789abcdef"
GROUP = "arn:aws:ec2:eu-central-1:111122223333:security-group/sg-0a1b2c3d4e5f60718"
RESOURCE, REQUEST = "aws:ResourceTag/elbv2.k8s.aws/cluster", "aws:RequestTag/elbv2.k8s.aws/cluster"


@pytest.mark.nightly(tested_by="test_narrowing_to_the_cluster_only_changes_conditions_on_its_tag")
def test_principalmapper_allows_resources_of_its_own_cluster_and_no_other() -> None:
    """Upstream's policy also allows those of the other cluster."""
    requests = [
        ("elasticloadbalancing:DeleteLoadBalancer", BALANCER, RESOURCE),
        ("elasticloadbalancing:ModifyLoadBalancerAttributes", BALANCER, RESOURCE),
        ("elasticloadbalancing:CreateLoadBalancer", BALANCER, REQUEST),
        ("elasticloadbalancing:RemoveTags", BALANCER, RESOURCE),
        ("ec2:DeleteSecurityGroup", GROUP, RESOURCE),
        ("ec2:DeleteTags", GROUP, RESOURCE),
    ]
    own, others = ([Request(action, resource, {key: name}) for action, resource, key in requests] for name in (CLUSTER, OTHER))
    untagged = [Request(action, resource) for action, resource, _ in requests]
    document = controller_policy(CLUSTER, "aws")

    assert decided_otherwise([document], "allowed", own) == []
    assert decided_otherwise([document], "none", [*others, *untagged]) == []
    assert decided_otherwise([upstream_policy()], "allowed", others) == []
