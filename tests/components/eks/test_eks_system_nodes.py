"""The system nodes: tainted and on-demand, with encrypted disks and metadata that pods cannot reach."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi
import pytest
from eks_cluster_args import ATTACHMENT, NODE_GROUP, TAGS, TEMPLATE, args

from flexspot.components.eks.cluster import EksCluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from component_types import Register


def test_the_controllers_have_tainted_on_demand_nodes_whose_credentials_pods_cannot_reach(
    registered_with: Callable[..., Any],
) -> None:
    registered = registered_with()

    [group], [template] = registered.of(NODE_GROUP), registered.of(TEMPLATE)
    wanted = {
        "clusterName": "prod",
        "capacityType": "ON_DEMAND",
        "version": "1.35",
        "nodeGroupNamePrefix": "system-",
        "labels": {"flexspot.dev/system": "true"},
        "taints": [{"key": "CriticalAddonsOnly", "value": "true", "effect": "NO_SCHEDULE"}],
        "scalingConfig": {"desiredSize": 2, "minSize": 2, "maxSize": 4},
        "updateConfig": {"maxUnavailablePercentage": 33},
        "nodeRepairConfig": {"enabled": True},
        "subnetIds": ["subnet-0aaaaaaaaaaaaaaaa", "subnet-0bbbbbbbbbbbbbbbb"],
    }
    assert {name: group[name] for name in wanted} == wanted
    assert "releaseVersion" not in group
    assert template["metadataOptions"] == {"httpEndpoint": "enabled", "httpTokens": "required", "httpPutResponseHopLimit": 1}
    assert not {"imageId", "vpcSecurityGroupIds", "keyName"} & template.keys()
    assert template["tagSpecifications"] == [
        {"resourceType": kind, "tags": {**TAGS, "Name": "prod-system"}} for kind in ("instance", "volume", "network-interface")
    ]
    # They may join, pull images and be managed, and not change the network.
    assert {name.rpartition("-")[2] for name in registered.names(ATTACHMENT) if name.startswith("eks-system-role-")} == {
        "AmazonEKSWorkerNodePolicy",
        "AmazonEC2ContainerRegistryPullOnly",
        "AmazonSSMManagedInstanceCore",
    }


def test_size_release_and_repair_can_be_set(registered_with: Callable[..., Any]) -> None:
    pool = {"machine": "c7i.2xlarge", "min_nodes": 3, "max_nodes": 6, "disk_gib": 80, "release": "1.35.6-20260810", "node_repair": False}

    registered = registered_with(system_pool=pool)

    [group], [template] = registered.of(NODE_GROUP), registered.of(TEMPLATE)
    assert group["scalingConfig"] == {"desiredSize": 3, "minSize": 3, "maxSize": 6}
    assert (group["releaseVersion"], group["nodeRepairConfig"]) == ("1.35.6-20260810", {"enabled": False})
    assert template["instanceType"] == "c7i.2xlarge"
    assert template["blockDeviceMappings"][0]["ebs"]["volumeSize"] == 80


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


def test_a_higher_minimum_also_raises_the_desired_size_because_eks_rejects_a_minimum_above_the_current_size(register: Register) -> None:
    ignored: dict[str, list[str] | None] = {}

    def note(resource: pulumi.ResourceTransformationArgs) -> None:
        ignored[resource.name] = resource.opts.ignore_changes

    wanted = args(system_pool={"machine": "m6i.large", "min_nodes": 4, "max_nodes": 6})
    made = register(lambda: EksCluster("eks", wanted, pulumi.ResourceOptions(transformations=[note])))

    [group] = made.of(NODE_GROUP)
    assert group["scalingConfig"] == {"desiredSize": 4, "minSize": 4, "maxSize": 6}
    assert not ignored["eks-system-nodes"]
