"""The providers' interpretation of a change of inputs."""

from __future__ import annotations

from typing import Any

import pytest

from flexspot.lab.providers.cloud_rules.rule_differences import changes

POOL = "gcp:container/nodePool:NodePool"
SUBNET = "gcp:compute/subnetwork:Subnetwork"
INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"


def seen(token: str, old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, str, bool]]:
    return [(each.written, str(each.change), each.replaces) for each in changes(token, old, new)]


@pytest.mark.parametrize(
    "token,old,new,expected",
    [
        (
            POOL,
            {"autoscaling": {"totalMaxNodeCount": 4}},
            {"autoscaling": {"totalMaxNodeCount": 8}},
            ("autoscaling.totalMaxNodeCount", False),
        ),
        (POOL, {"nodeConfig": {"spot": True}}, {"nodeConfig": {"spot": False}}, ("nodeConfig.spot", True)),
        (POOL, {"nodeConfig": {"labels": {"a": "1"}}}, {"nodeConfig": {"labels": {"a": "2"}}}, ("nodeConfig.labels.a", False)),
        (POOL, {"name": "a"}, {"name": "b"}, ("name", True)),
        ("gcp:projects/iAMMember:IAMMember", {"role": "a"}, {"role": "b"}, ("role", True)),
        ("aws:eks/cluster:Cluster", {"version": "1.34"}, {"version": "1.35"}, ("version", False)),
        ("aws:iam/role:Role", {"name": "a"}, {"name": "b"}, ("name", True)),
        (SUBNET, {"ipCidrRange": "10.8.0.0/20"}, {"ipCidrRange": "10.8.0.0/16"}, ("ipCidrRange", False)),
        (SUBNET, {"ipCidrRange": "10.8.0.0/20"}, {"ipCidrRange": "10.9.0.0/20"}, ("ipCidrRange", True)),
        (INGRESS, {"cidrIpv4": "10.0.0.0/8"}, {"cidrIpv4": "10.0.0.0/16"}, ("cidrIpv4", False)),
    ],
)
def test_the_provider_says_whether_a_change_is_made_in_place(
    token: str, old: dict[str, Any], new: dict[str, Any], expected: tuple[str, bool]
) -> None:
    assert [(path, replaces) for path, _, replaces in seen(token, old, new)] == [expected]


def test_leaving_out_what_the_cloud_fills_in_is_no_change() -> None:
    assert seen(POOL, {"version": "1.35"}, {}) == []


def test_removing_an_entry_of_an_explicit_list_is_a_change() -> None:
    zones = [{"nodeLocations": names} for names in (["a", "b", "c"], ["a", "b"])]

    assert seen("gcp:container/cluster:Cluster", *zones) == [("nodeLocations[2]", "DELETE", False)]


def test_neither_writing_down_a_default_nor_leaving_it_out_is_a_change() -> None:
    assert seen("aws:s3/bucket:Bucket", {}, {"forceDestroy": False}) == []
    assert seen("aws:s3/bucket:Bucket", {"forceDestroy": False}, {}) == []
    assert seen("aws:s3/bucket:Bucket", {}, {"forceDestroy": True}) == [("forceDestroy", "ADD", False)]


def test_reordering_a_set_is_no_change_and_reordering_a_list_is_one() -> None:
    scopes = {"nodeConfig": {"oauthScopes": ["a", "b"]}}

    assert seen(POOL, scopes, {"nodeConfig": {"oauthScopes": ["b", "a"]}}) == []
    disks = [{"blockDeviceMappings": [{"deviceName": each} for each in names]} for names in (["a", "b"], ["b", "a"])]
    assert len(seen("aws:ec2/launchTemplate:LaunchTemplate", *disks)) == 2


def test_adding_or_removing_a_block_replaces_if_its_fields_do() -> None:
    assert seen(POOL, {}, {"queuedProvisioning": {"enabled": True}}) == [("queuedProvisioning", "ADD", True)]


def test_a_resource_without_rules_is_changed_in_place() -> None:
    assert seen("cloud:things/thing:Thing", {"a": 1}, {"a": 2}) == [("a", "UPDATE", False)]
