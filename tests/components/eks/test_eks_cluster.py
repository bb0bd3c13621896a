"""EksCluster: private, logged and encrypted by default; what a caller changes; where its children belong."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pulumi
import pytest
from eks_cluster_args import ACCOUNT, ATTACHMENT, CLUSTER, EC2_WARNING, ROLE, SECURITY_GROUP, TAGS, args
from pulumi.provider.experimental.analyzer import Analyzer

from components.eks.cluster import EksCluster

pytestmark = pytest.mark.filterwarnings(EC2_WARNING)

Register = Callable[[Callable[[], object]], Any]

KEY = "aws:kms/key:Key"
LOG_GROUP = "aws:cloudwatch/logGroup:LogGroup"


@pytest.fixture
def registered_with(register: Register) -> Callable[..., Any]:
    """What EksCluster registers with some arguments changed."""

    def run(**changes: Any) -> Any:
        return register(lambda: EksCluster("eks", args(**changes)))

    return run


@pytest.fixture
def cluster_of(registered_with: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """The inputs of the cluster that EksCluster makes with some arguments changed."""

    def run(**changes: Any) -> dict[str, Any]:
        return registered_with(**changes).of(CLUSTER)[0]

    return run


def test_a_cluster_has_the_version_network_and_tags_that_it_was_given(cluster_of: Callable[..., dict[str, Any]]) -> None:
    cluster = cluster_of()

    assert (cluster["name"], cluster["version"], cluster["tags"]) == ("prod", "1.35", TAGS)
    assert cluster["vpcConfig"]["subnetIds"] == ["subnet-0aaaaaaaaaaaaaaaa", "subnet-0bbbbbbbbbbbbbbbb"]
    own = ["subnet-0ccccccccccccccccc", "subnet-0ddddddddddddddddd"]
    assert cluster_of(control_plane_subnet_ids=own)["vpcConfig"]["subnetIds"] == own
    assert cluster["kubernetesNetworkConfig"] == {"ipFamily": "ipv4", "serviceIpv4Cidr": "172.20.0.0/16"}


def test_what_is_secure_is_so_by_default(cluster_of: Callable[..., dict[str, Any]]) -> None:
    cluster = cluster_of()

    assert cluster["deletionProtection"] is True
    assert cluster["accessConfig"] == {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": True}
    assert cluster["upgradePolicy"] == {"supportType": "STANDARD"}
    assert cluster["zonalShiftConfig"] == {"enabled": True}
    assert cluster["bootstrapSelfManagedAddons"] is False
    assert "computeConfig" not in cluster


def test_all_logs_of_the_control_plane_are_kept_for_a_while_in_a_group_that_is_there_first(registered_with: Callable[..., Any]) -> None:
    registered = registered_with()

    assert registered.of(CLUSTER)[0]["enabledClusterLogTypes"] == ["api", "audit", "authenticator", "controllerManager", "scheduler"]
    assert registered.of(LOG_GROUP) == [{"name": "/aws/eks/prod/cluster", "retentionInDays": 90, "tags": TAGS}]


def test_what_is_stored_is_encrypted_with_a_key_of_its_own_that_rotates(registered_with: Callable[..., Any]) -> None:
    registered = registered_with()

    [key] = registered.of(KEY)
    assert (key["enableKeyRotation"], key["deletionWindowInDays"]) == (True, 30)
    assert registered.of("aws:kms/alias:Alias") == [{"name": "alias/eks/prod", "targetKeyId": "eks-key-id"}]
    assert registered.of(CLUSTER)[0]["encryptionConfig"]["resources"] == ["secrets"]


def test_a_key_of_the_callers_is_used_and_none_is_made(registered_with: Callable[..., Any]) -> None:
    key = f"arn:aws:kms:us-east-1:{ACCOUNT}:key/0a1b2c3d-0000-1111-2222-333344445555"

    registered = registered_with(kms_key=key)

    assert registered.of(CLUSTER)[0]["encryptionConfig"]["provider"] == {"keyArn": key}
    assert registered.of(KEY) == []


def test_the_control_planes_role_is_assumed_by_eks_alone(registered_with: Callable[..., Any]) -> None:
    registered = registered_with()

    role = dict(zip(registered.names(ROLE), registered.of(ROLE), strict=True))["eks-role"]
    assert role["name"] == "prod-cluster"
    assert json.loads(role["assumeRolePolicy"])["Statement"] == [
        {"Effect": "Allow", "Principal": {"Service": "eks.amazonaws.com"}, "Action": "sts:AssumeRole"}
    ]
    attached = dict(zip(registered.names(ATTACHMENT), registered.of(ATTACHMENT), strict=True))
    assert attached["eks-role-AmazonEKSClusterPolicy"]["policyArn"] == "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"


def test_support_retention_and_protection_are_the_callers(registered_with: Callable[..., Any]) -> None:
    registered = registered_with(support="extended", log_retention_days=365, deletion_protection=False)

    [cluster] = registered.of(CLUSTER)
    assert cluster["upgradePolicy"] == {"supportType": "EXTENDED"}
    assert cluster["deletionProtection"] is False
    assert registered.of(LOG_GROUP)[0]["retentionInDays"] == 365


def test_karpenter_finds_the_security_group_that_eks_makes(registered_with: Callable[..., Any]) -> None:
    [tag] = registered_with().of("aws:ec2/tag:Tag")

    assert (tag["key"], tag["value"]) == ("karpenter.sh/discovery", "prod")


@pytest.mark.parametrize("cluster", ["c" * 100, "sg-" + "Prod_1" * 16])
def test_a_cluster_with_the_longest_name_has_parts_whose_names_aws_takes(cluster: str, registered_with: Callable[..., Any]) -> None:
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


def test_the_component_itself_carries_its_defaults_for_policies(registered_with: Callable[..., Any]) -> None:
    [component] = registered_with().of("flexspot:index:EksCluster")

    assert component["access"] == "private"
    assert component["deletion_protection"] is True


def test_every_resource_is_the_components_child_and_named_after_it_and_carries_the_tags(register: Register) -> None:
    parents: dict[str, pulumi.Resource | None] = {}
    made: list[EksCluster] = []

    def note(resource: pulumi.ResourceTransformationArgs) -> None:
        parents[resource.name] = resource.opts.parent

    changed = args(admin_role_arns=[f"arn:aws:iam::{ACCOUNT}:role/platform-admin"], private_cidrs=["10.0.0.0/16"])
    registered = register(lambda: made.append(EksCluster("eks", changed, pulumi.ResourceOptions(transformations=[note]))))

    assert parents.pop("eks") is None
    assert set(parents.values()) == {made[0]}
    assert all(name.startswith("eks-") for name in parents)
    taggable = [inputs for token, _, inputs in registered.resources if "tags" in inputs and token.startswith("aws:")]
    assert len(taggable) > 15
    assert all(inputs["tags"].items() >= TAGS.items() for inputs in taggable)


def test_what_is_inside_waits_for_nodes_add_ons_and_the_discovery_tag(register: Register) -> None:
    made: list[EksCluster] = []

    register(lambda: made.append(EksCluster("eks", args())))

    assert [type(each).__name__ for each in made[0].ready] == [
        "Tag",
        "Addon",
        "Addon",
        "Addon",
        "NodeGroup",
        "Addon",
        "Addon",
        "Addon",
        "Addon",
        "Addon",
    ]


def test_the_cluster_waits_for_its_log_group_and_its_roles_policy(register: Register) -> None:
    waits: dict[str, list[str]] = {}

    def note(resource: pulumi.ResourceTransformationArgs) -> None:
        depends_on: Any = resource.opts.depends_on
        waits[resource.name] = [type(each).__name__ for each in list[Any](depends_on or ())]

    register(lambda: EksCluster("eks", args(), pulumi.ResourceOptions(transformations=[note])))

    assert waits["eks-cluster"] == ["RolePolicyAttachment", "LogGroup"]


def test_pulumis_component_host_accepts_the_arguments_and_knows_which_are_optional() -> None:
    component = Analyzer("flexspot").analyze([EksCluster])["component_definitions"]["EksCluster"]

    required = {name for name, each in component.inputs.items() if not each.optional}
    assert required == {"cluster", "account", "region", "version", "vpcId", "subnetIds", "servicesCidr"}
    assert len(component.outputs) == 7
