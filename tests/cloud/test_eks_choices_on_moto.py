"""What a setting of an EKS stack adds is made in moto and goes again, each in an account of its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from auto_mode_settings import auto_mode_settings
from eks_declarations import NODE_POOL
from foreign_iam import findings
from moto import mock_aws
from moto_account import ACCOUNT, MANAGED, MotoAccount, destroy, up
from moto_findings import asked, everything, named
from organisation_stack import everything_settings
from plan_settings import own_class
from program_declarations import Preview, declared, shipped

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.thorough


@pytest.fixture
def account() -> Iterator[MotoAccount]:
    with mock_aws(config=MANAGED):
        yield MotoAccount()


def test_a_cluster_in_auto_mode_is_made_with_all_its_resources_and_goes_again(account: MotoAccount) -> None:
    before = everything(account)

    run = up("dev-eks", account, **{key: value for key, value in auto_mode_settings().items() if key != "account"})

    assert sorted(run.created) == sorted(name for name in run.declarations.made if name.startswith("aws:"))
    [request] = asked(run, "CreateCluster")
    assert request["computeConfig"] == {"enabled": True, "nodePools": []}
    assert request["storageConfig"] == {"blockStorage": {"enabled": True}}
    cluster = run.account.client("eks").describe_cluster(name="dev")["cluster"]
    assert {"computeConfig", "storageConfig"}.isdisjoint(cluster), "moto takes both and forgets them: what they do is not judged"
    destroy(run)
    assert everything(account) == before


def test_a_pool_of_neuron_devices_is_made_and_asks_aws_for_nothing_of_its_own(account: MotoAccount) -> None:
    before = everything(account)
    stack = shipped("dev-eks", account=ACCOUNT)
    pool = {"name": "trn-spot", "machine": "trn1.32xlarge", "capacity_type": "spot", "max_nodes": 2, "serves": ["neuron-training"]}
    teams = [{**each, "shares": {**each["shares"], "trn-spot": 16}} for each in stack["teams"]]
    classes = {"neuron-training": own_class("neuron-training")}

    run = up("dev-eks", account, classes=classes, pools=[*stack["pools"], pool], teams=teams[:1], budget={"monthly_usd": 100_000})

    assert sorted(run.created) == sorted(name for name in run.declarations.made if name.startswith("aws:"))
    without = declared("dev-eks", shipped("dev-eks", account=ACCOUNT, teams=stack["teams"][:1]), Preview())
    assert set(run.created) == {name for name in without.made if name.startswith("aws:")}
    [node_pool] = [each for each in run.declarations.inputs_of(NODE_POOL) if each["metadata"]["name"] == "trn-spot"]
    [machines] = [each["values"] for each in node_pool["spec"]["template"]["spec"]["requirements"] if each["key"].endswith("instance-type")]
    offered: Any = account.client("ec2").describe_instance_types(InstanceTypes=machines)["InstanceTypes"]
    assert {each["Name"]: each["Count"] for found in offered for each in found["NeuronInfo"]["NeuronDevices"]} == {"Trainium": 16}
    destroy(run)
    assert everything(account) == before


def test_a_cluster_with_a_karpenter_of_its_own_is_given_no_second_one_and_stays_when_the_stack_goes(account: MotoAccount) -> None:
    ec2: Any = account.client("ec2")
    eks: Any = account.client("eks")
    subnets = [each["SubnetId"] for each in ec2.describe_subnets()["Subnets"]][:2]
    role = f"arn:aws:iam::{ACCOUNT}:role/theirs"
    eks.create_cluster(name="theirs", roleArn=role, version="1.35", resourcesVpcConfig={"subnetIds": subnets})
    before = everything(account)
    karpenter = {"node_role": "KarpenterNodeRole-theirs", "deployment": "karpenter/karpenter"}
    theirs = {"existing": "theirs", "existing_karpenter": karpenter, "existing_gpu_operator": True}

    run = up("dev-eks", account, cluster={"version": "1.35", "ami": "al2023@v20260903", **theirs})

    assert sorted(run.created) == sorted(name for name in run.declarations.made if name.startswith("aws:"))
    assert {service for service, _, _ in account.asked} == {"eks", "iam", "s3"}
    assert asked(run, "CreateCluster") + asked(run, "CreateAccessEntry") + asked(run, "CreateInstanceProfile") == []
    destroy(run)
    assert everything(account) == before
    assert eks.describe_cluster(name="theirs")["cluster"]["status"] == "ACTIVE"


def test_a_work_queue_is_made_whose_dead_letters_come_from_it_alone_and_goes_again(account: MotoAccount) -> None:
    first, *others = shipped("dev-eks")["teams"]

    run = up("dev-eks", account, teams=[{**first, "work_queue": {"lease_seconds": 120}}, *others])

    sqs: Any = account.client("sqs")
    attributes = [sqs.get_queue_attributes(QueueUrl=each, AttributeNames=["All"])["Attributes"] for each in sqs.list_queues()["QueueUrls"]]
    [work] = [each for each in attributes if "RedrivePolicy" in each]
    assert work["VisibilityTimeout"] == "120"
    assert json.loads(work["RedrivePolicy"])["deadLetterTargetArn"] in {each["QueueArn"] for each in attributes}
    # Moto takes that one and forgets it.
    [allowed] = [each["Attributes"] for each in asked(run, "SetQueueAttributes") if "RedriveAllowPolicy" in each["Attributes"]]
    assert json.loads(allowed["RedriveAllowPolicy"]) == {"redrivePermission": "byQueue", "sourceQueueArns": [work["QueueArn"]]}
    destroy(run)
    assert "QueueUrls" not in sqs.list_queues()


def test_file_systems_are_made_reached_in_every_private_subnet_and_gone_again(account: MotoAccount) -> None:
    run = up("dev-eks", account, storage={"checkpoints": "efs", "datasets": "efs"})
    efs: Any = account.client("efs")
    private = {each["SubnetId"] for name, each in named(run, "subnets").items() if name.startswith("dev-private")}

    found = {each["Name"]: each for each in efs.describe_file_systems()["FileSystems"]}
    assert set(found) == {"dev-checkpoints", "dev-datasets"}
    for each in found.values():
        identity = each["FileSystemId"]
        assert (each["Encrypted"], each["ThroughputMode"]) == (True, "elastic")
        assert {target["SubnetId"] for target in efs.describe_mount_targets(FileSystemId=identity)["MountTargets"]} == private
        doors = efs.describe_access_points(FileSystemId=identity)["AccessPoints"]
        policy = json.loads(efs.describe_file_system_policy(FileSystemId=identity)["Policy"])
        [allowed] = [statement for statement in policy["Statement"] if statement["Effect"] == "Allow"]
        through = allowed["Condition"]["StringEquals"]["elasticfilesystem:AccessPointArn"]
        assert set(through) == {door["AccessPointArn"] for door in doors}
        assert {door["RootDirectory"]["Path"] for door in doors} == (
            {"/shared"} if each["Name"] == "dev-datasets" else {f"/{team['name']}" for team in shipped("dev-eks")["teams"]}
        )
    destroy(run)
    assert efs.describe_file_systems()["FileSystems"] == []


def test_a_file_system_of_lustre_is_made_in_one_private_subnet_behind_its_own_group_and_gone_again(account: MotoAccount) -> None:
    run = up("dev-eks", account, storage={"datasets": "lustre", "lustre": {"capacity_gib": 2400, "zone": "us-east-1b"}})
    fsx: Any = account.client("fsx")
    groups: Any = account.client("ec2")

    [found] = fsx.describe_file_systems()["FileSystems"]
    private = {name: each["SubnetId"] for name, each in named(run, "subnets").items()}
    assert (found["FileSystemType"], found["StorageCapacity"], found["StorageType"]) == ("LUSTRE", 2400, "SSD")
    assert found["SubnetIds"] == [private["dev-private-us-east-1b"]]
    assert found["LustreConfiguration"] == {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 125}
    [group] = asked(run, "CreateFileSystem")[0]["SecurityGroupIds"]
    [described] = groups.describe_security_groups(GroupIds=[group])["SecurityGroups"]
    for way in ("IpPermissions", "IpPermissionsEgress"):
        ports = {(each["FromPort"], each["ToPort"]): each for each in described[way]}
        assert set(ports) == {(988, 988), (1018, 1023)}
        assert {len(each["UserIdGroupPairs"]) for each in ports.values()} == {2}
        assert {pair["GroupId"] for each in ports.values() for pair in each["UserIdGroupPairs"]} > {group}
        assert not any(each["IpRanges"] for each in ports.values())
    [link] = asked(run, "CreateDataRepositoryAssociation")
    bucket = run.created["aws:s3/bucket:Bucket datasets-bucket"].identity
    assert link["FileSystemId"] == found["FileSystemId"]
    assert link["DataRepositoryPath"] == f"s3://{bucket}/shared/"
    assert link["S3"] == {"AutoImportPolicy": {"Events": ["NEW", "CHANGED", "DELETED"]}}
    destroy(run)
    assert fsx.describe_file_systems()["FileSystems"] == []


def test_everything_that_an_organisation_asks_for_is_made_where_it_wants_it_and_goes_again(account: MotoAccount) -> None:
    before = everything(account)
    keys: Any = account.client("kms")
    boundary: Any = account.client("iam").create_policy(PolicyName="platform", Path="/boundaries/", PolicyDocument=NOTHING)
    wanted = everything_settings()
    wanted["iam"]["permissions_boundary"] = boundary["Policy"]["Arn"]
    wanted["cluster"]["logs_kms_key"] = keys.create_key()["KeyMetadata"]["Arn"]

    run = up("prod-eks", account, **{key: value for key, value in wanted.items() if key != "account"})

    assert sorted(run.created) == sorted(name for name in run.declarations.made if name.startswith("aws:"))
    roles = account.client("iam").list_roles()["Roles"]
    assert {each["Path"] for each in roles} == {"/platform/"}
    iam: Any = account.client("iam")
    bounded = {
        iam.get_role(RoleName=each["RoleName"])["Role"].get("PermissionsBoundary", {}).get("PermissionsBoundaryArn") for each in roles
    }
    assert bounded == {boundary["Policy"]["Arn"]}
    efs: Any = account.client("efs")
    for each in efs.describe_file_systems()["FileSystems"]:
        assert findings(efs.describe_file_system_policy(FileSystemId=each["FileSystemId"])["Policy"], resource_own=True) == []
    destroy(run)
    iam.delete_policy(PolicyArn=boundary["Policy"]["Arn"])
    left = everything(account)
    assert {key: value for key, value in left.items() if value != before[key]}.keys() <= {"keys", "kms"}


NOTHING = json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:ListAllMyBuckets", "Resource": "*"}]})
