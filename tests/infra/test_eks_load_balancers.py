"""AWS's load balancer controller in a stack: installed only on request, and deleted after everything that needs it."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import pytest
from eks_declarations import RELEASE, SYSTEM_NODES
from program_declarations import as_shipped, declared, shipped

if TYPE_CHECKING:
    from program_declarations import Declarations

pytestmark = pytest.mark.slow

CONTROLLER = f"{RELEASE} load-balancers-release"
NAMESPACE = "kubernetes:core/v1:Namespace"
ROLE_PARTS = {
    "aws:iam/role:Role load-balancers-role",
    "aws:iam/policy:Policy load-balancers-policy",
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment load-balancers-attachment",
    "aws:eks/podIdentityAssociation:PodIdentityAssociation load-balancers-association",
}


def controlled(**changes: Any) -> Declarations:
    return declared("dev-eks", shipped("dev-eks", controllers={"load_balancer_controller": {"install": True}}, **changes))


@functools.cache
def installed() -> Declarations:
    return controlled()


def test_the_controller_adds_its_resources_and_changes_no_other() -> None:
    before, after = as_shipped("dev-eks").made, installed().made

    components = {name for name in after if name.startswith("flexspot:")}
    assert set(after) - set(before) - components == {CONTROLLER, *ROLE_PARTS}
    assert {name for name in set(before) & set(after) - components if before[name].inputs != after[name].inputs} == set()


def test_a_namespace_is_deleted_before_the_controller_that_removes_finalizers_in_it() -> None:
    for team in shipped("dev-eks")["teams"]:
        namespace = f"{NAMESPACE} {team['name']}-namespace"
        assert {CONTROLLER, *ROLE_PARTS} <= installed().waits_for(namespace)


def test_the_controller_starts_after_its_nodes_and_role_exist() -> None:
    assert {SYSTEM_NODES, "aws:eks/addon:Addon cluster-eks-pod-identity-agent", *ROLE_PARTS} <= installed().waits_for(CONTROLLER)


def test_the_controller_runs_on_system_nodes_of_an_own_cluster_and_anywhere_on_an_existing_one() -> None:
    ours = installed().made[CONTROLLER].inputs["values"]
    there = {"existing_vpc": "vpc-0a1b2c3d4e5f60718", "existing_private_subnets": ["subnet-0a1b2c3d4e5f60718", "subnet-0a1b2c3d4e5f60719"]}
    cluster = shipped("dev-eks")["cluster"] | {"existing": "theirs"}
    theirs = controlled(cluster=cluster, network=there, zones=["us-east-1a", "us-east-1b"]).made[CONTROLLER].inputs["values"]

    assert ours["nodeSelector"] == {"flexspot.dev/system": "true"}
    assert ours["tolerations"] == [{"key": "CriticalAddonsOnly", "operator": "Exists"}]
    assert (theirs["nodeSelector"], theirs["tolerations"]) == ({}, [])
