"""Inputs of cloud resources that an offline preview refuses: those that the provider's own validation rejects, and no others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from flexspot.lab.providers.cloud_rules.resource_rules import FILES
from flexspot.lab.providers.cloud_rules.rule_checks import RULES, refused_inputs
from flexspot.lab.providers.values import UNKNOWN, Secret

POOL = "gcp:container/nodePool:NodePool"
CLUSTER = "gcp:container/cluster:Cluster"
EKS = "aws:eks/cluster:Cluster"
GATEWAY = "aws:ec2/natGateway:NatGateway"
GROUP = "aws:ec2/placementGroup:PlacementGroup"
QUEUE = "aws:sqs/queue:Queue"
FILES_OF_EFS = "aws:efs/fileSystem:FileSystem"
LUSTRE = "aws:fsx/lustreFileSystem:LustreFileSystem"

KEY = "arn:aws:kms:us-east-1:111122223333:key/0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"


def places(token: str, **inputs: Any) -> list[str]:
    return [each.place for each in refused_inputs(token, inputs)]


def test_a_refusal_names_the_property_allowed_values_source_and_remedy() -> None:
    [refused] = refused_inputs(POOL, {"cluster": "c", "name": "p", "upgradeSettings": {"strategy": "SHORT_LIVED"}})

    assert refused.place == "upgradeSettings.strategy"
    assert refused.reason == (
        "is 'SHORT_LIVED'; allowed: BLUE_GREEN, SURGE, by the rules of hashicorp/google-beta 8.0.0, read "
        "2026-11-22; use an allowed value, or preview without --offline if your newer provider accepts it"
    )


@pytest.mark.parametrize(
    "token,inputs",
    [
        (POOL, {"cluster": "c", "anArgumentOfNextYear": True}),
        (POOL, {"cluster": "c", "nodeConfig": {"anArgumentOfNextYear": True}}),
        (POOL, {"cluster": UNKNOWN}),
        (POOL, {"cluster": Secret("c")}),
        (POOL, {"cluster": "c", "initialNodeCount": "2"}),
        (QUEUE, {"visibilityTimeoutSeconds": "30", "fifoQueue": "false"}),
        ("gcp:compute/network:Network", {}),
        ("gcp:storage/bucketObject:BucketObject", {"whatever": 1}),
        ("kubernetes:core/v1:ConfigMap", {"data": {}}),
    ],
    ids=str,
)
def test_inputs_that_a_newer_provider_or_pulumi_accepts_are_ignored(token: str, inputs: dict[str, Any]) -> None:
    assert places(token, **inputs) == []


@pytest.mark.parametrize(
    "token,place,refused,taken",
    [
        (CLUSTER, "nodeVersion", {"nodeVersion": "1.35", "removeDefaultNodePool": True}, {"nodeVersion": "1.35"}),
        (
            CLUSTER,
            "nodeVersion",
            {"nodeVersion": "1.34.1-gke.1", "minMasterVersion": "1.35.1-gke.1"},
            {"nodeVersion": "1.35.1-gke.2", "minMasterVersion": "1.35.1-gke.1"},
        ),
        (CLUSTER, "skipNodePoolRefresh", {"skipNodePoolRefresh": True, "nodePools": [{"name": "a"}]}, {"skipNodePoolRefresh": True}),
        (
            CLUSTER,
            "clusterAutoscaling.autoProvisioningDefaults.upgradeSettings",
            {"clusterAutoscaling": {"autoProvisioningDefaults": {"upgradeSettings": {"strategy": "BLUE_GREEN", "maxSurge": 1}}}},
            {"clusterAutoscaling": {"autoProvisioningDefaults": {"upgradeSettings": {"strategy": "SURGE", "maxSurge": 1}}}},
        ),
        (
            EKS,
            "computeConfig",
            {"computeConfig": {"enabled": True}, "storageConfig": {"blockStorage": {"enabled": True}}},
            {
                "computeConfig": {"enabled": True},
                "storageConfig": {"blockStorage": {"enabled": True}},
                "kubernetesNetworkConfig": {"elasticLoadBalancing": {"enabled": True}},
            },
        ),
        (GATEWAY, "allocationId", {"connectivityType": "private", "allocationId": "eip-1"}, {"allocationId": "eip-1"}),
        (
            GATEWAY,
            "secondaryPrivateIpAddressCount",
            {"secondaryPrivateIpAddressCount": 2},
            {"connectivityType": "private", "secondaryPrivateIpAddressCount": 2},
        ),
        (GROUP, "partitionCount", {"strategy": "cluster", "partitionCount": 2}, {"strategy": "partition", "partitionCount": 2}),
        (GROUP, "spreadLevel", {"strategy": "cluster", "spreadLevel": "rack"}, {"strategy": "spread", "spreadLevel": "rack"}),
        (QUEUE, "name", {"name": "work.fifo"}, {"name": "work.fifo", "fifoQueue": True}),
        (QUEUE, "contentBasedDeduplication", {"contentBasedDeduplication": True}, {"contentBasedDeduplication": True, "fifoQueue": True}),
        (FILES_OF_EFS, "kmsKeyId", {"kmsKeyId": KEY}, {"kmsKeyId": UNKNOWN}),
        (LUSTRE, "kmsKeyId", {"kmsKeyId": KEY, "deploymentType": "SCRATCH_2"}, {"kmsKeyId": KEY, "deploymentType": "PERSISTENT_2"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_conflicting_inputs_are_refused_like_in_the_providers_code(
    token: str, place: str, refused: dict[str, Any], taken: dict[str, Any]
) -> None:
    needed: dict[str, dict[str, Any]] = {
        EKS: {"roleArn": "arn:aws:iam::111122223333:role/x", "vpcConfig": {"subnetIds": ["subnet-1"]}},
        GATEWAY: {"subnetId": "subnet-1"},
        LUSTRE: {"subnetIds": "subnet-1"},
    }

    assert place in places(token, **needed.get(token, {}), **refused)
    assert place not in places(token, **needed.get(token, {}), **taken)


NEED_MORE = {
    "enable_autopilot = true sets enable_intranode_visibility = true and networking_mode = VPC_NATIVE",
    "rule.expiration: exactly one of date, days, expired_object_delete_marker (a warning only)",
    "rule.filter: at most one of object_size_greater_than, object_size_less_than, prefix, and, tag (a warning only)",
    "versioning_configuration.status cannot go from Enabled or Suspended to Disabled",
    "storage_capacity: a smaller one replaces the file system, and any other one of SCRATCH_1",
}
"""Rules of whole plans that refuse nothing, or that need the existing resource.

See flexspot.lab.providers.cloud_rules.rule_differences.
"""


def test_every_rule_of_whole_plans_in_the_files_is_applied_or_refuses_nothing_of_one_resource() -> None:
    known = {
        (facts["pulumi"], rule)
        for file in FILES
        for facts in json.loads(file.read_text(encoding="utf-8"))["resources"].values()
        for rule in facts.get("plan_rules", [])
    }
    applied = {(token, rule) for token, rules in RULES.items() for rule in rules}

    assert applied <= known
    assert {rule for _, rule in known - applied} == NEED_MORE
