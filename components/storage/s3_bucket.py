"""An S3 bucket for checkpoints or for datasets."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types.
from typing import NotRequired, TypedDict

import pulumi
from pulumi_aws import s3

from capacity.values.names import AWS_REGION
from components.eks.names import check_form, partition_of
from components.iam_document import as_json
from components.storage.aws_inputs import check_aws_tags, check_kms_key
from components.storage.purposes import DATASETS, check_purpose
from components.storage.s3_bucket_name import check_bucket_name
from components.storage.s3_bucket_policy import bucket_arn, tls_only
from components.storage.s3_bucket_rules import encryption_rule, lifecycle_rules


class S3BucketArgs(TypedDict):
    """Arguments of S3Bucket."""

    bucket: str
    """The bucket's name, unique in the partition, at most 63 characters; `bucket_name` makes a fitting one."""

    region: str
    """The bucket's region, such as us-east-1."""

    cluster_region: str
    """The region of the nodes that will use the bucket; `region` must be the same."""

    purpose: str
    """checkpoints or datasets."""

    tags: dict[str, str]
    """Tags of the bucket; nothing else of it has any."""

    retention_days: NotRequired[int | None]
    """After how many days an object is deleted. Default: never."""

    kms_key: NotRequired[pulumi.Input[str] | None]
    """ARN of the key that encrypts new objects. Default: a key of S3's."""

    force_destroy: NotRequired[bool | None]
    """Whether destroying the bucket deletes what is in it. Default: False, a bucket with objects is not destroyed."""


class S3Bucket(pulumi.ComponentResource):
    """A private bucket in the cluster's own region, which answers over TLS alone and leaves access to IAM.

    Checkpoints have no versions: training overwrites and deletes them all day, and each would be paid for again. A bucket that never had
    versioning needs no resource to say so; one that is set to suspended would have null versions. What is older than `retention_days` is
    deleted, so a result that is to stay is copied elsewhere. Datasets are hard to make again: they have versions, and what was deleted or
    overwritten can be restored for 7 days. Parts of uploads that never ended are deleted after 7 days.

    With a key of one's own, a bucket key keeps S3 from asking KMS about each object. Encryption with keys that the caller sends (SSE-C) is
    refused, as S3 does for new buckets since 2026: nobody else could read such a checkpoint.

    Raises ValueError for a name that S3 refuses, a region other than the cluster's (under the name of the rule), an unknown purpose, a
    retention below one day, a key without its ARN, and tags that AWS refuses. Nothing here was applied to a live account.
    """

    name: pulumi.Output[str]
    """The bucket's name, known once it is private, encrypted and has its policy."""

    arn: pulumi.Output[str]
    """The bucket's ARN, likewise."""

    url: pulumi.Output[str]
    """s3:// and the name, likewise."""

    def __init__(self, name: str, args: S3BucketArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        _check(name, args)
        super().__init__("flexspot:index:S3Bucket", name, {**args}, opts)
        child = pulumi.ResourceOptions(parent=self)
        region = args["region"]
        arn = bucket_arn(partition_of(region), args["bucket"])
        made = s3.Bucket(
            f"{name}-bucket",
            bucket=args["bucket"],
            region=region,
            force_destroy=bool(args.get("force_destroy")),
            tags=args["tags"],
            opts=child,
        )
        bucket = made.bucket
        private = s3.BucketPublicAccessBlock(
            f"{name}-public-access-block",
            bucket=bucket,
            region=region,
            block_public_acls=True,
            block_public_policy=True,
            ignore_public_acls=True,
            restrict_public_buckets=True,
            opts=child,
        )
        ownership = s3.BucketOwnershipControls(
            f"{name}-ownership",
            bucket=bucket,
            region=region,
            rule=s3.BucketOwnershipControlsRuleArgs(object_ownership="BucketOwnerEnforced"),
            # One after the other: S3 refuses to change two of these at once (OperationAborted).
            opts=pulumi.ResourceOptions(parent=self, depends_on=[private]),
        )
        policy = s3.BucketPolicy(
            f"{name}-policy",
            bucket=bucket,
            region=region,
            policy=as_json(tls_only(arn)),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[ownership]),
        )
        encryption = s3.BucketServerSideEncryptionConfiguration(
            f"{name}-encryption", bucket=bucket, region=region, rules=[encryption_rule(args.get("kms_key"))], opts=child
        )
        versions = (
            [
                s3.BucketVersioning(
                    f"{name}-versioning",
                    bucket=bucket,
                    region=region,
                    versioning_configuration=s3.BucketVersioningVersioningConfigurationArgs(status="Enabled"),
                    opts=child,
                )
            ]
            if args["purpose"] == DATASETS
            else []
        )
        s3.BucketLifecycleConfiguration(
            f"{name}-lifecycle",
            bucket=bucket,
            region=region,
            rules=lifecycle_rules(args["purpose"], args.get("retention_days")),
            opts=pulumi.ResourceOptions(parent=self, depends_on=versions),
        )
        safe = [each.id for each in (policy, encryption, *versions)]
        self.name = pulumi.Output.all(bucket, *safe).apply(lambda known: str(known[0]))
        self.arn = self.name.apply(lambda _: arn)
        self.url = pulumi.Output.concat("s3://", self.name)
        self.register_outputs({"name": self.name, "arn": self.arn, "url": self.url})


def _check(name: str, args: S3BucketArgs) -> None:
    owner = f"S3Bucket {name}"
    check_form(f"{owner}: region", args["region"], AWS_REGION)
    check_bucket_name(owner, "bucket", args["bucket"])
    check_purpose(owner, args["purpose"])
    if args["region"] != args["cluster_region"]:
        raise ValueError(
            f"checkpoint-bucket-in-other-region: {owner}: region is {args['region']} and cluster_region {args['cluster_region']}; traffic "
            f"between regions costs money and slows every checkpoint: set region to {args['cluster_region']}"
        )
    days = args.get("retention_days")
    if days is not None and days < 1:
        raise ValueError(f"{owner}: retention_days is {days}; give at least 1, or leave it out")
    check_kms_key(owner, args.get("kms_key"))
    check_aws_tags(owner, args["tags"])
