"""What a team may and may not do with the buckets: requests, decided by an evaluator of IAM's documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from aws_policy_decisions import verdict
from s3_team_access_args import CHECKPOINTS, DATASETS, KEY, team_access_args

from components.storage.s3_team_access import S3TeamAccess

ROLE = "aws:iam/role:Role"
ROLE_POLICY = "aws:iam/rolePolicy:RolePolicy"

BUCKET = f"arn:aws:s3:::{CHECKPOINTS}"
DATA = f"arn:aws:s3:::{DATASETS}"
OTHER_KEY = "arn:aws:kms:us-east-1:111122223333:key/00000000-0000-0000-0000-000000000000"

CONTEXT = "kms:EncryptionContext:aws:s3:arn"

Register = Callable[[Callable[[], object]], Any]


@pytest.fixture
def policy(register: Register) -> str:
    """The policy of a team that reads the shared datasets and vision/imagenet, with a key of the platform's own."""
    changes = {"dataset_bucket": DATASETS, "dataset_folders": ["vision/imagenet"], "kms_key": KEY}
    [policy] = register(lambda: S3TeamAccess("red", team_access_args(**changes))).of(ROLE_POLICY)
    return policy["policy"]


@pytest.mark.parametrize(
    "action,resource,context",
    [
        ("s3:ListBucket", BUCKET, {"s3:prefix": "red/"}),
        ("s3:ListBucket", BUCKET, {"s3:prefix": "red/step-100/"}),
        ("s3:GetObject", f"{BUCKET}/red/step-100/model.safetensors", {}),
        ("s3:PutObject", f"{BUCKET}/red/latest", {}),
        ("s3:DeleteObject", f"{BUCKET}/red/step-100/model.safetensors", {}),
        ("s3:AbortMultipartUpload", f"{BUCKET}/red/step-100/model.safetensors", {}),
        ("s3:ListMultipartUploadParts", f"{BUCKET}/red/step-100/model.safetensors", {}),
        ("s3:ListBucket", DATA, {"s3:prefix": "shared/"}),
        ("s3:ListBucket", DATA, {"s3:prefix": "vision/imagenet/train/"}),
        ("s3:GetObject", f"{DATA}/shared/c4/0001.parquet", {}),
        ("s3:GetObject", f"{DATA}/vision/imagenet/0001.tar", {}),
        ("kms:GenerateDataKey", KEY, {CONTEXT: BUCKET}),
        ("kms:Decrypt", KEY, {CONTEXT: BUCKET}),
        ("kms:Decrypt", KEY, {CONTEXT: f"{BUCKET}/red/latest"}),
        ("kms:Decrypt", KEY, {CONTEXT: DATA}),
    ],
)
def test_a_team_may(action: str, resource: str, context: dict[str, str], policy: str) -> None:
    assert verdict([policy], action, resource, context) == "allowed"


@pytest.mark.parametrize(
    "action,resource,context",
    [
        # Of the whole bucket: without a prefix, with an empty one, and with one that others' names share.
        ("s3:ListBucket", BUCKET, {}),
        ("s3:ListBucket", BUCKET, {"s3:prefix": ""}),
        ("s3:ListBucket", BUCKET, {"s3:prefix": "red"}),
        # Another team's, whose name begins or continues like this one's.
        ("s3:ListBucket", BUCKET, {"s3:prefix": "blue/"}),
        ("s3:ListBucket", BUCKET, {"s3:prefix": "red-two/"}),
        ("s3:GetObject", f"{BUCKET}/blue/step-100/model.safetensors", {}),
        ("s3:GetObject", f"{BUCKET}/red-two/latest", {}),
        ("s3:PutObject", f"{BUCKET}/blue/latest", {}),
        ("s3:PutObject", f"{BUCKET}/red", {}),
        ("s3:DeleteObject", f"{BUCKET}/blue/latest", {}),
        ("s3:GetObject", f"{BUCKET}-other/red/latest", {}),
        # What no worker needs, even of its own.
        ("s3:GetObjectVersion", f"{BUCKET}/red/latest", {}),
        ("s3:PutObjectAcl", f"{BUCKET}/red/latest", {}),
        ("s3:DeleteBucket", BUCKET, {}),
        ("s3:PutBucketPolicy", BUCKET, {}),
        ("s3:DeleteBucketPolicy", BUCKET, {}),
        ("s3:PutLifecycleConfiguration", BUCKET, {}),
        ("s3:PutBucketPublicAccessBlock", BUCKET, {}),
        ("s3:ListBucketMultipartUploads", BUCKET, {"s3:prefix": "red/"}),
        ("s3:ListAllMyBuckets", "*", {}),
        # Datasets are read, not written; those of others are not even seen.
        ("s3:PutObject", f"{DATA}/shared/c4/0001.parquet", {}),
        ("s3:DeleteObject", f"{DATA}/vision/imagenet/0001.tar", {}),
        ("s3:GetObject", f"{DATA}/vision/faces/0001.tar", {}),
        ("s3:GetObject", f"{DATA}/red/0001.tar", {}),
        ("s3:ListBucket", DATA, {"s3:prefix": "vision/"}),
        ("s3:ListBucket", DATA, {}),
        # The key: for these buckets alone, and datasets are not encrypted by a team.
        ("kms:GenerateDataKey", KEY, {CONTEXT: DATA}),
        ("kms:Decrypt", KEY, {CONTEXT: f"{BUCKET}-other"}),
        ("kms:Decrypt", KEY, {}),
        ("kms:Decrypt", OTHER_KEY, {CONTEXT: BUCKET}),
        ("kms:ScheduleKeyDeletion", KEY, {}),
        ("iam:PassRole", "arn:aws:iam::111122223333:role/admin", {}),
        ("sts:AssumeRole", "arn:aws:iam::111122223333:role/acme-dev-team-blue", {}),
    ],
)
def test_a_team_may_not(action: str, resource: str, context: dict[str, str], policy: str) -> None:
    assert verdict([policy], action, resource, context) == "none"


def test_without_a_dataset_bucket_or_a_key_neither_is_named(register: Register) -> None:
    [policy] = register(lambda: S3TeamAccess("red", team_access_args())).of(ROLE_POLICY)

    assert verdict([policy["policy"]], "s3:GetObject", f"{BUCKET}/red/latest") == "allowed"
    assert verdict([policy["policy"]], "s3:GetObject", f"{DATA}/shared/c4/0001.parquet") == "none"
    assert "kms" not in policy["policy"]
