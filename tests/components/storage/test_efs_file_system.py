"""EfsFileSystem: its resources, its policy and invalid arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from iam_judge import Request, decided_otherwise, permissions

from flexspot.capacity.settings.storage import EFS_TEAMS
from flexspot.components.iam import as_json
from flexspot.components.storage.efs import EfsFileSystem, EfsFileSystemArgs, client_policy, team_id

if TYPE_CHECKING:
    from component_types import Register

FILE_SYSTEM = "aws:efs/fileSystem:FileSystem"
POLICY = "aws:efs/fileSystemPolicy:FileSystemPolicy"
TARGET = "aws:efs/mountTarget:MountTarget"
ACCESS_POINT = "aws:efs/accessPoint:AccessPoint"
GROUP = "aws:ec2/securityGroup:SecurityGroup"
INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"

KEY = "arn:aws:kms:us-east-1:111122223333:key/0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
TAGS = {"owner": "ann"}
HERE = "arn:aws:elasticfilesystem:us-east-1:111122223333:file-system/fs-1"
FOREIGN = "arn:aws:elasticfilesystem:us-east-1:111122223333:access-point/fsap-mallory"
"""Access point of the same file system that another identity in the account created."""

THROUGH = {
    "elasticfilesystem:AccessPointArn": "arn:aws:elasticfilesystem:us-east-1:111122223333:access-point/fsap-red",
    "elasticfilesystem:AccessedViaMountTarget": "true",
    "aws:SecureTransport": "true",
}
"""Context of the driver's mounts: through an access point, from a mount target, over TLS."""


def args(**changes: Any) -> EfsFileSystemArgs:
    # pyrefly: ignore[bad-return] -- some arguments are invalid on purpose
    return {
        "cluster": "prod",
        "purpose": "checkpoints",
        "teams": ["red", "blue"],
        "vpc_id": "vpc-1",
        "subnets": {"us-east-1b": "subnet-b", "us-east-1a": "subnet-a"},
        "node_security_group_id": "sg-nodes",
        "tags": TAGS,
    } | changes


def test_a_file_system_is_encrypted_and_elastic_and_moves_idle_files_out_and_back(register: Register) -> None:
    [made] = register(lambda: EfsFileSystem("checkpoints", args())).of(FILE_SYSTEM)

    assert made == {
        "encrypted": True,
        "throughputMode": "elastic",
        "lifecyclePolicies": [{"transitionToIa": "AFTER_30_DAYS"}, {"transitionToPrimaryStorageClass": "AFTER_1_ACCESS"}],
        "tags": {**TAGS, "Name": "prod-checkpoints"},
    }


@pytest.mark.parametrize("days,word", [(1, "AFTER_1_DAY"), (7, "AFTER_7_DAYS"), (365, "AFTER_365_DAYS")])
def test_days_are_written_as_efs_writes_them(days: int, word: str, register: Register) -> None:
    [made] = register(lambda: EfsFileSystem("checkpoints", args(infrequent_access_days=days))).of(FILE_SYSTEM)

    assert made["lifecyclePolicies"][0] == {"transitionToIa": word}


def test_provisioned_throughput_no_lifecycle_and_a_key_can_be_set(register: Register) -> None:
    wanted = args(infrequent_access_days=0, provisioned_mibps=64, kms_key=KEY)
    [made] = register(lambda: EfsFileSystem("checkpoints", wanted)).of(FILE_SYSTEM)

    assert (made["throughputMode"], made["provisionedThroughputInMibps"], made["kmsKeyId"]) == ("provisioned", 64, KEY)
    assert not made.get("lifecyclePolicies")


def test_only_nodes_reach_it_in_each_zone_and_by_nfs(register: Register) -> None:
    registered = register(lambda: EfsFileSystem("checkpoints", args()))

    [group], [rule] = registered.of(GROUP), registered.of(INGRESS)
    assert (group["name"], group["vpcId"], "ingress" in group, "egress" in group) == ("efs-checkpoints-prod", "vpc-1", False, False)
    assert (rule["referencedSecurityGroupId"], rule["ipProtocol"], rule["fromPort"], rule["toPort"]) == ("sg-nodes", "tcp", 2049, 2049)
    assert [each["subnetId"] for each in registered.of(TARGET)] == ["subnet-a", "subnet-b"]
    assert registered.names(TARGET) == ["checkpoints-us-east-1a", "checkpoints-us-east-1b"]
    assert {len(each["securityGroups"]) for each in registered.of(TARGET)} == {1}


