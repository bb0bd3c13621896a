"""File systems of EFS in a stack: what they add, who reaches them, and what becomes of a team's files when their kind changes."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import pytest
from eks_declarations import NODE_POOL
from engine_steps import Operation, steps
from program_declarations import as_shipped, declared, shipped

from infra.deployment.losses import Held, held

if TYPE_CHECKING:
    from engine_steps import Run
    from program_declarations import Declarations

pytestmark = pytest.mark.slow

FILE_SYSTEM = "aws:efs/fileSystem:FileSystem"
POLICY = "aws:efs/fileSystemPolicy:FileSystemPolicy"
MOUNT_TARGET = "aws:efs/mountTarget:MountTarget"
ACCESS_POINT = "aws:efs/accessPoint:AccessPoint"
NFS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
VOLUME = "kubernetes:core/v1:PersistentVolume"
CLAIM = "kubernetes:core/v1:PersistentVolumeClaim"
DRIVER = "aws:eks/addon:Addon cluster-aws-efs-csi-driver"

BOTH = {"checkpoints": "efs", "datasets": "efs"}

both_stacks = pytest.mark.parametrize("stack", ["dev-eks", "prod-eks"])


@functools.cache
def deployed(stack: str, **storage: str) -> Declarations:
    return declared(stack, shipped(stack, storage=shipped(stack).get("storage", {}) | storage), there=True)


def moved(stack: str, before: dict[str, str], after: dict[str, str]) -> Run:
    return steps(deployed(stack, **before), deployed(stack, **after))


def teams_of(stack: str) -> list[str]:
    return [team["name"] for team in shipped(stack)["teams"]]


@both_stacks
def test_no_stack_has_any_that_does_not_ask_for_it(stack: str) -> None:
    made = as_shipped(stack).made

    assert [name for name in made if "efs" in name.lower()] == []


@both_stacks
def test_each_private_subnet_has_a_mount_target_that_the_nodes_alone_reach(stack: str) -> None:
    declarations = deployed(stack, **BOTH)

    for purpose in BOTH:
        targets = [each for each in declarations.of(MOUNT_TARGET) if each.name.startswith(f"{purpose}-efs-")]
        zones = shipped(stack)["zones"]
        assert [each.inputs["subnetId"] for each in targets] == [f"<aws:ec2/subnet:Subnet network-private-{zone}>" for zone in zones]
        groups = [f"<aws:ec2/securityGroup:SecurityGroup {purpose}-efs-security-group>"]
        assert [each.inputs["securityGroups"] for each in targets] == [groups] * len(zones)
        [rule] = [each.inputs for each in declarations.of(NFS) if each.name == f"{purpose}-efs-nfs"]
        assert rule["referencedSecurityGroupId"] == "sg of <aws:eks/cluster:Cluster cluster-cluster>"
        assert "cidrIpv4" not in rule


@both_stacks
def test_each_team_mounts_its_own_access_point_once_the_policy_and_the_mount_targets_are_there(stack: str) -> None:
    declarations = deployed(stack, **BOTH)

    for team in teams_of(stack):
        for purpose in BOTH:
            volume = declarations.made[f"{VOLUME} {team}-{purpose}-volume"].inputs["spec"]["csi"]
            handle = f"<{FILE_SYSTEM} {purpose}-efs-file-system>::<{ACCESS_POINT} {purpose}-efs-{team}>"
            assert (volume["driver"], volume["volumeHandle"]) == ("efs.csi.aws.com", handle)
            waited = declarations.waits_for(f"{VOLUME} {team}-{purpose}-volume")
            assert {
                f"{POLICY} {purpose}-efs-policy",
                *(f"{MOUNT_TARGET} {purpose}-efs-{zone}" for zone in shipped(stack)["zones"]),
            } <= waited
    for target in declarations.of(MOUNT_TARGET):
        purpose = target.name.partition("-efs-")[0]
        assert f"{POLICY} {purpose}-efs-policy" in declarations.waits_for(f"{MOUNT_TARGET} {target.name}")


@both_stacks
def test_files_are_encrypted_and_what_nobody_can_make_again_is_protected(stack: str) -> None:
    made = {each.name: each for each in deployed(stack, **BOTH).of(FILE_SYSTEM)}

    assert [each.inputs["encrypted"] for each in made.values()] == [True, True]
    assert made["datasets-efs-file-system"].protected
    assert made["checkpoints-efs-file-system"].protected is (stack == "prod-eks")


def test_a_person_says_whether_a_file_system_may_go() -> None:
    storage = BOTH | {"efs": {"deletion_protection": False}}

    assert [each.protected for each in declared("prod-eks", shipped("prod-eks", storage=storage)).of(FILE_SYSTEM)] == [False, False]


@both_stacks
def test_nodes_take_pods_once_the_driver_is_there(stack: str) -> None:
    before, after = as_shipped(stack), deployed(stack, **BOTH)

    assert DRIVER in after.made
    for declarations, there in ((before, False), (after, True)):
        for pool in declarations.inputs_of(NODE_POOL):
            started = pool["spec"]["template"]["spec"]["startupTaints"]
            assert ("efs.csi.aws.com/agent-not-ready" in {each["key"] for each in started}) is there


def test_on_a_cluster_that_is_there_it_is_in_the_subnets_that_are_named_and_the_driver_is_its_owners() -> None:
    subnets = ["subnet-0a1b2c3d4e5f60718", "subnet-0a1b2c3d4e5f60719"]
    there = {"existing_vpc": "vpc-0a1b2c3d4e5f60718", "existing_private_subnets": subnets}
    cluster = shipped("dev-eks")["cluster"] | {"existing": "theirs"}
    settings = shipped("dev-eks", cluster=cluster, network=there, zones=["us-east-1a", "us-east-1b"], storage={"datasets": "efs"})
    found = declared("dev-eks", settings)

    assert [each["subnetId"] for each in found.inputs_of(MOUNT_TARGET)] == subnets
    assert DRIVER not in found.made


def lost(run: Run, declarations: Declarations) -> dict[str, Held]:
    """What a run takes away that holds something, as the preview's words have it."""
    found: dict[str, Held] = {}
    for step in run.lost:
        parent = declarations.made[step.name].parent.partition(" ")[0]
        if (holds := held(f"{parent}${step.kind}")) is not None:
            found[step.name] = holds
    return found


