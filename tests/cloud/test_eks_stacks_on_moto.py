"""The AWS resources of dev-eks are created in moto by the calls of the real provider, and have the intended attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from moto import mock_aws
from moto_account import ACCOUNT, MANAGED, MotoAccount, Up, asked, ec2, named, up
from program_declarations import shipped

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

NOT_KEPT = {
    "cluster": {"accessConfig", "bootstrapSelfManagedAddons", "deletionProtection", "upgradePolicy", "zonalShiftConfig"},
    "nodegroup": {"nodeRepairConfig", "updateConfig"},
}
"""Parts of an EKS request that moto 5.2.5 accepts and does not keep (moto/eks/models.py). Only the request is judged."""


@pytest.fixture(scope="module")
def run() -> Iterator[Up]:
    """Yield the stack while it is up."""
    with mock_aws(config=MANAGED):
        yield up("dev-eks", MotoAccount())


def stack_of(run: Up) -> str:
    return run.created["aws:eks/cluster:Cluster cluster-cluster"].identity


def way_out(run: Up, subnet: dict[str, Any]) -> set[str]:
    """Return the prefix of the id that a subnet's default route leads to."""
    tables = ec2(run, "route_tables", Filters=[{"Name": "association.subnet-id", "Values": [subnet["SubnetId"]]}])
    [table] = tables
    out = [each for each in table["Routes"] if each.get("DestinationCidrBlock") == "0.0.0.0/0"]
    return {str(each.get("NatGatewayId") or each.get("GatewayId")).partition("-")[0] for each in out}


def test_every_aws_resource_of_the_stack_is_created(run: Up) -> None:
    declared = [name for name in run.declarations.made if name.startswith("aws:")]

    assert sorted(run.created) == sorted(declared)
    assert len(declared) > 100


def test_subnets_are_in_their_zones_and_have_the_right_routes(run: Up) -> None:
    cluster, subnets = stack_of(run), named(run, "subnets")

    for zone in shipped(f"{cluster}-eks")["zones"]:
        private, public = subnets[f"{cluster}-private-{zone}"], subnets[f"{cluster}-public-{zone}"]
        assert {private["AvailabilityZone"], public["AvailabilityZone"]} == {zone}
        assert (way_out(run, private), way_out(run, public)) == ({"nat"}, {"igw"})
        assert not private["MapPublicIpOnLaunch"]
    control_plane = [each for name, each in subnets.items() if "-control-plane-" in name]
    assert len({each["AvailabilityZone"] for each in control_plane}) == 2
    assert [way_out(run, each) for each in control_plane] == [set(), set()]


def test_the_cluster_and_its_nodes_match_the_program(run: Up) -> None:
    name, subnets = stack_of(run), named(run, "subnets")
    eks: Any = run.account.client("eks")

    cluster = eks.describe_cluster(name=name)["cluster"]
    [group] = eks.list_nodegroups(clusterName=name)["nodegroups"]
    nodes = eks.describe_nodegroup(clusterName=name, nodegroupName=group)["nodegroup"]

    assert set(cluster["resourcesVpcConfig"]["subnetIds"]) == {
        each["SubnetId"] for key, each in subnets.items() if key.startswith(f"{name}-control-plane")
    }
    assert set(nodes["subnets"]) == {each["SubnetId"] for key, each in subnets.items() if key.startswith(f"{name}-private")}
    assert nodes["launchTemplate"]["id"] in {each["LaunchTemplateId"] for each in ec2(run, "launch_templates")}
    [create_cluster], [create_group] = asked(run, "CreateCluster"), asked(run, "CreateNodegroup")
    assert {key for key, value in create_cluster.items() if not same(cluster.get(key), value)} == NOT_KEPT["cluster"]
    kept = {**nodes, "launchTemplate": {key: nodes["launchTemplate"][key] for key in create_group["launchTemplate"]}}
    assert {key for key, value in create_group.items() if not same(kept.get(key), value)} == NOT_KEPT["nodegroup"]


def same(found: Any, wanted: Any) -> bool:
    """Return whether AWS has everything that was requested. It may have more."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(same(found.get(key), value) for key, value in wanted.items())
    return found == wanted


def test_every_role_has_existing_policies_and_none_of_another_team(run: Up) -> None:
    iam: Any = run.account.client("iam")
    attached: dict[str, list[str]] = {}
    for role in iam.list_roles()["Roles"]:
        name = role["RoleName"]
        policies = iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]
        attached[name] = [each["PolicyName"] for each in policies] + iam.list_role_policies(RoleName=name)["PolicyNames"]

    assert all(attached.values()), f"a role without a policy is for nothing: {attached}"
    # Moto refuses to attach an AWS policy that is not in its list, which is generated from AWS's own.
    assert attached[f"{stack_of(run)}-cluster"] == ["AmazonEKSClusterPolicy"]
    assert len(attached[f"KarpenterControllerRole-{stack_of(run)}"]) == 7


def test_add_ons_entries_and_identities_are_requested_in_their_order(run: Up) -> None:
    """Moto supports none of them, so the test judges the request, and what existed when it came."""
    order = [operation for _, operation, _ in run.account.asked]

    def first(operation: str, **wanted: str) -> int:
        return next(
            number
            for number, (_, name, parameters) in enumerate(run.account.asked)
            if name == operation and wanted.items() <= parameters.items()
        )

    assert {each["addonName"] for each in asked(run, "CreateAddon")} >= {"vpc-cni", "coredns", "kube-proxy", "eks-pod-identity-agent"}
    assert first("CreateAddon", addonName="vpc-cni") < order.index("CreateNodegroup") < first("CreateAddon", addonName="coredns")
    assert {each["type"] for each in asked(run, "CreateAccessEntry")} == {"EC2_LINUX"}
    assert {each["roleArn"].split(":")[4] for each in asked(run, "CreatePodIdentityAssociation")} == {ACCOUNT}
