"""LustreFileSystem: its resources, the network access to its servers, its link to the bucket, and invalid arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi
import pytest

from flexspot.components.storage.lustre import LustreFileSystem, LustreFileSystemArgs

if TYPE_CHECKING:
    from component_types import Register

FILE_SYSTEM = "aws:fsx/lustreFileSystem:LustreFileSystem"
LINK = "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation"
GROUP = "aws:ec2/securityGroup:SecurityGroup"
INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
EGRESS = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"

KEY = "arn:aws:kms:us-east-1:111122223333:key/0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
TAGS = {"owner": "ann"}


def args(**changes: Any) -> LustreFileSystemArgs:
    # pyrefly: ignore[bad-return] -- some arguments are invalid on purpose
    return {
        "cluster": "prod",
        "vpc_id": "vpc-1",
        "subnet_id": "subnet-a",
        "node_security_group_id": "sg-nodes",
        "bucket": "acme-datasets",
        "tags": TAGS,
    } | changes


def test_the_smallest_persistent_file_system_in_one_subnet_of_a_version_that_can_be_linked(register: Register) -> None:
    [made] = register(lambda: LustreFileSystem("datasets", args())).of(FILE_SYSTEM)

    assert {key: value for key, value in made.items() if key != "securityGroupIds"} == {
        "deploymentType": "PERSISTENT_2",
        "perUnitStorageThroughput": 125,
        "storageCapacity": 1200,
        "storageType": "SSD",
        "fileSystemTypeVersion": "2.15",
        "subnetIds": "subnet-a",
        "tags": {**TAGS, "Name": "prod-datasets"},
    }
    assert len(made["securityGroupIds"]) == 1


def test_size_throughput_and_key_can_be_set(register: Register) -> None:
    wanted = args(capacity_gib=4800, throughput_mbps_per_tib=500, kms_key=KEY)
    [made] = register(lambda: LustreFileSystem("datasets", wanted)).of(FILE_SYSTEM)

    assert (made["storageCapacity"], made["perUnitStorageThroughput"], made["kmsKeyId"]) == (4800, 500, KEY)


def test_scratch_storage_has_neither_throughput_nor_a_custom_key(register: Register) -> None:
    [made] = register(lambda: LustreFileSystem("datasets", args(deployment="SCRATCH_2", kms_key=KEY))).of(FILE_SYSTEM)

    assert made["deploymentType"] == "SCRATCH_2"
    assert not {"perUnitStorageThroughput", "kmsKeyId"} & made.keys()


def test_it_shows_changes_of_the_buckets_shared_folder_and_writes_nothing_back(register: Register) -> None:
    [link] = register(lambda: LustreFileSystem("datasets", args())).of(LINK)

    assert (link["fileSystemPath"], link["dataRepositoryPath"]) == ("/", "s3://acme-datasets/shared/")
    assert link["batchImportMetaDataOnCreate"] is True
    assert link["s3"] == {"autoImportPolicy": {"events": ["NEW", "CHANGED", "DELETED"]}}


def test_a_link_to_a_large_bucket_may_take_longer_than_the_providers_ten_minutes(register: Register) -> None:
    given: dict[str, str | None] = {}

    def declare() -> None:
        def noted(each: pulumi.ResourceTransformationArgs) -> None:
            given[each.type_] = each.opts.custom_timeouts.create if each.opts.custom_timeouts else None

        pulumi.runtime.register_stack_transformation(noted)
        LustreFileSystem("datasets", args())

    register(declare)
    assert (given[LINK], given[FILE_SYSTEM]) == ("2h", None)


def test_only_servers_and_nodes_communicate_over_lustres_ports(register: Register) -> None:
    registered = register(lambda: LustreFileSystem("datasets", args()))

    [group] = registered.of(GROUP)
    assert (group["name"], group["vpcId"], "ingress" in group, "egress" in group) == ("lustre-datasets-prod", "vpc-1", False, False)
    rules = {
        (kind.rpartition(":")[2], each["securityGroupId"], each["referencedSecurityGroupId"], each["fromPort"], each["toPort"])
        for kind in (INGRESS, EGRESS)
        for each in registered.of(kind)
    }
    [servers] = registered.of(FILE_SYSTEM)[0]["securityGroupIds"]
    into, out = "SecurityGroupIngressRule", "SecurityGroupEgressRule"
    ways = [
        (into, servers, servers),
        (out, servers, servers),
        (into, servers, "sg-nodes"),
        (out, servers, "sg-nodes"),
        (into, "sg-nodes", servers),
    ]
    assert rules == {(*way, first, last) for way in ways for first, last in ((988, 988), (1018, 1023))}
    assert {each["ipProtocol"] for kind in (INGRESS, EGRESS) for each in registered.of(kind)} == {"tcp"}


def test_each_rule_has_a_unique_name_by_which_it_is_found_again(register: Register) -> None:
    registered = register(lambda: LustreFileSystem("datasets", args()))

    names = [each["tags"]["Name"] for kind in (INGRESS, EGRESS) for each in registered.of(kind)]
    assert len(set(names)) == len(names) == 10
    assert "prod-datasets-lustre-from-nodes-988" in names


@pytest.mark.parametrize(
    "changes,problem",
    [
        ({"cluster": "-prod"}, "cluster"),
        ({"capacity_gib": 3600}, "capacity_gib"),
        ({"capacity_gib": 0}, "capacity_gib"),
        ({"deployment": "PERSISTENT_1"}, "deployment"),
        ({"deployment": "SCRATCH_2", "throughput_mbps_per_tib": 125}, "throughput_mbps_per_tib with SCRATCH_2"),
        ({"throughput_mbps_per_tib": 200}, "throughput_mbps_per_tib"),
        ({"kms_key": "mine"}, "kms_key"),
        ({"tags": {"aws:mine": "x"}}, "tags"),
    ],
)
def test_arguments_that_aws_would_reject_are_refused_before_anything_is_registered(
    changes: dict[str, Any], problem: str, register: Register
) -> None:
    with pytest.raises(ValueError, match=problem):
        register(lambda: LustreFileSystem("datasets", args(**changes)))