@both_stacks
@pytest.mark.parametrize("purpose", sorted(BOTH))
def test_from_s3_to_efs_claims_alone_are_made_anew_and_nothing_that_has_files_goes(stack: str, purpose: str) -> None:
    run = moved(stack, {}, {purpose: "efs"})

    assert run.refused == []
    assert run.of(Operation.DELETE) == []
    claims = {f"{CLAIM} {team}-{purpose}-claim" for team in teams_of(stack)}
    volumes = {f"{VOLUME} {team}-{purpose}-volume" for team in teams_of(stack)}
    assert {each.name for each in run.of(Operation.REPLACE)} == claims | volumes
    assert lost(run, deployed(stack)) == dict.fromkeys(claims, Held.TEAM_STORAGE)
    # A claim keeps its name: the old one goes first, or the API server refuses the new one.
    assert all(each.first for each in run.of(Operation.REPLACE) if each.kind == CLAIM)


def test_back_to_s3_a_file_system_that_is_protected_is_not_deleted() -> None:
    run = moved("prod-eks", BOTH, {})

    assert sorted(run.refused) == [f"{FILE_SYSTEM} checkpoints-efs-file-system", f"{FILE_SYSTEM} datasets-efs-file-system"]


def test_back_to_s3_a_file_system_that_is_not_protected_goes_and_is_said_to_go() -> None:
    run = moved("dev-eks", {"checkpoints": "efs"}, {})

    assert run.refused == []
    found = lost(run, deployed("dev-eks", checkpoints="efs"))
    assert [name for name, holds in found.items() if holds is Held.FILE_SYSTEM] == [f"{FILE_SYSTEM} checkpoints-efs-file-system"]


@both_stacks
def test_a_team_more_or_fewer_touches_no_other_teams_door_nor_files(stack: str) -> None:
    settings = shipped(stack, storage=shipped(stack).get("storage", {}) | BOTH)
    first = settings["teams"][0]
    aaa = {"name": "aaa"} | {key: first[key] for key in ("cohort",) if key in first}
    more = declared(stack, settings | {"teams": [*settings["teams"], aaa]}, there=True)
    run, back = steps(deployed(stack, **BOTH), more), steps(more, deployed(stack, **BOTH))

    assert [each.name for each in run.lost] == []
    efs = {each.name for each in back.lost if each.kind.startswith("aws:efs/")}
    assert efs == {f"{ACCESS_POINT} {purpose}-efs-aaa" for purpose in BOTH}


def test_another_key_of_a_protected_file_system_is_refused_before_anything_is_lost() -> None:
    key = "arn:aws:kms:us-east-1:111122223333:key/0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
    before = deployed("prod-eks", **BOTH)

    run = steps(before, deployed("prod-eks", **BOTH, encryption_key=key))

    assert f"{FILE_SYSTEM} datasets-efs-file-system" in run.refused
