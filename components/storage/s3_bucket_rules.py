"""What S3 does with the objects of a bucket by itself: it encrypts and deletes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulumi_aws import s3

from components.storage.purposes import DATASETS

if TYPE_CHECKING:
    import pulumi

ABORT_DAYS = 7
"""After how many days the parts of an upload that never ended are deleted; they are billed, and appear in no listing."""

RESTORE_DAYS = 7
"""For how many days a dataset's object can be had back after it was deleted or overwritten."""


def encryption_rule(kms_key: pulumi.Input[str] | None) -> s3.BucketServerSideEncryptionConfigurationRuleArgs:
    """Encryption with the key, or with one of S3's where it is None; never with a key that the caller sends."""
    return s3.BucketServerSideEncryptionConfigurationRuleArgs(
        apply_server_side_encryption_by_default=s3.BucketServerSideEncryptionConfigurationRuleApplyServerSideEncryptionByDefaultArgs(
            sse_algorithm="AES256" if kms_key is None else "aws:kms", kms_master_key_id=kms_key
        ),
        bucket_key_enabled=kms_key is not None,
        blocked_encryption_types=["SSE-C"],
    )


def lifecycle_rules(purpose: str, retention_days: int | None) -> list[s3.BucketLifecycleConfigurationRuleArgs]:
    """The rules of a bucket, each of them for all of its objects."""
    rules = [
        _rule(
            "abort-unfinished-uploads",
            abort_incomplete_multipart_upload=s3.BucketLifecycleConfigurationRuleAbortIncompleteMultipartUploadArgs(
                days_after_initiation=ABORT_DAYS
            ),
        )
    ]
    if retention_days is not None:
        rules.append(_rule("delete-after-retention", expiration=s3.BucketLifecycleConfigurationRuleExpirationArgs(days=retention_days)))
    if purpose == DATASETS:
        rules.append(
            _rule(
                "delete-old-versions",
                # A marker that hides nothing any more goes too; S3 takes this beside the days of old versions, not of current ones.
                expiration=s3.BucketLifecycleConfigurationRuleExpirationArgs(expired_object_delete_marker=True),
                noncurrent_version_expiration=s3.BucketLifecycleConfigurationRuleNoncurrentVersionExpirationArgs(
                    noncurrent_days=RESTORE_DAYS
                ),
            )
        )
    return rules


def _rule(
    rule_id: str,
    *,
    expiration: s3.BucketLifecycleConfigurationRuleExpirationArgs | None = None,
    abort_incomplete_multipart_upload: s3.BucketLifecycleConfigurationRuleAbortIncompleteMultipartUploadArgs | None = None,
    noncurrent_version_expiration: s3.BucketLifecycleConfigurationRuleNoncurrentVersionExpirationArgs | None = None,
) -> s3.BucketLifecycleConfigurationRuleArgs:
    return s3.BucketLifecycleConfigurationRuleArgs(
        id=rule_id,
        status="Enabled",
        filter=s3.BucketLifecycleConfigurationRuleFilterArgs(),
        expiration=expiration,
        abort_incomplete_multipart_upload=abort_incomplete_multipart_upload,
        noncurrent_version_expiration=noncurrent_version_expiration,
    )