def test_each_team_has_its_own_access_point_folder_and_user(register: Register) -> None:
    access_points = {each["tags"]["team"]: each for each in register(lambda: EfsFileSystem("files", args())).of(ACCESS_POINT)}

    assert {team: each["rootDirectory"]["path"] for team, each in access_points.items()} == {"blue": "/blue", "red": "/red"}
    for team, each in access_points.items():
        own = team_id(team)
        assert each["posixUser"] == {"uid": own, "gid": own}
        assert each["rootDirectory"]["creationInfo"] == {"ownerUid": own, "ownerGid": own, "permissions": "0750"}
    assert team_id("blue") != team_id("red")


def test_datasets_are_one_folder_that_all_read_as_one_user(register: Register) -> None:
    access_points = register(lambda: EfsFileSystem("files", args(purpose="datasets"))).of(ACCESS_POINT)

    assert [each["rootDirectory"]["path"] for each in access_points] == ["/shared"] * 2
    assert [each["posixUser"] for each in access_points] == [{"uid": 1000, "gid": 1000}] * 2


def test_a_teams_user_id_never_changes_and_is_unique() -> None:
    """A different one would replace its access point, which then may not touch its old files."""
    assert team_id("red") == 1_724_113_949
    numbers = {team_id(f"team-{number}") for number in range(EFS_TEAMS)}
    assert len(numbers) == EFS_TEAMS
    assert all(50_000 <= each < 2**31 for each in numbers)


@pytest.mark.parametrize("purpose,writing", [("checkpoints", ["ClientWrite"]), ("datasets", [])])
def test_clients_without_an_identity_need_an_access_point_and_tls_and_only_write_checkpoints(
    purpose: str, writing: list[str], register: Register
) -> None:
    [policy] = register(lambda: EfsFileSystem("files", args(purpose=purpose))).of(POLICY)

    access_points = [f"arn:aws:elasticfilesystem:us-east-1:111122223333:access-point/fsap-{team}" for team in ("blue", "red")]
    mounted = {
        "Bool": {"elasticfilesystem:AccessedViaMountTarget": "true"},
        "StringEquals": {"elasticfilesystem:AccessPointArn": access_points},
    }
    plain = {"Bool": {"aws:SecureTransport": "false"}}
    assert permissions(policy["policy"]) == [
        *(("Allow", f"elasticfilesystem:{each}", "*", mounted) for each in ("ClientMount", *writing)),
        *(("Deny", f"elasticfilesystem:{each}", "*", plain) for each in ("ClientMount", "ClientWrite", "ClientRootAccess")),
    ]


@pytest.mark.nightly(tested_by="test_clients_without_an_identity_need_an_access_point_and_tls_and_only_write_checkpoints")
@pytest.mark.parametrize(
    "writable,actions,changes,decided",
    [
        (True, ["ClientMount", "ClientWrite"], {}, "allowed"),
        (True, ["ClientRootAccess"], {}, "none"),
        (True, ["ClientMount"], {"elasticfilesystem:AccessPointArn": FOREIGN}, "none"),
        (True, ["ClientMount"], {"elasticfilesystem:AccessedViaMountTarget": "false"}, "none"),
        (True, ["ClientMount", "ClientRootAccess"], {"aws:SecureTransport": "false"}, "denied"),
        (False, ["ClientMount"], {}, "allowed"),
        (False, ["ClientWrite"], {}, "none"),
    ],
)
def test_principalmapper_agrees_about_clients(*, writable: bool, actions: list[str], changes: dict[str, str], decided: str) -> None:
    document = client_policy([THROUGH["elasticfilesystem:AccessPointArn"]], writable=writable)

    requests = [Request(f"elasticfilesystem:{each}", HERE, THROUGH | changes) for each in actions]
    assert decided_otherwise([document], decided, requests) == []


def test_a_policy_for_the_most_teams_fits_into_efs() -> None:
    longest = "arn:aws-us-gov:elasticfilesystem:us-gov-west-1:111122223333:access-point/fsap-0123456789abcdef0"

    assert len(as_json(client_policy([longest] * EFS_TEAMS, writable=True))) <= 20_000


@pytest.mark.parametrize(
    "changes,problem",
    [
        ({"subnets": {}}, "subnets: is empty"),
        ({"purpose": "models"}, "purpose"),
        ({"teams": ["Red"]}, "teams"),
        ({"teams": []}, r"teams \(is 0 names\): the policy"),
        ({"teams": [f"team-{number}" for number in range(191)]}, r"teams \(is 191 names\): the policy"),
        ({"kms_key": "mine"}, "kms_key"),
        ({"infrequent_access_days": 45}, "infrequent_access_days"),
        ({"provisioned_mibps": 0}, "provisioned_mibps"),
    ],
)
def test_arguments_that_aws_would_reject_are_refused_before_anything_is_registered(
    changes: dict[str, Any], problem: str, register: Register
) -> None:
    with pytest.raises(ValueError, match=problem):
        register(lambda: EfsFileSystem("files", args(**changes)))
