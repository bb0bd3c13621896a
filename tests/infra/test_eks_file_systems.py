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
LUSTRE = "aws:fsx/lustreFileSystem:LustreFileSystem"
DRIVERS = {name: f"aws:eks/addon:Addon cluster-aws-{name}-csi-driver" for name in ("efs", "fsx")}

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
def test_files_are_encrypted_and_what_nobody_can_make_again_is_protected(stack: str) -> None:
    made = {each.name: each for each in deployed(stack, **BOTH).of(FILE_SYSTEM)}

    assert [each.inputs["encrypted"] for each in made.values()] == [True, True]
    assert made["datasets-efs-file-system"].protected
    assert made["checkpoints-efs-file-system"].protected is (stack == "prod-eks")


def test_a_person_says_whether_a_file_system_may_go() -> None:
    storage = BOTH | {"efs": {"deletion_protection": False}}

    assert [each.protected for each in declared("prod-eks", shipped("prod-eks", storage=storage)).of(FILE_SYSTEM)] == [False, False]


def lost(run: Run, declarations: Declarations) -> dict[str, Held]:
    """What a run takes away that holds something, as the preview's words have it."""
    found: dict[str, Held] = {}
    for step in run.lost:
        parent = declarations.made[step.name].parent.partition(" ")[0]
        if (holds := held(f"{parent}${step.kind}")) is not None:
            found[step.name] = holds
    return found


def test_back_to_s3_a_file_system_that_is_protected_is_not_deleted() -> None:
    run = moved("prod-eks", BOTH, {})

    assert sorted(run.refused) == [f"{FILE_SYSTEM} checkpoints-efs-file-system", f"{FILE_SYSTEM} datasets-efs-file-system"]


def test_back_to_s3_a_file_system_that_is_not_protected_goes_and_is_said_to_go() -> None:
    run = moved("dev-eks", {"checkpoints": "efs"}, {})

    assert run.refused == []
    found = lost(run, deployed("dev-eks", checkpoints="efs"))
    assert [name for name, holds in found.items() if holds is Held.FILE_SYSTEM] == [f"{FILE_SYSTEM} checkpoints-efs-file-system"]


def test_each_private_subnet_has_a_mount_target_that_the_nodes_alone_reach() -> None:
    declarations, zones = deployed("dev-eks", **BOTH), shipped("dev-eks")["zones"]

    for purpose in BOTH:
        targets = [each.inputs for each in declarations.of(MOUNT_TARGET) if each.name.startswith(f"{purpose}-efs-")]
        assert [each["subnetId"] for each in targets] == [f"<aws:ec2/subnet:Subnet network-private-{zone}>" for zone in zones]
        groups = [f"<aws:ec2/securityGroup:SecurityGroup {purpose}-efs-security-group>"]
        assert all(each["securityGroups"] == groups for each in targets)
        [rule] = [each.inputs for each in declarations.of(NFS) if each.name == f"{purpose}-efs-nfs"]
        assert rule["referencedSecurityGroupId"] == "sg of <aws:eks/cluster:Cluster cluster-cluster>"
        assert "cidrIpv4" not in rule


def test_each_team_mounts_its_own_access_point_once_the_policy_and_the_mount_targets_are_there() -> None:
    declarations, zones = deployed("dev-eks", **BOTH), shipped("dev-eks")["zones"]

    for team in teams_of("dev-eks"):
        for purpose in BOTH:
            volume = declarations.made[f"{VOLUME} {team}-{purpose}-volume"].inputs["spec"]["csi"]
            handle = f"<{FILE_SYSTEM} {purpose}-efs-file-system>::<{ACCESS_POINT} {purpose}-efs-{team}>"
            assert (volume["driver"], volume["volumeHandle"]) == ("efs.csi.aws.com", handle)
            waited = declarations.waits_for(f"{VOLUME} {team}-{purpose}-volume")
            assert {f"{POLICY} {purpose}-efs-policy", *(f"{MOUNT_TARGET} {purpose}-efs-{zone}" for zone in zones)} <= waited
    for target in declarations.of(MOUNT_TARGET):
        purpose = target.name.partition("-efs-")[0]
        assert f"{POLICY} {purpose}-efs-policy" in declarations.waits_for(f"{MOUNT_TARGET} {target.name}")


def test_nodes_take_pods_once_the_drivers_of_the_stacks_file_systems_are_there() -> None:
    stacks = {"": as_shipped("dev-eks"), "efs": deployed("dev-eks", **BOTH), "fsx": deployed("dev-eks", datasets="lustre")}

    for name, declarations in stacks.items():
        assert {driver for driver, addon in DRIVERS.items() if addon in declarations.made} == {name} - {""}
        for pool in declarations.inputs_of(NODE_POOL):
            waited = {each["key"] for each in pool["spec"]["template"]["spec"]["startupTaints"]}
            assert {driver for driver in DRIVERS if f"{driver}.csi.aws.com/agent-not-ready" in waited} == {name} - {""}


def test_on_a_cluster_that_is_there_they_are_in_the_subnets_that_are_named_and_the_drivers_are_its_owners() -> None:
    subnets = ["subnet-0a1b2c3d4e5f60718", "subnet-0a1b2c3d4e5f60719"]
    there = {"existing_vpc": "vpc-0a1b2c3d4e5f60718", "existing_private_subnets": subnets}
    cluster = shipped("dev-eks")["cluster"] | {"existing": "theirs"}
    storage = {"checkpoints": "efs", "datasets": "lustre", "lustre": {"zone": "us-east-1b"}}
    found = declared("dev-eks", shipped("dev-eks", cluster=cluster, network=there, zones=["us-east-1a", "us-east-1b"], storage=storage))

    assert [each["subnetId"] for each in found.inputs_of(MOUNT_TARGET)] == subnets
    assert [each["subnetIds"] for each in found.inputs_of(LUSTRE)] == [subnets[1]]
    assert not found.made.keys() & {*DRIVERS.values()}


@pytest.mark.parametrize("purpose", sorted(BOTH))
def test_from_s3_to_efs_claims_alone_are_made_anew_and_nothing_that_has_files_goes(purpose: str) -> None:
    run = moved("dev-eks", {}, {purpose: "efs"})

    assert run.refused == []
    assert run.of(Operation.DELETE) == []
    claims = {f"{CLAIM} {team}-{purpose}-claim" for team in teams_of("dev-eks")}
    volumes = {f"{VOLUME} {team}-{purpose}-volume" for team in teams_of("dev-eks")}
    assert {each.name for each in run.of(Operation.REPLACE)} == claims | volumes
    assert lost(run, deployed("dev-eks")) == dict.fromkeys(claims, Held.TEAM_STORAGE)
    # A claim keeps its name: the old one goes first, or the API server refuses the new one.
    assert all(each.first for each in run.of(Operation.REPLACE) if each.kind == CLAIM)


def test_a_team_more_or_fewer_touches_no_other_teams_door_nor_files() -> None:
    settings = shipped("dev-eks", storage=BOTH)
    more = declared("dev-eks", settings | {"teams": [*settings["teams"], {"name": "aaa"}]}, there=True)
    run, back = steps(deployed("dev-eks", **BOTH), more), steps(more, deployed("dev-eks", **BOTH))

    assert [each.name for each in run.lost] == []
    efs = {each.name for each in back.lost if each.kind.startswith("aws:efs/")}
    assert efs == {f"{ACCESS_POINT} {purpose}-efs-aaa" for purpose in BOTH}
