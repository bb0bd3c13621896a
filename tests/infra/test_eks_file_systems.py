"""EFS file systems in a stack: the resources that they add, and who reaches them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import pytest
from eks_declarations import NODE_POOL
from program_declarations import as_shipped, declared, shipped

if TYPE_CHECKING:
    from program_declarations import Declarations

pytestmark = pytest.mark.slow

FILE_SYSTEM = "aws:efs/fileSystem:FileSystem"
POLICY = "aws:efs/fileSystemPolicy:FileSystemPolicy"
MOUNT_TARGET = "aws:efs/mountTarget:MountTarget"
ACCESS_POINT = "aws:efs/accessPoint:AccessPoint"
NFS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
VOLUME = "kubernetes:core/v1:PersistentVolume"
LUSTRE = "aws:fsx/lustreFileSystem:LustreFileSystem"
DRIVERS = {name: f"aws:eks/addon:Addon cluster-aws-{name}-csi-driver" for name in ("efs", "fsx")}

BOTH = {"checkpoints": "efs", "datasets": "efs"}


@functools.cache
def deployed(stack: str, **storage: str) -> Declarations:
    return declared(stack, shipped(stack, storage=shipped(stack).get("storage", {}) | storage), there=True)


@pytest.mark.parametrize("stack", ["dev-eks", "prod-eks"])
def test_file_systems_are_encrypted_and_irreplaceable_ones_are_protected(stack: str) -> None:
    made = {each.name: each for each in deployed(stack, **BOTH).of(FILE_SYSTEM)}

    assert [each.inputs["encrypted"] for each in made.values()] == [True, True]
    assert made["datasets-efs-file-system"].protected
    assert made["checkpoints-efs-file-system"].protected is (stack == "prod-eks")


def test_deletion_protection_of_file_systems_is_a_setting() -> None:
    storage = BOTH | {"efs": {"deletion_protection": False}}

    assert [each.protected for each in declared("prod-eks", shipped("prod-eks", storage=storage)).of(FILE_SYSTEM)] == [False, False]


def test_each_private_subnet_has_a_mount_target_that_only_nodes_reach() -> None:
    declarations, zones = deployed("dev-eks", **BOTH), shipped("dev-eks")["zones"]

    for purpose in BOTH:
        targets = [each.inputs for each in declarations.of(MOUNT_TARGET) if each.name.startswith(f"{purpose}-efs-")]
        assert [each["subnetId"] for each in targets] == [f"<aws:ec2/subnet:Subnet network-private-{zone}>" for zone in zones]
        groups = [f"<aws:ec2/securityGroup:SecurityGroup {purpose}-efs-security-group>"]
        assert all(each["securityGroups"] == groups for each in targets)
        [rule] = [each.inputs for each in declarations.of(NFS) if each.name == f"{purpose}-efs-nfs"]
        assert rule["referencedSecurityGroupId"] == "sg of <aws:eks/cluster:Cluster cluster-cluster>"
        assert "cidrIpv4" not in rule


def test_each_team_mounts_its_own_access_point_after_policy_and_mount_targets() -> None:
    declarations, zones = deployed("dev-eks", **BOTH), shipped("dev-eks")["zones"]

    for team in (each["name"] for each in shipped("dev-eks")["teams"]):
        for purpose in BOTH:
            volume = declarations.made[f"{VOLUME} {team}-{purpose}-volume"].inputs["spec"]["csi"]
            handle = f"<{FILE_SYSTEM} {purpose}-efs-file-system>::<{ACCESS_POINT} {purpose}-efs-{team}>"
            assert (volume["driver"], volume["volumeHandle"]) == ("efs.csi.aws.com", handle)
            waited = declarations.waits_for(f"{VOLUME} {team}-{purpose}-volume")
            assert {f"{POLICY} {purpose}-efs-policy", *(f"{MOUNT_TARGET} {purpose}-efs-{zone}" for zone in zones)} <= waited
    for target in declarations.of(MOUNT_TARGET):
        purpose = target.name.partition("-efs-")[0]
        assert f"{POLICY} {purpose}-efs-policy" in declarations.waits_for(f"{MOUNT_TARGET} {target.name}")


def test_nodes_accept_pods_after_the_file_systems_drivers_are_ready() -> None:
    stacks = {"": as_shipped("dev-eks"), "efs": deployed("dev-eks", **BOTH), "fsx": deployed("dev-eks", datasets="lustre")}

    for name, declarations in stacks.items():
        assert {driver for driver, addon in DRIVERS.items() if addon in declarations.made} == {name} - {""}
        for pool in declarations.inputs_of(NODE_POOL):
            waited = {each["key"] for each in pool["spec"]["template"]["spec"]["startupTaints"]}
            assert {driver for driver in DRIVERS if f"{driver}.csi.aws.com/agent-not-ready" in waited} == {name} - {""}


def test_on_an_existing_cluster_file_systems_use_the_named_subnets_and_its_own_drivers() -> None:
    subnets = ["subnet-0a1b2c3d4e5f60718", "subnet-0a1b2c3d4e5f60719"]
    there = {"existing_vpc": "vpc-0a1b2c3d4e5f60718", "existing_private_subnets": subnets}
    cluster = shipped("dev-eks")["cluster"] | {"existing": "theirs"}
    storage = {"checkpoints": "efs", "datasets": "lustre", "lustre": {"zone": "us-east-1b"}}
    found = declared("dev-eks", shipped("dev-eks", cluster=cluster, network=there, zones=["us-east-1a", "us-east-1b"], storage=storage))

    assert [each["subnetId"] for each in found.inputs_of(MOUNT_TARGET)] == subnets
    assert [each["subnetIds"] for each in found.inputs_of(LUSTRE)] == [subnets[1]]
    assert not found.made.keys() & {*DRIVERS.values()}
