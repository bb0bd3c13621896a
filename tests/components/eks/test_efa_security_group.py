"""EfaSecurityGroup: nodes with EFA admit each other, in the given VPC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexspot.components.eks.network import EfaSecurityGroup, EfaSecurityGroupArgs

if TYPE_CHECKING:
    from component_types import Refusal, Register


def args(**changes: Any) -> EfaSecurityGroupArgs:
    # pyrefly: ignore[bad-return] -- some arguments are invalid on purpose
    return {"cluster": "platform", "vpc_id": "vpc-0a1b2c3d4e5f60718", "tags": {"owner": "ann"}} | changes


def test_it_allows_all_traffic_between_its_members_and_no_other(register: Register) -> None:
    [group] = register(lambda: EfaSecurityGroup("efa", args())).of("aws:ec2/securityGroup:SecurityGroup")

    rule = {"description": "EFA", "protocol": "-1", "fromPort": 0, "toPort": 0, "self": True}
    assert (group["ingress"], group["egress"]) == ([rule], [rule])
    assert (group["name"], group["vpcId"]) == ("efa-platform", "vpc-0a1b2c3d4e5f60718")
    assert group["tags"] == {"Name": "efa-platform", "owner": "ann"}


def test_an_empty_name_is_refused_before_anything_is_registered(refusal: Refusal) -> None:
    assert "cluster (is ''): must not be empty: the group's name contains it" in refusal(EfaSecurityGroup, "efa", args(cluster=""))
