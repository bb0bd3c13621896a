"""A team's permissions on the buckets: by the statements of its policy, and nightly by principalmapper."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from iam_judge import Request, decided_otherwise, permissions
from s3_team_access_args import CHECKPOINTS, DATASETS, KEY, team_access_args

from flexspot.components.storage.s3_team_access import S3TeamAccess

if TYPE_CHECKING:
    from component_types import Register

ROLE = "aws:iam/role:Role"
ROLE_POLICY = "aws:iam/rolePolicy:RolePolicy"

BUCKET = f"arn:aws:s3:::{CHECKPOINTS}"
DATA = f"arn:aws:s3:::{DATASETS}"
OTHER_KEY = "arn:aws:kms:us-east-1:111122223333:key/00000000-0000-0000-0000-000000000000"

CONTEXT = "kms:EncryptionContext:aws:s3:arn"


@pytest.fixture
def policy(register: Register) -> str:
    """Return the policy of a team that reads the shared datasets, with a key of the platform."""
    changes = {"dataset_bucket": DATASETS, "kms_key": KEY}
    [policy] = register(lambda: S3TeamAccess("red", team_access_args(**changes))).of(ROLE_POLICY)
    return policy["policy"]


MAY = [
    Request("s3:ListBucket", BUCKET, {"s3:prefix": "red/"}),
    Request("s3:ListBucket", BUCKET, {"s3:prefix": "red/step-100/"}),
    Request("s3:GetObject", f"{BUCKET}/red/step-100/model.safetensors"),
    Request("s3:PutObject", f"{BUCKET}/red/latest"),
    Request("s3:DeleteObject", f"{BUCKET}/red/step-100/model.safetensors"),
    Request("s3:AbortMultipartUpload", f"{BUCKET}/red/step-100/model.safetensors"),
    Request("s3:ListMultipartUploadParts", f"{BUCKET}/red/step-100/model.safetensors"),
    Request("s3:ListBucket", DATA, {"s3:prefix": "shared/"}),
    Request("s3:GetObject", f"{DATA}/shared/c4/0001.parquet"),
    Request("kms:GenerateDataKey", KEY, {CONTEXT: BUCKET}),
    Request("kms:Decrypt", KEY, {CONTEXT: BUCKET}),
    Request("kms:Decrypt", KEY, {CONTEXT: f"{BUCKET}/red/latest"}),
    Request("kms:Decrypt", KEY, {CONTEXT: DATA}),
]

MAY_NOT = [
    # Listings of the whole bucket: without a prefix, with an empty one, and with one that other teams' names share.
    Request("s3:ListBucket", BUCKET),
    Request("s3:ListBucket", BUCKET, {"s3:prefix": ""}),
    Request("s3:ListBucket", BUCKET, {"s3:prefix": "red"}),
    # Another team's, whose name begins or continues like this one's.
    Request("s3:ListBucket", BUCKET, {"s3:prefix": "blue/"}),
    Request("s3:ListBucket", BUCKET, {"s3:prefix": "red-two/"}),
    Request("s3:GetObject", f"{BUCKET}/blue/step-100/model.safetensors"),
    Request("s3:GetObject", f"{BUCKET}/red-two/latest"),
    Request("s3:PutObject", f"{BUCKET}/blue/latest"),
    Request("s3:PutObject", f"{BUCKET}/red"),
    Request("s3:DeleteObject", f"{BUCKET}/blue/latest"),
    Request("s3:GetObject", f"{BUCKET}-other/red/latest"),
    # Actions that no worker needs, even on its own objects.
    Request("s3:GetObjectVersion", f"{BUCKET}/red/latest"),
    Request("s3:PutObjectAcl", f"{BUCKET}/red/latest"),
    Request("s3:DeleteBucket", BUCKET),
    Request("s3:PutBucketPolicy", BUCKET),
    Request("s3:DeleteBucketPolicy", BUCKET),
    Request("s3:PutLifecycleConfiguration", BUCKET),
    Request("s3:PutBucketPublicAccessBlock", BUCKET),
    Request("s3:ListBucketMultipartUploads", BUCKET, {"s3:prefix": "red/"}),
    Request("s3:ListAllMyBuckets", "*"),
    # Datasets are read, not written. Those of others are not even listed.
    Request("s3:PutObject", f"{DATA}/shared/c4/0001.parquet"),
    Request("s3:DeleteObject", f"{DATA}/vision/imagenet/0001.tar"),
    Request("s3:GetObject", f"{DATA}/vision/faces/0001.tar"),
    Request("s3:GetObject", f"{DATA}/red/0001.tar"),
    Request("s3:ListBucket", DATA, {"s3:prefix": "vision/"}),
    Request("s3:ListBucket", DATA),
    # The key: only for these buckets, and a team does not encrypt datasets.
    Request("kms:GenerateDataKey", KEY, {CONTEXT: DATA}),
    Request("kms:Decrypt", KEY, {CONTEXT: f"{BUCKET}-other"}),
    Request("kms:Decrypt", KEY),
    Request("kms:Decrypt", OTHER_KEY, {CONTEXT: BUCKET}),
    Request("kms:ScheduleKeyDeletion", KEY),
    Request("iam:PassRole", "arn:aws:iam::111122223333:role/admin"),
    Request("sts:AssumeRole", "arn:aws:iam::111122223333:role/acme-dev-team-blue"),
]


def test_a_team_writes_to_its_own_folder_and_reads_its_datasets(policy: str) -> None:
    objects = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"]
    for_checkpoints, for_datasets = ({"StringLike": {CONTEXT: [bucket, f"{bucket}/*"]}} for bucket in (BUCKET, DATA))

    assert permissions(policy) == [
        ("Allow", "s3:ListBucket", BUCKET, {"StringLike": {"s3:prefix": ["red/*"]}}),
        *(("Allow", action, f"{BUCKET}/red/*", {}) for action in objects),
        *(("Allow", action, KEY, for_checkpoints) for action in ("kms:Decrypt", "kms:GenerateDataKey")),
        ("Allow", "s3:ListBucket", DATA, {"StringLike": {"s3:prefix": ["shared/*"]}}),
        ("Allow", "s3:GetObject", f"{DATA}/shared/*", {}),
        ("Allow", "kms:Decrypt", KEY, for_datasets),
    ]


@pytest.mark.nightly(tested_by="test_a_team_writes_to_its_own_folder_and_reads_its_datasets")
@pytest.mark.parametrize("decided,requests", [("allowed", MAY), ("none", MAY_NOT)])
def test_principalmapper_agrees_about_a_teams_requests(decided: str, requests: list[Request], policy: str) -> None:
    assert decided_otherwise([json.loads(policy)], decided, requests) == []


def test_without_a_dataset_bucket_or_a_key_neither_is_named(register: Register) -> None:
    [policy] = register(lambda: S3TeamAccess("red", team_access_args())).of(ROLE_POLICY)

    assert {resource for _, _, resource, _ in permissions(policy["policy"])} == {BUCKET, f"{BUCKET}/red/*"}
