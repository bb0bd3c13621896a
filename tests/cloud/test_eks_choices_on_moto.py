"""Resources that settings of an EKS stack add are created in moto, each in a separate account.

The parts of file systems and work queues are tested in tests/infra/test_eks_file_systems.py and test_eks_lustre.py, and
tests/components/storage/test_sqs_work_queue_on_moto.py.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from auto_mode_settings import auto_mode_settings
from iam_judge import findings
from moto import mock_aws
from moto_account import MANAGED, MotoAccount, asked, up
from organisation_stack import everything_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow


@pytest.fixture
def account() -> Iterator[MotoAccount]:
    with mock_aws(config=MANAGED):
        yield MotoAccount()


def up_with(account: MotoAccount, stack: str, settings: dict[str, Any]) -> Any:
    """Return the stack with these settings, once all its AWS resources are created."""
    run = up(stack, account, **{key: value for key, value in settings.items() if key != "account"})
    assert sorted(run.created) == sorted(name for name in run.declarations.made if name.startswith("aws:"))
    return run


def test_an_auto_mode_cluster_is_created_with_all_its_resources(account: MotoAccount) -> None:
    run = up_with(account, "dev-eks", auto_mode_settings())

    [request] = asked(run, "CreateCluster")
    assert request["computeConfig"] == {"enabled": True, "nodePools": []}
    assert request["storageConfig"] == {"blockStorage": {"enabled": True}}


def test_a_cluster_with_an_existing_karpenter_gets_no_second_one(account: MotoAccount) -> None:
    karpenter = {"node_role": "KarpenterNodeRole-theirs", "deployment": "karpenter/karpenter"}
    theirs = {"existing": "theirs", "existing_karpenter": karpenter, "existing_gpu_operator": True}

    run = up_with(account, "dev-eks", {"cluster": {"version": "1.35", "ami": "al2023@v20260903", **theirs}})

    assert {service for service, _, _ in account.asked} == {"eks", "iam", "s3"}
    assert asked(run, "CreateCluster") + asked(run, "CreateAccessEntry") + asked(run, "CreateInstanceProfile") == []


def test_everything_that_an_organisation_requires_is_created_in_its_place(account: MotoAccount) -> None:
    keys: Any = account.client("kms")
    boundary: Any = account.client("iam").create_policy(PolicyName="platform", Path="/boundaries/", PolicyDocument=NOTHING)
    wanted = everything_settings()
    wanted["iam"]["permissions_boundary"] = boundary["Policy"]["Arn"]
    wanted["cluster"]["logs_kms_key"] = keys.create_key()["KeyMetadata"]["Arn"]

    run = up_with(account, "prod-eks", wanted)

    iam: Any = account.client("iam")
    roles = [iam.get_role(RoleName=each["RoleName"])["Role"] for each in iam.list_roles()["Roles"]]
    assert {each["Path"] for each in roles} == {"/platform/"}
    assert {each.get("PermissionsBoundary", {}).get("PermissionsBoundaryArn") for each in roles} == {boundary["Policy"]["Arn"]}
    efs: Any = account.client("efs")
    [file_system] = [each["FileSystemId"] for each in efs.describe_file_systems()["FileSystems"]]
    policy = efs.describe_file_system_policy(FileSystemId=file_system)["Policy"]
    assert findings(policy, resource_own=True) == []
    doors = {each["AccessPointArn"] for each in efs.describe_access_points(FileSystemId=file_system)["AccessPoints"]}
    assert set(json.loads(policy)["Statement"][0]["Condition"]["StringEquals"]["elasticfilesystem:AccessPointArn"]) == doors
    [link] = asked(run, "CreateDataRepositoryAssociation")
    [lustre] = account.client("fsx").describe_file_systems()["FileSystems"]
    assert link["FileSystemId"] == lustre["FileSystemId"]
    assert link["DataRepositoryPath"] == f"s3://{run.created['aws:s3/bucket:Bucket datasets-bucket'].identity}/shared/"


NOTHING = json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:ListAllMyBuckets", "Resource": "*"}]})
