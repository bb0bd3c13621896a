"""AWS's load balancer controller in a stack: only where it is wanted, and there until nothing is left that waits for it."""

from __future__ import annotations

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

both_stacks = pytest.mark.parametrize("stack", ["dev-eks", "prod-eks"])


def installed(stack: str, **changes: Any) -> Declarations:
    return declared(stack, shipped(stack, controllers={"load_balancer_controller": {"install": True}}, **changes))


@both_stacks
def test_no_stack_has_it_that_does_not_ask_for_it(stack: str) -> None:
    assert {name for name in as_shipped(stack).made if "load-balancer" in name} == set()


@both_stacks
def test_it_adds_itself_and_changes_nothing_else(stack: str) -> None:
    before, after = as_shipped(stack).made, installed(stack).made

    components = {name for name in after if name.startswith("flexspot:")}
    assert set(after) - set(before) - components == {CONTROLLER, *ROLE_PARTS}
    assert {name for name in set(before) & set(after) - components if before[name].inputs != after[name].inputs} == set()


@both_stacks
def test_a_namespace_is_deleted_before_the_controller_that_takes_the_finalizers_off_what_is_in_it(stack: str) -> None:
    declarations = installed(stack)

    for team in shipped(stack)["teams"]:
        namespace = f"{NAMESPACE} {team['name']}-namespace"
        assert namespace in declarations.made
        assert {CONTROLLER, *ROLE_PARTS} <= declarations.waits_for(namespace)


@both_stacks
def test_it_starts_once_its_pods_have_nodes_and_a_role(stack: str) -> None:
    declarations = installed(stack)

    assert {SYSTEM_NODES, "aws:eks/addon:Addon cluster-eks-pod-identity-agent", *ROLE_PARTS} <= declarations.waits_for(CONTROLLER)


@both_stacks
def test_its_role_is_made_by_the_stacks_provider_of_aws_and_its_release_by_that_of_the_cluster(stack: str) -> None:
    declarations = installed(stack)

    assert all("pulumi:providers:aws::aws::" in declarations.made[name].provider for name in ROLE_PARTS)
    assert "pulumi:providers:kubernetes::cluster::" in declarations.made[CONTROLLER].provider


def test_on_a_cluster_of_ours_it_runs_on_the_system_nodes_and_else_where_there_is_room() -> None:
    ours = installed("dev-eks").made[CONTROLLER].inputs["values"]
    there = {"existing_vpc": "vpc-0a1b2c3d4e5f60718", "existing_private_subnets": ["subnet-0a1b2c3d4e5f60718", "subnet-0a1b2c3d4e5f60719"]}
    cluster = shipped("dev-eks")["cluster"] | {"existing": "theirs"}
    theirs = installed("dev-eks", cluster=cluster, network=there, zones=["us-east-1a", "us-east-1b"]).made[CONTROLLER].inputs["values"]

    assert ours["nodeSelector"] == {"flexspot.dev/system": "true"}
    assert ours["tolerations"] == [{"key": "CriticalAddonsOnly", "operator": "Exists"}]
    assert (theirs["nodeSelector"], theirs["tolerations"]) == ({}, [])


@both_stacks
def test_the_networks_of_the_stacks_tell_it_which_subnets_are_for_load_balancers(stack: str) -> None:
    """By the tags that it looks for (docs/deploy/subnet_discovery.md of its repository)."""
    subnets = installed(stack).inputs_of("aws:ec2/subnet:Subnet")
    roles = [key for each in subnets for key in each["tags"] if key.startswith("kubernetes.io/role/")]

    assert roles.count("kubernetes.io/role/elb") == roles.count("kubernetes.io/role/internal-elb") == len(shipped(stack)["zones"])
