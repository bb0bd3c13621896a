"""S3Bucket: its resources and invalid arguments."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pulumi
import pytest
from hypothesis import given
from hypothesis import strategies as st
from iam_judge import Request, decided_otherwise, permissions

from flexspot.components.storage.s3_bucket import S3Bucket, S3BucketArgs, bucket_name, check_bucket_name, tls_only

if TYPE_CHECKING:
    from component_types import Outputs, Refusal, Register

BUCKET = "aws:s3/bucket:Bucket"
PUBLIC_ACCESS = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
OWNERSHIP = "aws:s3/bucketOwnershipControls:BucketOwnershipControls"
POLICY = "aws:s3/bucketPolicy:BucketPolicy"
ENCRYPTION = "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration"
VERSIONING = "aws:s3/bucketVersioning:BucketVersioning"
LIFECYCLE = "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration"

NAME = "111122223333-dev-checkpoints-us-east-1"
ARN = f"arn:aws:s3:::{NAME}"
KEY = "arn:aws:kms:us-east-1:111122223333:key/0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"


def args(**changes: Any) -> S3BucketArgs:
    # pyrefly: ignore[bad-return] -- some arguments are invalid on purpose
    return {
        "bucket": NAME,
        "region": "us-east-1",
        "cluster_region": "us-east-1",
        "purpose": "checkpoints",
        "tags": {"environment": "dev", "owner": "ann"},
    } | changes


def test_a_checkpoint_bucket_is_private_encrypted_and_keeps_no_versions(register: Register) -> None:
    registered = register(lambda: S3Bucket("checkpoints", args()))

    where = {"bucket": NAME, "region": "us-east-1"}
    assert registered.of(BUCKET) == [{**where, "forceDestroy": False, "tags": {"environment": "dev", "owner": "ann"}}]
    assert registered.of(PUBLIC_ACCESS) == [
        {**where, "blockPublicAcls": True, "blockPublicPolicy": True, "ignorePublicAcls": True, "restrictPublicBuckets": True}
    ]
    assert registered.of(OWNERSHIP) == [{**where, "rule": {"objectOwnership": "BucketOwnerEnforced"}}]
    [encryption] = registered.of(ENCRYPTION)
    assert encryption["rules"] == [
        {
            "applyServerSideEncryptionByDefault": {"sseAlgorithm": "AES256"},
            "bucketKeyEnabled": False,
            "blockedEncryptionTypes": ["SSE-C"],
        }
    ]
    assert registered.of(VERSIONING) == []


def test_parts_of_unfinished_uploads_are_deleted_after_a_week_and_checkpoints_after_their_retention(register: Register) -> None:
    [kept] = register(lambda: S3Bucket("checkpoints", args())).of(LIFECYCLE)
    [expiring] = register(lambda: S3Bucket("checkpoints", args(retention_days=30))).of(LIFECYCLE)

    abort = {
        "id": "abort-unfinished-uploads",
        "status": "Enabled",
        "filter": {},
        "abortIncompleteMultipartUpload": {"daysAfterInitiation": 7},
    }
    assert kept["rules"] == [abort]
    assert expiring["rules"] == [abort, {"id": "delete-after-retention", "status": "Enabled", "filter": {}, "expiration": {"days": 30}}]


def test_a_dataset_that_was_deleted_or_overwritten_can_be_restored_for_a_week(register: Register) -> None:
    registered = register(lambda: S3Bucket("datasets", args(purpose="datasets")))

    [versioning], [lifecycle] = registered.of(VERSIONING), registered.of(LIFECYCLE)
    assert versioning["versioningConfiguration"] == {"status": "Enabled"}
    assert lifecycle["rules"][1:] == [
        {
            "id": "delete-old-versions",
            "status": "Enabled",
            "filter": {},
            "expiration": {"expiredObjectDeleteMarker": True},
            "noncurrentVersionExpiration": {"noncurrentDays": 7},
        }
    ]


def test_key_and_destruction_can_be_set(register: Register) -> None:
    registered = register(lambda: S3Bucket("checkpoints", args(kms_key=pulumi.Output.from_input(KEY), force_destroy=True)))

    [encryption], [bucket] = registered.of(ENCRYPTION), registered.of(BUCKET)
    assert encryption["rules"][0]["applyServerSideEncryptionByDefault"] == {"sseAlgorithm": "aws:kms", "kmsMasterKeyId": KEY}
    assert encryption["rules"][0]["bucketKeyEnabled"] is True
    assert bucket["forceDestroy"] is True


def test_the_bucket_only_answers_over_tls_12_or_later(register: Register) -> None:
    [policy] = register(lambda: S3Bucket("checkpoints", args())).of(POLICY)

    # It allows nothing: permissions come from the policies of roles.
    conditions = [{"Bool": {"aws:SecureTransport": "false"}}, {"NumericLessThan": {"s3:TlsVersion": "1.2"}}]
    refused = [("Deny", "s3:*", resource, condition) for condition in conditions for resource in (ARN, f"{ARN}/*")]
    assert permissions(policy["policy"]) == refused
    assert {each["Principal"] for each in json.loads(policy["policy"])["Statement"]} == {"*"}


@pytest.mark.nightly(tested_by="test_the_bucket_only_answers_over_tls_12_or_later")
@pytest.mark.parametrize(
    "context,decided",
    [
        ({"aws:SecureTransport": "false"}, "denied"),
        ({"aws:SecureTransport": "true", "s3:TlsVersion": "1.1"}, "denied"),
        ({"aws:SecureTransport": "true", "s3:TlsVersion": "1.2"}, "none"),
    ],
)
def test_principalmapper_agrees_about_requests_to_a_bucket(context: dict[str, str], decided: str) -> None:
    requests = [("s3:GetObject", f"{ARN}/red/a"), ("s3:ListBucket", ARN), ("s3:DeleteBucket", ARN), ("s3:PutBucketNotification", ARN)]

    assert decided_otherwise([tls_only(ARN)], decided, [Request(*each, context) for each in requests]) == []


@pytest.mark.parametrize("region,partition", [("us-gov-west-1", "aws-us-gov"), ("cn-north-1", "aws-cn"), ("eu-west-1", "aws")])
def test_its_arn_has_the_partition_of_its_region(region: str, partition: str, register: Register) -> None:
    found: list[str] = []

    registered = register(lambda: S3Bucket("checkpoints", args(region=region, cluster_region=region)).arn.apply(found.append))

    assert found == [f"arn:{partition}:s3:::{NAME}"]
    assert f'"{found[0]}/*"' in registered.of(POLICY)[0]["policy"]


def test_its_outputs_are_name_and_url(outputs: Outputs) -> None:
    assert outputs(lambda: S3Bucket("checkpoints", args())) == {"name": NAME, "arn": ARN, "url": f"s3://{NAME}"}


@pytest.mark.parametrize(
    "change,problem",
    [
        ({"bucket": "Acme"}, "bucket (is 'Acme', 4 characters): must have 3 to 63 characters of a-z, 0-9 and -"),
        ({"bucket": "acme_ai"}, "use bucket_name(account, region, environment, purpose)"),
        (
            {"bucket": "xn--acme"},
            "bucket (is 'xn--acme'): S3 reserves names that begin with xn--, sthree-, amzn-s3-demo- or end with -s3alias, --ol-s3",
        ),
        (
            {"bucket": "sthree-acme"},
            "bucket (is 'sthree-acme'): S3 reserves names that begin with xn--, sthree-, amzn-s3-demo- or end with -s3alias",
        ),
        (
            {"bucket": "acme-s3alias"},
            "bucket (is 'acme-s3alias'): S3 reserves names that begin with xn--, sthree-, amzn-s3-demo- or end with -s3alias",
        ),
        (
            {"bucket": "acme--x-s3"},
            "bucket (is 'acme--x-s3'): S3 reserves names that begin with xn--, sthree-, amzn-s3-demo- or end with -s3alias",
        ),
        (
            {"bucket": "acme-123456789012-us-east-1-an"},
            "bucket (is 'acme-123456789012-us-east-1-an'): S3 reserves names that begin with xn--, sthree-, amzn-s3-demo- o",
        ),
        ({"purpose": "logs"}, "purpose (is 'logs'): is not a purpose; use checkpoints or datasets"),
        ({"region": "us-central1"}, "region (is 'us-central1'): must be a region such as us-east-1"),
        ({"retention_days": 0}, "retention_days (is 0): must be at least 1; raise it, or leave it out"),
        ({"kms_key": "alias/checkpoints"}, "kms_key (is 'alias/checkpoints'): must be a key's ARN such as arn:aws:kms:"),
        ({"tags": {"aws:owner": "ann"}}, "tags: the key 'aws:owner' must have 1 to 128 letters"),
        ({"tags": {"owner": "ann;bob"}}, "tags.owner (is 'ann;bob'): must"),
        ({"tags": {f"key-{number}": "" for number in range(51)}}, "tags: 51 exceed AWS's limit of 50 per resource; remove some"),
    ],
)
def test_arguments_that_s3_would_reject_are_refused_before_anything_is_registered(
    change: dict[str, Any], problem: str, refusal: Refusal
) -> None:
    assert problem in refusal(S3Bucket, "checkpoints", args(**change))


def test_a_bucket_in_another_region_is_refused_under_the_name_of_the_rule(register: Register) -> None:
    def declare() -> None:
        problem = (
            r"^checkpoint-bucket-in-other-region: S3Bucket checkpoints: region \(is us-west-2\): "
            r"differs from cluster_region, .*; set it to us-east-1$"
        )
        with pytest.raises(ValueError, match=problem):
            S3Bucket("checkpoints", args(region="us-west-2"))

    assert register(declare).resources == []


def test_a_derived_name_contains_the_account_and_is_readable() -> None:
    assert bucket_name("111122223333", "us-east-1", "dev", "checkpoints") == NAME


def test_two_long_names_are_cut_and_stay_different() -> None:
    names = {bucket_name("111122223333", region, "e" * 40, "checkpoints") for region in ("ap-southeast-1", "ap-southeast-2")}

    assert max(len(name) for name in names) <= 63
    assert len(names) == 2


@given(st.from_regex(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?", fullmatch=True), st.sampled_from(["us-east-1", "ap-southeast-3", "us-gov-west-1"]))
def test_s3_accepts_a_derived_name(environment: str, region: str) -> None:
    for purpose in ("checkpoints", "datasets"):
        check_bucket_name("S3Bucket", "bucket", bucket_name("111122223333", region, environment, purpose))
