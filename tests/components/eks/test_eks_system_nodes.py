"""The system nodes: tainted, on-demand, with disks and metadata that are closed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulumi
import pytest
from eks_cluster_args import ATTACHMENT, EC2_WARNING, NODE_GROUP, TAGS, TEMPLATE, args

from components.eks.cluster import EksCluster

pytestmark = pytest.mark.filterwarnings(EC2_WARNING)

Register = Callable[[Callable[[], object]], Any]


@pytest.fixture
def registered_with(register: Register) -> Callable[..., Any]:
    """What EksCluster registers with some arguments changed."""

    def run(**changes: Any) -> Any:
        return register(lambda: EksCluster("eks", args(**changes)))

    return run


def test_the_controllers_have_on_demand_nodes_that_keep_others_away(registered_with: Callable[..., Any]) -> None:
    [group] = registered_with().of(NODE_GROUP)

    assert (group["clusterName"], group["capacityType"], group["version"]) == ("prod", "ON_DEMAND", "1.35")
    assert group["nodeGroupNamePrefix"] == "system-"
    assert group["labels"] == {"flexspot.dev/system": "true"}
    assert group["taints"] == [{"key": "CriticalAddonsOnly", "value": "true", "effect": "NO_SCHEDULE"}]
    assert group["scalingConfig"] == {"desiredSize": 2, "minSize": 2, "maxSize": 4}
    assert group["updateConfig"] == {"maxUnavailablePercentage": 33}
    assert group["nodeRepairConfig"] == {"enabled": True}
    assert group["subnetIds"] == ["subnet-0aaaaaaaaaaaaaaaa", "subnet-0bbbbbbbbbbbbbbbb"]
    assert "releaseVersion" not in group


def test_size_and_release_are_the_callers(registered_with: Callable[..., Any]) -> None:
    pool = {"machine": "c7i.2xlarge", "min_nodes": 3, "max_nodes": 6, "disk_gib": 80, "release": "1.35.6-20260810"}

    registered = registered_with(system_pool=pool)

    [group], [template] = registered.of(NODE_GROUP), registered.of(TEMPLATE)
    assert group["scalingConfig"] == {"desiredSize": 3, "minSize": 3, "maxSize": 6}
    assert group["releaseVersion"] == "1.35.6-20260810"
    assert template["instanceType"] == "c7i.2xlarge"
    assert template["blockDeviceMappings"][0]["ebs"]["volumeSize"] == 80


@pytest.mark.parametrize("repaired", [True, False])
def test_broken_nodes_of_the_controllers_are_replaced_unless_somebody_says_no(
    registered_with: Callable[..., Any], *, repaired: bool
) -> None:
    [group] = registered_with(system_pool={"machine": "m6i.large", "node_repair": repaired}).of(NODE_GROUP)

    assert group["nodeRepairConfig"] == {"enabled": repaired}


def test_pods_cannot_take_the_nodes_credentials(registered_with: Callable[..., Any]) -> None:
    [template] = registered_with().of(TEMPLATE)

    assert template["metadataOptions"] == {"httpEndpoint": "enabled", "httpTokens": "required", "httpPutResponseHopLimit": 1}
    assert not {"imageId", "vpcSecurityGroupIds", "keyName"} & template.keys()


@pytest.mark.parametrize(
    "ami,kind,disks",
    [
        ("al2023@v20260903", "AL2023_x86_64_STANDARD", {"/dev/xvda": 50}),
        ("bottlerocket@1.65.0", "BOTTLEROCKET_x86_64", {"/dev/xvda": None, "/dev/xvdb": 50}),
    ],
)
def test_the_alias_decides_the_image_and_every_disk_is_encrypted(
    ami: str, kind: str, disks: dict[str, int | None], registered_with: Callable[..., Any]
) -> None:
    registered = registered_with(ami=ami)

    assert registered.of(NODE_GROUP)[0]["amiType"] == kind
    mapped = registered.of(TEMPLATE)[0]["blockDeviceMappings"]
    assert {each["deviceName"]: each["ebs"].get("volumeSize") for each in mapped} == disks
    assert all((each["ebs"]["encrypted"], each["ebs"]["volumeType"]) == ("true", "gp3") for each in mapped)


def test_machines_and_disks_carry_the_tags(registered_with: Callable[..., Any]) -> None:
    [template] = registered_with().of(TEMPLATE)

    assert template["tagSpecifications"] == [
        {"resourceType": kind, "tags": {**TAGS, "Name": "prod-system"}} for kind in ("instance", "volume", "network-interface")
    ]


def test_nodes_may_join_pull_and_be_managed_but_not_change_the_network(registered_with: Callable[..., Any]) -> None:
    registered = registered_with()

    attached = zip(registered.names(ATTACHMENT), registered.of(ATTACHMENT), strict=True)
    assert {each["policyArn"] for name, each in attached if name.startswith("eks-system-role-")} == {
        "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy",
        "arn:aws:iam::aws:policy/AmazonEC2ContainerRegistryPullOnly",
        "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore",
    }


def test_more_nodes_at_least_are_more_nodes_at_once_because_eks_refuses_a_least_size_above_the_present_one(register: Register) -> None:
    ignored: dict[str, list[str] | None] = {}

    def note(resource: pulumi.ResourceTransformationArgs) -> None:
        ignored[resource.name] = resource.opts.ignore_changes

    wanted = args(system_pool={"machine": "m6i.large", "min_nodes": 4, "max_nodes": 6})
    made = register(lambda: EksCluster("eks", wanted, pulumi.ResourceOptions(transformations=[note])))

    [group] = made.of(NODE_GROUP)
    assert group["scalingConfig"] == {"desiredSize": 4, "minSize": 4, "maxSize": 6}
    assert not ignored["eks-system-nodes"]
