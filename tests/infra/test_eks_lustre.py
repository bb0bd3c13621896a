"""A Lustre file system in a stack: its place, who reaches it, and datasets after a change of their kind or options."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import pytest
from engine_steps import Operation, steps
from program_declarations import declared, shipped

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
MADE = f"{FILE_SYSTEM} datasets-lustre-file-system"


@functools.cache
def in_lustre(stack: str, **lustre: Any) -> Declarations:
    storage = shipped(stack).get("storage", {}) | {"datasets": "lustre"} | ({"lustre": lustre} if lustre else {})
    return declared(stack, shipped(stack, storage=storage), there=True)


def teams_of(stack: str) -> list[str]:
    return [team["name"] for team in shipped(stack)["teams"]]


def test_lustre_is_in_the_first_zones_private_subnet_after_its_firewall_rules() -> None:
    declarations = in_lustre("dev-eks")

    [made] = declarations.inputs_of(FILE_SYSTEM)
    assert made["subnetIds"] == f"<aws:ec2/subnet:Subnet network-private-{shipped('dev-eks')['zones'][0]}>"
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


def test_teams_mount_lustre_after_it_is_linked_to_a_private_bucket() -> None:
    declarations = in_lustre("dev-eks")

    [link] = declarations.inputs_of(LINK)
    assert link["fileSystemId"] == f"<{MADE}>"
    assert f"{BUCKET} datasets-bucket" in declarations.waits_for(f"{LINK} datasets-lustre-bucket")
    assert "aws:s3/bucketPolicy:BucketPolicy datasets-policy" in declarations.waits_for(f"{LINK} datasets-lustre-bucket")
    for team in teams_of("dev-eks"):
        spec = declarations.made[f"{VOLUME} {team}-datasets-volume"].inputs["spec"]
        assert (spec["csi"]["driver"], spec["csi"]["volumeHandle"]) == ("fsx.csi.aws.com", f"<{MADE}>::{team}")
        assert spec["mountOptions"] == ["ro", "flock"]
        assert f"{LINK} datasets-lustre-bucket" in declarations.waits_for(f"{VOLUME} {team}-datasets-volume")
        # Checkpoints stay where they were.
        assert declarations.made[f"{VOLUME} {team}-checkpoints-volume"].inputs["spec"]["csi"]["driver"] == "s3.csi.aws.com"


@pytest.mark.parametrize("stack", ["dev-eks", "prod-eks"])
def test_lustre_is_protected_in_production_or_by_its_setting(stack: str) -> None:
    assert in_lustre(stack).made[MADE].protected is (stack == "prod-eks")
    assert in_lustre(stack, deletion_protection=stack == "dev-eks").made[MADE].protected is (stack == "dev-eks")


def test_between_s3_and_lustre_only_claims_are_replaced_and_no_bucket_is_deleted() -> None:
    in_s3 = declared("dev-eks", shipped("dev-eks"), there=True)
    run, back = steps(in_s3, in_lustre("dev-eks")), steps(in_lustre("dev-eks"), in_s3)

    objects = {f"{kind} {team}-datasets-{what}" for team in teams_of("dev-eks") for kind, what in ((CLAIM, "claim"), (VOLUME, "volume"))}
    assert (run.refused, run.of(Operation.DELETE)) == ([], [])
    assert {each.name for each in run.of(Operation.REPLACE)} == objects
    assert {each.name for each in back.of(Operation.REPLACE)} == objects
    assert [each.name for each in (*run.lost, *back.lost) if each.kind == BUCKET] == []
    assert MADE in {each.name for each in back.of(Operation.DELETE)}
    # A claim keeps its name, so the old one must be deleted first: the API server refuses a second one.
    assert all(each.first for each in run.of(Operation.REPLACE) if each.kind == CLAIM)


def test_lustre_grows_in_place_and_a_protected_one_is_not_replaced_to_shrink() -> None:
    small, large = in_lustre("prod-eks"), in_lustre("prod-eks", capacity_gib=2400, throughput_mbps_per_tib=500)
    grows = steps(small, large)

    assert (grows.refused, [each.name for each in grows.lost]) == ([], [])
    assert MADE in {each.name for each in grows.of(Operation.UPDATE)}
    assert steps(large, small).refused == [MADE], "before anything is lost"
