"""Every condition of the rule files on which a provider replaces or refuses is applied here, or cannot come to it, with the reason."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from auto_mode_settings import auto_mode_settings
from plan_rules import RULES, broken
from program_declarations import as_shipped, declared, shipped
from resource_rules import rules_by_type
from rule_differences import NEVER, WHEN


@cache
def used() -> dict[str, list[dict[str, Any]]]:
    """The inputs of every type of AWS's and Google's that a stack makes, with file systems, work queues and Auto Mode among them."""
    first, *others = shipped("dev-eks")["teams"]
    more = {
        "storage": {"checkpoints": "efs", "datasets": "lustre"},
        "controllers": {"load_balancer_controller": {"install": True}},
        "teams": [{**first, "work_queue": {}}, *others],
    }
    autopilot = shipped("dev-gke")
    stacks = [as_shipped(stack) for stack in ("dev-eks", "prod-eks", "dev-gke", "prod-gke")]
    stacks += [declared("dev-eks", shipped("dev-eks", **more)), declared("auto", auto_mode_settings())]
    stacks.append(declared("dev-gke", {**autopilot, "storage": autopilot.get("storage", {}) | {"checkpoint_days": 3}}))
    found: dict[str, list[dict[str, Any]]] = {}
    for stack in stacks:
        for each in stack.made.values():
            if each.type in rules_by_type():
                found.setdefault(each.type, []).append(each.inputs)
    return found


def conditions() -> set[tuple[str, str]]:
    """The attributes of these types that replace in some cases alone."""
    rules = [rules_by_type()[token] for token in used()]
    return {(each.token, path) for each in rules for path, attribute in each.attributes.items() if "force_new_when" in attribute.facts}


def test_every_condition_on_which_a_provider_replaces_is_applied_or_cannot_come_to_it() -> None:
    assert len(conditions()) > 20
    assert conditions() - WHEN.keys() == NEVER.keys() & conditions()
    assert NEVER.keys() - conditions() == set(), "a reason for what nobody asks"
    assert NEVER.keys() & WHEN.keys() == set()


@pytest.mark.parametrize("token,path", sorted(NEVER))
def test_what_cannot_come_to_it_is_set_by_no_stack(token: str, path: str) -> None:
    attribute = rules_by_type()[token].attributes[path]
    if path == "per_unit_storage_throughput":
        # It is set, and what it would replace for is not.
        attribute = rules_by_type()[token].attributes["efa_enabled"]
    names = [
        rules_by_type()[token].attributes[".".join(attribute.path.split(".")[: n + 1])].pulumi_name for n in range(path.count(".") + 1)
    ]

    def given(inputs: Any, left: list[str]) -> bool:
        return not left or (isinstance(inputs, dict) and left[0] in inputs and given(inputs[left[0]], left[1:]))

    assert [inputs for inputs in used()[token] if given(inputs, names)] == []


def test_every_rule_over_a_whole_plan_is_code_or_has_a_reason() -> None:
    texts = {text for rules in rules_by_type().values() for text in rules.facts.get("plan_rules") or []}

    assert len(texts) > 10
    assert texts == RULES.keys()


def test_no_stack_breaks_a_rule_over_a_whole_plan() -> None:
    assert [rule for token, all_inputs in used().items() for inputs in all_inputs for rule in broken(token, inputs)] == []


@pytest.mark.parametrize(
    "token,inputs",
    [
        ("aws:ec2/natGateway:NatGateway", {"connectivityType": "private", "allocationId": "eipalloc-1"}),
        ("aws:ec2/natGateway:NatGateway", {"secondaryPrivateIpAddressCount": 2}),
        ("aws:ec2/placementGroup:PlacementGroup", {"strategy": "cluster", "partitionCount": 2}),
        ("aws:ec2/placementGroup:PlacementGroup", {"strategy": "cluster", "spreadLevel": "rack"}),
        ("aws:efs/fileSystem:FileSystem", {"kmsKeyId": "arn"}),
        ("aws:eks/cluster:Cluster", {"computeConfig": {"enabled": True}}),
        ("aws:fsx/lustreFileSystem:LustreFileSystem", {"kmsKeyId": "arn", "deploymentType": "SCRATCH_2"}),
        (
            "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration",
            {"rules": [{"expiration": {"days": 3, "date": "2026-11-26"}}]},
        ),
        ("aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration", {"rules": [{"filter": {"prefix": "a", "tag": {}}}]}),
        ("aws:s3/bucketVersioning:BucketVersioning", {"versioningConfiguration": {"status": "Disabled"}}),
        ("aws:sqs/queue:Queue", {"name": "a.fifo"}),
        ("aws:sqs/queue:Queue", {"name": "a", "contentBasedDeduplication": True}),
        ("gcp:container/cluster:Cluster", {"nodeVersion": "1.35", "minMasterVersion": "1.35", "removeDefaultNodePool": True}),
        ("gcp:container/cluster:Cluster", {"nodeVersion": "1.34", "minMasterVersion": "1.35"}),
        (
            "gcp:container/cluster:Cluster",
            {"clusterAutoscaling": {"autoProvisioningDefaults": {"upgradeSettings": {"maxSurge": 1, "strategy": "BLUE_GREEN"}}}},
        ),
        ("gcp:container/cluster:Cluster", {"skipNodePoolRefresh": True, "nodePools": [{}]}),
        ("gcp:container/cluster:Cluster", {"enableAutopilot": True, "networkingMode": "ROUTES"}),
    ],
)
def test_a_plan_that_breaks_a_rule_is_told(token: str, inputs: dict[str, Any]) -> None:
    assert len(list(broken(token, inputs))) == 1
