"""EksCluster: access to its API server by network and role, and its kubeconfig."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from component_outputs import outputs_of
from eks_cluster_args import ACCOUNT, ARN, CLUSTER, INGRESS, SECURITY_GROUP, TAGS, Nothing, args, cluster_outputs

from flexspot.components.eks.cluster import EksCluster

if TYPE_CHECKING:
    from collections.abc import Callable


ENTRY = "aws:eks/accessEntry:AccessEntry"
POLICY = "aws:eks/accessPolicyAssociation:AccessPolicyAssociation"


@pytest.mark.parametrize(
    "given,public,cidrs",
    [
        ({}, False, None),
        ({"access": "public_cidrs", "cidrs": ["203.0.113.0/24", "198.51.100.7/32"]}, True, ["198.51.100.7/32", "203.0.113.0/24"]),
    ],
)
def test_the_api_server_admits_the_inside_and_given_ranges_always_in_the_same_order(
    given: dict[str, Any], cidrs: list[str] | None, registered_with: Callable[..., Any], *, public: bool
) -> None:
    network = registered_with(**given).of(CLUSTER)[0]["vpcConfig"]

    assert (network["endpointPrivateAccess"], network["endpointPublicAccess"]) == (True, public)
    assert network.get("publicAccessCidrs") == cidrs


def test_the_private_endpoint_only_admits_the_nodes_unless_ranges_are_given(registered_with: Callable[..., Any]) -> None:
    registered = registered_with()

    assert registered.of(CLUSTER)[0]["vpcConfig"]["securityGroupIds"] == ["eks-api-security-group-id"]
    assert registered.of(SECURITY_GROUP)[0]["vpcId"] == "vpc-0a1b2c3d4e5f60718"
    assert registered.of(INGRESS) == []


def test_given_ranges_reach_the_private_endpoint_by_https(registered_with: Callable[..., Any]) -> None:
    registered = registered_with(private_cidrs=["10.0.0.0/16", "10.200.0.0/24"])

    assert registered.names(INGRESS) == ["eks-api-from-10-0-0-0-16", "eks-api-from-10-200-0-0-24"]
    rule = registered.of(INGRESS)[0]
    assert (rule["cidrIpv4"], rule["ipProtocol"], rule["fromPort"], rule["toPort"]) == ("10.0.0.0/16", "tcp", 443, 443)
    assert rule["securityGroupId"] == "eks-api-security-group-id"


def test_admin_roles_get_an_access_entry_and_awss_admin_policy(registered_with: Callable[..., Any]) -> None:
    admin = f"arn:aws:iam::{ACCOUNT}:role/teams/platform-admin"
    same_name = "arn:aws:iam::444455556666:role/teams/platform-admin"

    registered = registered_with(admin_role_arns=[same_name, admin])

    assert registered.of(CLUSTER)[0]["accessConfig"]["bootstrapClusterCreatorAdminPermissions"] is True, "another replaces the cluster"

    assert registered.names(ENTRY) == [f"eks-admin-{account}-teams-platform-admin" for account in (ACCOUNT, "444455556666")]
    assert registered.of(ENTRY)[0] == {"clusterName": "prod", "principalArn": admin, "type": "STANDARD", "tags": TAGS}
    # A policy waits for its entry, so the order of policies is undefined.
    policies = {each["principalArn"]: each for each in registered.of(POLICY)}
    assert policies.keys() == {admin, same_name}
    assert policies[admin] == {
        "clusterName": "prod",
        "principalArn": admin,
        "policyArn": "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
        "accessScope": {"type": "cluster"},
    }


def test_outputs_contain_the_connection_and_no_secrets() -> None:
    outputs = cluster_outputs()

    assert outputs["cluster_name"] == "prod"
    assert outputs["arn"] == ARN
    assert outputs["endpoint"] == "https://ABCD1234.gr7.us-east-1.eks.amazonaws.com"
    assert outputs["certificate_authority"] == "Y2E="
    assert outputs["security_group_id"] == "sg-0123456789abcdef0"
    assert outputs["credentials_command"] == "aws eks update-kubeconfig --name prod --region us-east-1"
    assert outputs["secrets"] == [False] * 7


def test_the_kubeconfig_gets_a_token_from_the_aws_cli_and_trusts_the_clusters_authority() -> None:
    written = json.loads(cluster_outputs()["kubeconfig"])

    assert written["clusters"] == [
        {
            "name": ARN,
            "cluster": {"server": "https://ABCD1234.gr7.us-east-1.eks.amazonaws.com", "certificate-authority-data": "Y2E="},
        }
    ]
    assert written["contexts"][0]["name"] == written["current-context"] == ARN
    [user] = written["users"]
    assert user["user"].keys() == {"exec"}
    assert user["user"]["exec"]["apiVersion"] == "client.authentication.k8s.io/v1beta1"
    assert [user["user"]["exec"]["command"], *user["user"]["exec"]["args"]] == (
        ["aws", "eks", "get-token", "--cluster-name", "prod", "--region", "us-east-1", "--output", "json"]
    )


@pytest.mark.parametrize("identity", [None, "prod"])
def test_in_a_preview_outputs_of_eks_are_unknown_and_never_empty(identity: str | None) -> None:
    cloud = Nothing()
    cloud.identity = identity
    known = outputs_of(cloud, lambda: EksCluster("eks", args()), preview=True)["known"]

    assert not any(known[name] for name in ("endpoint", "certificate_authority", "security_group_id", "kubeconfig"))
