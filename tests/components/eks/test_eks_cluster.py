"""EksCluster: a private, logged and encrypted cluster by default, and its options."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pulumi
import pytest
from eks_cluster_args import ACCOUNT, ATTACHMENT, CLUSTER, ROLE, SECURITY_GROUP, TAGS, args

from flexspot.components.eks.cluster import EksCluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from component_types import Register


KEY = "aws:kms/key:Key"
LOG_GROUP = "aws:cloudwatch/logGroup:LogGroup"


def test_by_default_a_cluster_is_protected_logged_and_encrypted_with_a_separate_key(registered_with: Callable[..., Any]) -> None:
    registered = registered_with()

    [cluster], [key] = registered.of(CLUSTER), registered.of(KEY)
    wanted = {
        "name": "prod",
        "version": "1.35",
        "tags": TAGS,
        "kubernetesNetworkConfig": {"ipFamily": "ipv4", "serviceIpv4Cidr": "172.20.0.0/16"},
        "deletionProtection": True,
        "accessConfig": {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": True},
        "upgradePolicy": {"supportType": "STANDARD"},
        "zonalShiftConfig": {"enabled": True},
        "bootstrapSelfManagedAddons": False,
        "enabledClusterLogTypes": ["api", "audit", "authenticator", "controllerManager", "scheduler"],
    }
    assert {name: cluster[name] for name in wanted} == wanted
    assert "computeConfig" not in cluster
    assert registered.of(LOG_GROUP) == [{"name": "/aws/eks/prod/cluster", "retentionInDays": 90, "tags": TAGS}]
    assert (key["enableKeyRotation"], key["deletionWindowInDays"]) == (True, 30)
    assert registered.of("aws:kms/alias:Alias") == [{"name": "alias/eks/prod", "targetKeyId": "eks-key-id"}]
    assert cluster["encryptionConfig"]["resources"] == ["secrets"]
    [tag] = registered.of("aws:ec2/tag:Tag")
    assert (tag["key"], tag["value"]) == ("karpenter.sh/discovery", "prod"), "by which Karpenter finds the security group that EKS makes"


def test_the_control_plane_is_in_the_nodes_subnets_unless_it_has_separate_ones(registered_with: Callable[..., Any]) -> None:
    own = ["subnet-0ccccccccccccccccc", "subnet-0ddddddddddddddddd"]

    of_nodes, of_its_own = registered_with().of(CLUSTER)[0], registered_with(control_plane_subnet_ids=own).of(CLUSTER)[0]
    assert of_nodes["vpcConfig"]["subnetIds"] == ["subnet-0aaaaaaaaaaaaaaaa", "subnet-0bbbbbbbbbbbbbbbb"]
    assert of_its_own["vpcConfig"]["subnetIds"] == own


def test_a_given_key_is_used_and_none_is_created(registered_with: Callable[..., Any]) -> None:
    key = f"arn:aws:kms:us-east-1:{ACCOUNT}:key/0a1b2c3d-0000-1111-2222-333344445555"

    registered = registered_with(kms_key=key)

    assert registered.of(CLUSTER)[0]["encryptionConfig"]["provider"] == {"keyArn": key}
    assert registered.of(KEY) == []


def test_only_eks_can_assume_the_control_planes_role(registered_with: Callable[..., Any]) -> None:
    registered = registered_with()

    role = dict(zip(registered.names(ROLE), registered.of(ROLE), strict=True))["eks-role"]
    assert role["name"] == "prod-cluster"
    assert json.loads(role["assumeRolePolicy"])["Statement"] == [
        {"Effect": "Allow", "Principal": {"Service": "eks.amazonaws.com"}, "Action": "sts:AssumeRole"}
    ]
    assert "eks-role-AmazonEKSClusterPolicy" in registered.names(ATTACHMENT)


def test_support_retention_and_protection_can_be_set(registered_with: Callable[..., Any]) -> None:
    registered = registered_with(support="extended", log_retention_days=365, deletion_protection=False)

    [cluster] = registered.of(CLUSTER)
    assert cluster["upgradePolicy"] == {"supportType": "EXTENDED"}
    assert cluster["deletionProtection"] is False
    assert registered.of(LOG_GROUP)[0]["retentionInDays"] == 365


@pytest.mark.parametrize("cluster", ["c" * 100, "sg-" + "Prod_1" * 16])
def test_aws_accepts_the_names_of_all_parts_of_a_cluster_with_the_longest_name(cluster: str, registered_with: Callable[..., Any]) -> None:
    registered = registered_with(cluster=cluster)

    roles = [each["name"] for each in registered.of(ROLE)]
    assert len(set(roles)) == len(roles) == 4
    assert all(len(name) <= 64 for name in roles)
    [group] = registered.of(SECURITY_GROUP)
    assert len(group["name"]) <= 255
    assert not group["name"].startswith("sg-")
    assert registered.of(CLUSTER)[0]["name"] == cluster


@pytest.mark.parametrize(
    "partition,region,ec2", [("aws-cn", "cn-north-1", "ec2.amazonaws.com.cn"), ("aws-us-gov", "us-gov-west-1", "ec2.amazonaws.com")]
)
def test_every_arn_is_of_the_clusters_partition(partition: str, region: str, ec2: str, registered_with: Callable[..., Any]) -> None:
    registered = registered_with(
        partition=partition, region=region, admin_role_arns=[f"arn:{partition}:iam::{ACCOUNT}:role/platform-admin"]
    )

    written = json.dumps(registered.resources)
    assert "arn:aws:" not in written
    assert f"arn:{partition}:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy" in written
    roles = dict(zip(registered.names(ROLE), registered.of(ROLE), strict=True))
    assert json.loads(roles["eks-system-role"]["assumeRolePolicy"])["Statement"][0]["Principal"] == {"Service": ec2}


def test_the_component_has_its_defaults_as_inputs_for_policies(registered_with: Callable[..., Any]) -> None:
    [component] = registered_with().of("flexspot:index:EksCluster")

    assert component["access"] == "private"
    assert component["deletion_protection"] is True


def test_every_resource_has_the_tags(registered_with: Callable[..., Any]) -> None:
    registered = registered_with(admin_role_arns=[f"arn:aws:iam::{ACCOUNT}:role/platform-admin"], private_cidrs=["10.0.0.0/16"])

    taggable = [inputs for token, _, inputs in registered.resources if "tags" in inputs and token.startswith("aws:")]
    assert len(taggable) > 15
    assert all(inputs["tags"].items() >= TAGS.items() for inputs in taggable)


def test_the_cluster_waits_for_its_log_group_and_policy_and_its_contents_for_nodes_add_ons_and_the_discovery_tag(
    register: Register,
) -> None:
    made: list[EksCluster] = []
    waits: dict[str, list[str]] = {}

    def note(resource: pulumi.ResourceTransformationArgs) -> None:
        depends_on: Any = resource.opts.depends_on
        waits[resource.name] = [type(each).__name__ for each in list[Any](depends_on or ())]

    register(lambda: made.append(EksCluster("eks", args(), pulumi.ResourceOptions(transformations=[note]))))

    assert waits["eks-cluster"] == ["RolePolicyAttachment", "LogGroup"]
    assert [type(each).__name__ for each in made[0].ready] == ["Tag", *["Addon"] * 3, "NodeGroup", *["Addon"] * 5]
