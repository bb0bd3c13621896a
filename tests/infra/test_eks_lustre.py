"""A file system of Lustre in a stack: where it is, who reaches it, and what becomes of datasets when their kind or its options change."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import pytest
from declared_inputs import refused_inputs
from eks_declarations import NODE_POOL
from engine_steps import Operation, steps
from program_declarations import as_shipped, declared, shipped

if TYPE_CHECKING:
    from program_declarations import Declarations

pytestmark = pytest.mark.slow

FILE_SYSTEM = "aws:fsx/lustreFileSystem:LustreFileSystem"
LINK = "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation"
INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
EGRESS = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
BUCKET = "aws:s3/bucket:Bucket"
VOLUME = "kubernetes:core/v1:PersistentVolume"
CLAIM = "kubernetes:core/v1:PersistentVolumeClaim"
DRIVER = "aws:eks/addon:Addon cluster-aws-fsx-csi-driver"
MADE = f"{FILE_SYSTEM} datasets-lustre-file-system"

both_stacks = pytest.mark.parametrize("stack", ["dev-eks", "prod-eks"])


@functools.cache
def in_s3(stack: str) -> Declarations:
    return declared(stack, shipped(stack), there=True)


def in_lustre(stack: str, **lustre: Any) -> Declarations:
    storage = shipped(stack).get("storage", {}) | {"datasets": "lustre"} | ({"lustre": lustre} if lustre else {})
    return declared(stack, shipped(stack, storage=storage), there=True)


def teams_of(stack: str) -> list[str]:
    return [team["name"] for team in shipped(stack)["teams"]]


@both_stacks
def test_no_stack_has_one_that_does_not_ask_for_it(stack: str) -> None:
    made = as_shipped(stack).made

    assert [name for name in made if "lustre" in name.lower() or "fsx" in name.lower()] == []


@both_stacks
def test_it_is_in_the_private_subnet_of_the_first_zone_once_its_servers_may_talk(stack: str) -> None:
    declarations = in_lustre(stack)

    [made] = declarations.inputs_of(FILE_SYSTEM)
    assert made["subnetIds"] == f"<aws:ec2/subnet:Subnet network-private-{shipped(stack)['zones'][0]}>"
    group = "<aws:ec2/securityGroup:SecurityGroup datasets-lustre-security-group>"
    assert made["securityGroupIds"] == [group]
    rules = {
        f"{kind} {each.name}" for kind in (INGRESS, EGRESS) for each in declarations.of(kind) if each.name.startswith("datasets-lustre-")
    }
    assert len(rules) == 10
    assert rules <= declarations.waits_for(MADE)
    nodes = "sg of <aws:eks/cluster:Cluster cluster-cluster>"
    peers = {
        each.inputs["referencedSecurityGroupId"] for kind in (INGRESS, EGRESS) for each in declarations.of(kind) if each.name in str(rules)
    }
    assert peers == {group, nodes}


@pytest.mark.parametrize("lustre", [{}, {"deployment": "SCRATCH_2"}, {"capacity_gib": 24000, "throughput_mbps_per_tib": 1000}], ids=str)
def test_the_provider_takes_every_input(lustre: dict[str, Any]) -> None:
    made = declared("dev-eks", shipped("dev-eks", storage={"datasets": "lustre", "lustre": lustre})).made

    assert MADE in made
    assert refused_inputs(made.values()) == []


def test_it_is_in_the_zone_that_is_asked_for() -> None:
    [made] = in_lustre("dev-eks", zone="us-east-1b").inputs_of(FILE_SYSTEM)

    assert made["subnetIds"] == "<aws:ec2/subnet:Subnet network-private-us-east-1b>"


@both_stacks
def test_teams_mount_it_once_it_shows_the_bucket_and_the_bucket_is_private(stack: str) -> None:
    declarations = in_lustre(stack)

    [link] = declarations.inputs_of(LINK)
    assert link["fileSystemId"] == f"<{MADE}>"
    assert f"{BUCKET} datasets-bucket" in declarations.waits_for(f"{LINK} datasets-lustre-bucket")
    assert "aws:s3/bucketPolicy:BucketPolicy datasets-policy" in declarations.waits_for(f"{LINK} datasets-lustre-bucket")
    for team in teams_of(stack):
        spec = declarations.made[f"{VOLUME} {team}-datasets-volume"].inputs["spec"]
        assert (spec["csi"]["driver"], spec["csi"]["volumeHandle"]) == ("fsx.csi.aws.com", f"<{MADE}>::{team}")
        assert spec["mountOptions"] == ["ro", "flock"]
        assert f"{LINK} datasets-lustre-bucket" in declarations.waits_for(f"{VOLUME} {team}-datasets-volume")
        # Checkpoints are where they were.
        assert declarations.made[f"{VOLUME} {team}-checkpoints-volume"].inputs["spec"]["csi"]["driver"] == "s3.csi.aws.com"


@both_stacks
def test_it_is_protected_in_production_or_where_somebody_says_so(stack: str) -> None:
    assert in_lustre(stack).made[MADE].protected is (stack == "prod-eks")
    assert in_lustre(stack, deletion_protection=stack == "dev-eks").made[MADE].protected is (stack == "dev-eks")


@both_stacks
def test_nodes_take_pods_once_the_driver_is_there(stack: str) -> None:
    before, after = as_shipped(stack), in_lustre(stack)

    assert DRIVER in after.made
    for declarations, there in ((before, False), (after, True)):
        for pool in declarations.inputs_of(NODE_POOL):
            started = pool["spec"]["template"]["spec"]["startupTaints"]
            assert ("fsx.csi.aws.com/agent-not-ready" in {each["key"] for each in started}) is there


def test_on_a_cluster_that_is_there_it_is_in_a_subnet_that_is_named_and_the_driver_is_its_owners() -> None:
    subnets = ["subnet-0a1b2c3d4e5f60718", "subnet-0a1b2c3d4e5f60719"]
    there = {"existing_vpc": "vpc-0a1b2c3d4e5f60718", "existing_private_subnets": subnets}
    cluster = shipped("dev-eks")["cluster"] | {"existing": "theirs"}
    storage = {"datasets": "lustre", "lustre": {"zone": "us-east-1b"}}
    found = declared("dev-eks", shipped("dev-eks", cluster=cluster, network=there, zones=["us-east-1a", "us-east-1b"], storage=storage))

    assert [each["subnetIds"] for each in found.inputs_of(FILE_SYSTEM)] == [subnets[1]]
    assert DRIVER not in found.made


@both_stacks
def test_from_s3_to_lustre_and_back_claims_alone_are_made_anew_and_no_bucket_goes(stack: str) -> None:
    run, back = steps(in_s3(stack), in_lustre(stack)), steps(in_lustre(stack, deletion_protection=False), in_s3(stack))

    objects = {f"{kind} {team}-datasets-{what}" for team in teams_of(stack) for kind, what in ((CLAIM, "claim"), (VOLUME, "volume"))}
    assert (run.refused, run.of(Operation.DELETE)) == ([], [])
    assert {each.name for each in run.of(Operation.REPLACE)} == objects
    assert {each.name for each in back.of(Operation.REPLACE)} == objects
    assert [each.name for each in (*run.lost, *back.lost) if each.kind == BUCKET] == []
    assert MADE in {each.name for each in back.of(Operation.DELETE)}
    # A claim keeps its name: the old one goes first, or the API server refuses the new one.
    assert all(each.first for each in run.of(Operation.REPLACE) if each.kind == CLAIM)


def test_it_grows_and_gets_faster_in_place() -> None:
    run = steps(in_lustre("prod-eks"), in_lustre("prod-eks", capacity_gib=2400, throughput_mbps_per_tib=500))

    assert (run.refused, [each.name for each in run.lost]) == ([], [])
    assert MADE in {each.name for each in run.of(Operation.UPDATE)}


@pytest.mark.parametrize("change", [{"capacity_gib": 1200}, {"deployment": "SCRATCH_2"}, {"zone": "us-east-1b"}], ids=str)
def test_what_would_make_a_protected_one_anew_is_refused_before_anything_is_lost(change: dict[str, Any]) -> None:
    run = steps(in_lustre("prod-eks", capacity_gib=2400), in_lustre("prod-eks", **({"capacity_gib": 2400} | change)))

    assert run.refused == [MADE]


def test_a_team_more_or_fewer_touches_no_other_teams_claim_nor_the_file_system() -> None:
    settings = shipped("dev-eks", storage={"datasets": "lustre"})
    first = settings["teams"][0]
    aaa = {"name": "aaa"} | {key: first[key] for key in ("cohort",) if key in first}
    more = declared("dev-eks", settings | {"teams": [*settings["teams"], aaa]}, there=True)
    run, back = steps(in_lustre("dev-eks"), more), steps(more, in_lustre("dev-eks"))

    assert [each.name for each in run.lost] == []
    assert [each.name for each in back.lost if each.kind.startswith("aws:fsx/")] == []
