"""EfaSecurityGroup: nodes with EFA let each other in and out, and the VPC decides where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulumi
import pytest

from components.eks.efa_security_group import EfaSecurityGroup, EfaSecurityGroupArgs

GROUP = "aws:ec2/securityGroup:SecurityGroup"

Register = Callable[[Callable[[], object]], Any]


def args(**changes: Any) -> EfaSecurityGroupArgs:
    arguments: EfaSecurityGroupArgs = {"cluster": "platform", "vpc_id": "vpc-0a1b2c3d4e5f60718", "tags": {"owner": "ann"}}
    arguments.update(changes)  # pyrefly: ignore[no-matching-overload] -- what is wrong on purpose, too
    return arguments


def test_its_members_send_each_other_everything_and_it_opens_nothing_else(register: Register) -> None:
    made: list[EfaSecurityGroup] = []
    parents: dict[str, pulumi.Resource | None] = {}

    def record(resource: pulumi.ResourceTransformationArgs) -> None:
        parents[resource.name] = resource.opts.parent

    def declare() -> None:
        pulumi.runtime.register_stack_transformation(record)
        made.append(EfaSecurityGroup("efa", args()))

    [group] = register(declare).of(GROUP)

    rule = {"description": "EFA", "protocol": "-1", "fromPort": 0, "toPort": 0, "self": True}
    assert (group["ingress"], group["egress"]) == ([rule], [rule])
    assert (group["name"], group["vpcId"]) == ("efa-platform", "vpc-0a1b2c3d4e5f60718")
    assert group["tags"] == {"Name": "efa-platform", "owner": "ann"}
    assert parents == {"efa": None, "efa-security-group": made[0]}


def test_an_empty_name_is_refused_before_anything_is_registered(register: Register) -> None:
    def declare() -> None:
        with pytest.raises(ValueError, match="cluster is ''; it is part of the group's name"):
            EfaSecurityGroup("efa", args(cluster=""))

    assert register(declare).resources == []
