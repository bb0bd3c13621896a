"""What only the clouds' APIs refuse of a change in place."""

from __future__ import annotations

from typing import Any

import pytest
from api_refusals import EKS_CLUSTER, NODE_GROUP, SUBNETWORK, refused_changes

ZONES = {"subnet-1": "us-east-1a", "subnet-2": "us-east-1b", "subnet-3": "us-east-1c", "subnet-4": "us-east-1b"}


def refused(token: str, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    return [rule for rule, _ in refused_changes(token, old, new, lambda subnet: ZONES.get(subnet, ""))]


def cluster(version: str = "1.35", *subnets: str) -> dict[str, Any]:
    return {"version": version, "vpcConfig": {"subnetIds": list(subnets or ("subnet-1", "subnet-2"))}}


@pytest.mark.parametrize("version,rules", [("1.34", ["version"]), ("1.35", []), ("1.36", []), ("1.37", ["version"])])
def test_eks_goes_up_one_version_at_a_time(version: str, rules: list[str]) -> None:
    assert refused(EKS_CLUSTER, cluster(), cluster(version)) == rules


def test_a_control_plane_stays_in_its_zones_and_may_change_its_subnets() -> None:
    assert refused(EKS_CLUSTER, cluster(), cluster("1.35", "subnet-1", "subnet-3")) == ["subnet-zones"]
    assert refused(EKS_CLUSTER, cluster(), cluster("1.35", "subnet-1", "subnet-4")) == []
    # Of somebody else's subnets nobody here knows the zone.
    assert refused(EKS_CLUSTER, cluster(), cluster("1.35", "subnet-1", "subnet-9")) == []


def test_a_node_group_goes_back_to_no_version() -> None:
    assert refused(NODE_GROUP, {"version": "1.35"}, {"version": "1.34"}) == ["node-group-version"]
    assert refused(NODE_GROUP, {"version": "1.35"}, {"version": "1.36"}) == []


def test_a_range_that_a_cluster_uses_stays_as_it_is() -> None:
    def ranges(**named: str) -> dict[str, Any]:
        return {"secondaryIpRanges": [{"rangeName": name, "ipCidrRange": cidr} for name, cidr in named.items()]}

    old = ranges(pods="10.64.0.0/14", services="10.9.0.0/20")
    assert refused(SUBNETWORK, old, ranges(pods="10.72.0.0/14", services="10.9.0.0/20")) == ["range-in-use"]
    assert refused(SUBNETWORK, old, ranges(services="10.9.0.0/20")) == ["range-in-use"]
    assert refused(SUBNETWORK, old, ranges(services="10.9.0.0/20", pods="10.64.0.0/14", more="10.80.0.0/14")) == []
