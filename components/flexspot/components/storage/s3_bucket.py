"""An S3 bucket for checkpoints or for datasets, its name, policy and lifecycle, and a folder of it as a volume."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
import re
from typing import NotRequired, TypedDict

import pulumi
from pulumi_aws import s3
from pulumi_kubernetes.core.v1 import CSIPersistentVolumeSourceArgs

from flexspot.capacity.catalog.platform import partition_of
from flexspot.capacity.values.errors import SettingsProblem
from flexspot.capacity.values.names import AWS_REGION
from flexspot.components.cloud_names import check_aws_tags, check_form, check_kms_key, fitted
from flexspot.components.iam import VERSION, PolicyDocument, as_json
from flexspot.components.shared_args import publish, refuse
from flexspot.components.storage.claimed_volume import (
    DATASETS,
    BucketVolumeArgs,
    FolderMount,
    FolderVolume,
    check_purpose,
    declare_claimed_volume,
    resolve_folder_mount,
    volume_name,
)

BUCKET_NAME_CHARACTERS = 63

# S3 allows a dot, but the certificate of its endpoints does not cover such a name.
_BUCKET_NAME = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")

RESERVED_PREFIXES = ("xn--", "sthree-", "amzn-s3-demo-")
RESERVED_SUFFIXES = ("-s3alias", "--ol-s3", "--x-s3", "--table-s3", "-an")
"""Aliases of access points, directory buckets, table buckets, and the account's own namespace. No bucket here is one of these.

https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
"""


def bucket_name(account: str, region: str, environment: str, purpose: str) -> str:
    """Return a bucket name of at most 63 characters, always the same, and different for each account, region and environment.

    All accounts of a partition share bucket names. If another account has already taken it, the deployment fails. The account comes first
    because no reserved word begins with a digit.
    """
    return fitted(f"{account}-{environment}-{purpose}-{region}", BUCKET_NAME_CHARACTERS)


def check_bucket_name(owner: str, argument: str, bucket: str) -> None:
    """Raise ValueError for a name that S3 rejects, or that has a dot."""
    if not _BUCKET_NAME.fullmatch(bucket):
        form = f"must have 3 to {BUCKET_NAME_CHARACTERS} characters of a-z, 0-9 and -, and begin and end with a letter or digit"
        written, remedy = f"{bucket!r}, {len(bucket)} characters", "use bucket_name(account, region, environment, purpose)"
        refuse(owner, SettingsProblem(argument, written, form, remedy))
    reserved = [word for word in RESERVED_PREFIXES if bucket.startswith(word)] + [
        word for word in RESERVED_SUFFIXES if bucket.endswith(word)
    ]
    if reserved:
        problem = f"S3 reserves names that begin with {', '.join(RESERVED_PREFIXES)} or end with {', '.join(RESERVED_SUFFIXES)}"
        refuse(owner, SettingsProblem(argument, repr(bucket), problem, f"choose a name without {reserved[0]}"))


def bucket_arn(partition: str, bucket: str) -> str:
    """Return a bucket's ARN. Its name is sufficient, because it is unique in the partition."""
    return f"arn:{partition}:s3:::{bucket}"


def tls_only(arn: str) -> PolicyDocument:
    """Return the policy of a bucket that only answers over TLS 1.2 or later.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/example-bucket-policies.html (aws:SecureTransport) and
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/amazon-s3-policy-keys.html (s3:TlsVersion). It allows nothing: permissions come
    from the roles.
    """
    everything = [arn, f"{arn}/*"]
    return {
        "Version": VERSION,
        "Statement": [
            {
                "Sid": "DenyInsecureTransport",
                "Effect": "Deny",
                "Principal": "*",
                "Action": "s3:*",
                "Resource": everything,
                "Condition": {"Bool": {"aws:SecureTransport": "false"}},
            },
            {
                "Sid": "DenyOldTls",
                "Effect": "Deny",
                "Principal": "*",
                "Action": "s3:*",
                "Resource": everything,
                "Condition": {"NumericLessThan": {"s3:TlsVersion": "1.2"}},
            },
        ],
    }


ABORT_DAYS = 7
"""Days after which the parts of an unfinished upload are deleted. They are billed, and appear in no listing."""

RESTORE_DAYS = 7
"""Days in which a dataset's object can be restored after it was deleted or overwritten."""


def encryption_rule(kms_key: pulumi.Input[str] | None) -> s3.BucketServerSideEncryptionConfigurationRuleArgs:
    """Return encryption with the key, or with S3's own if it is None, and never with a key that the caller sends."""
    return s3.BucketServerSideEncryptionConfigurationRuleArgs(
        apply_server_side_encryption_by_default=s3.BucketServerSideEncryptionConfigurationRuleApplyServerSideEncryptionByDefaultArgs(
            sse_algorithm="AES256" if kms_key is None else "aws:kms", kms_master_key_id=kms_key
        ),
        bucket_key_enabled=kms_key is not None,
        blocked_encryption_types=["SSE-C"],
    )


def lifecycle_rules(purpose: str, retention_days: int | None) -> list[s3.BucketLifecycleConfigurationRuleArgs]:
    """Return the rules of a bucket, each of them for all of its objects."""
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
                # Removes delete markers without old versions. S3 accepts it with a number of days for old versions only.
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


class S3BucketArgs(TypedDict):
    """Arguments of S3Bucket."""

    bucket: str
    """The bucket's name, unique in the partition, at most 63 characters. `bucket_name` builds a suitable one."""

    region: str
    """The bucket's region, such as us-east-1."""

    cluster_region: str
    """The region of the nodes that will use the bucket. `region` must be the same."""

    purpose: str
    """Use of the bucket: `checkpoints` or `datasets`."""

    tags: dict[str, str]
    """Tags of the bucket. Nothing else in this component has tags."""

    retention_days: NotRequired[int | None]
    """Days after which an object is deleted. Default: never."""

    kms_key: NotRequired[pulumi.Input[str] | None]
    """ARN of the key that encrypts new objects. Default: S3's own key."""

    force_destroy: NotRequired[bool | None]
    """If true, destroying the bucket also deletes its contents. Default: False, a bucket with objects is not destroyed."""


class S3Bucket(pulumi.ComponentResource):
    """A private bucket in the cluster's own region, which only accepts TLS and leaves access to IAM.

    Checkpoints have no versions: training overwrites and deletes them all day, and each version would be billed again. A bucket that never
    had versioning needs no resource for it, and one with suspended versioning would have null versions. Objects older than `retention_days`
    are deleted, so copy elsewhere what must stay. Datasets are hard to recreate: they have versions, and deleted or overwritten objects can
    be restored for 7 days. Parts of incomplete uploads are deleted after 7 days.

    With a customer managed key, a bucket key saves S3 a KMS request per object. Encryption with keys that the caller sends (SSE-C) is
    rejected, as S3 does for new buckets since 2026: only the caller could read such a checkpoint.

    Raises ValueError for a name that S3 rejects, a region other than the cluster's (under the name of the rule), an unknown purpose, a
    retention below one day, a key without its ARN, and tags that AWS rejects. This component has not been deployed to a live account.
    """

    name: pulumi.Output[str]
    """The bucket's name, known once it is private, encrypted and has its policy."""

    arn: pulumi.Output[str]
    """The bucket's ARN, known at the same time."""

    url: pulumi.Output[str]
    """The bucket's URL, s3:// and its name, known at the same time."""

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
            # One after the other: S3 rejects changes of two of these at once (OperationAborted).
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
        publish(self)


def _check(name: str, args: S3BucketArgs) -> None:
    owner = f"S3Bucket {name}"
    check_form(f"{owner}: region", args["region"], AWS_REGION)
    check_bucket_name(owner, "bucket", args["bucket"])
    check_purpose(owner, args["purpose"])
    if args["region"] != args["cluster_region"]:
        rule, remedy = "checkpoint-bucket-in-other-region", f"set it to {args['cluster_region']}"
        problem = "differs from cluster_region, and traffic between regions costs money and slows every checkpoint"
        refuse(f"{rule}: {owner}", SettingsProblem("region", args["region"], problem, remedy))
    days = args.get("retention_days")
    if days is not None and days < 1:
        refuse(owner, SettingsProblem("retention_days", str(days), "must be at least 1", "raise it, or leave it out"))
    check_kms_key(owner, args.get("kms_key"))
    check_aws_tags(owner, args["tags"])


DRIVER = "s3.csi.aws.com"

# Found files are not looked up again. Missing ones are, because they may exist by then (Mountpoint 1.15 and later).
_LOOKED_UP_ONCE = ("metadata-ttl=indefinite", "negative-metadata-ttl=minimal")


class S3MountpointVolumeArgs(BucketVolumeArgs):
    """Arguments of S3MountpointVolume."""

    region: str
    """The bucket's region, such as us-east-1. Required, because pods cannot reach the machine's metadata service."""

    file_cache_gib: NotRequired[int | None]
    """Size in GiB of the cache of datasets on the node's disk, in the Mountpoint pod's own emptyDir. Default: 0, no cache.

    Only for datasets: checkpoints are read once, and every node must see the newest."""


class S3MountpointVolume(pulumi.ComponentResource):
    """A folder of a bucket that any number of pods on any nodes can mount at once, through a claim of a fixed name.

    The driver (version 2 of the add-on aws-mountpoint-s3-csi-driver) mounts with the pod's identity, authenticationSource: pod, which
    S3TeamAccess gives to its service account, and never with its own. That identity may only list its own folder, so the folder is mounted
    as prefix. With Pod Identity nothing else is needed: stsRegion is for IRSA, and `region` would replace it.
    https://github.com/awslabs/mountpoint-s3-csi-driver/blob/main/docs/CONFIGURATION.md#pod-level-credentials The mount itself runs in a pod
    of the namespace mount-s3 on the same node, which needs some free capacity there. Network policies of the team's namespace do not apply
    to that pod, but do apply to pods that access the bucket directly.

    It is not a disk. **A writer of checkpoints writes new files, each from beginning to end, and closes them. It cannot append, cannot
    change a part of a file, and cannot rename** files or folders in a general purpose bucket. Others see a file, complete, once it was
    closed without an error (or after fsync, after which it cannot be written further). Frameworks must therefore not write to a temporary
    name and rename it. Write step-100/ and then, last, a small file in it, or latest anew, that marks it as complete. Readers look for that
    file. An existing file can be deleted, and overwritten if it is opened with truncation. Empty folders are not kept. A file has at most
    10,000 parts of 8 MiB, 78 GiB: split larger ones. No locks, links, chmod or chown.
    https://github.com/awslabs/mountpoint-s3/blob/main/doc/SEMANTICS.md

    Datasets are read-only, and a file that was looked up once is not looked up again while the node has the volume mounted: new files are
    visible, changes to files already read are not. The volume's size, 1 GiB, has no meaning: Kubernetes requires one, the driver ignores
    it.

    Raises ValueError for names that Kubernetes rejects, no region, an unknown purpose, a folder that is not a relative path, root as user
    or group, and a cache that is negative or for checkpoints. The options follow the documentation of Mountpoint and its driver. It has not
    been mounted in a live cluster.
    """

    claim: pulumi.Output[str]
    """The claim's name, known once it exists."""

    volume: pulumi.Output[str]
    """The volume's name: the namespace's and the claim's, cut to 63 characters."""

    def __init__(self, name: str, args: S3MountpointVolumeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        mount = _check_volume(name, args)
        super().__init__("flexspot:index:S3MountpointVolume", name, {**args}, opts)
        claimed = declare_claimed_volume(
            name,
            self,
            FolderVolume(
                namespace=args["namespace"],
                mount=mount,
                labels=args["labels"],
                mount_options=_mount_options(mount, args["region"]),
                source=CSIPersistentVolumeSourceArgs(
                    driver=DRIVER,
                    # Not the bucket: of several volumes with the same handle a pod only gets the first.
                    volume_handle=volume_name(args["namespace"], mount.claim),
                    # Omitted when it is not true: the server drops a false.
                    read_only=True if mount.read_only else None,
                    volume_attributes={"bucketName": args["bucket"], "authenticationSource": "pod", **_cache(mount)},
                ),
            ),
        )
        self.claim = claimed.claim
        self.volume = claimed.volume
        publish(self)


def _mount_options(mount: FolderMount, region: str) -> list[str]:
    options = [
        f"region={region}",
        f"prefix={mount.folder}/",
        f"uid={mount.user}",
        f"gid={mount.group}",
        "file-mode=664",
        "dir-mode=775",
        # The mount's user is the driver's. Without this only that user and root would see the files.
        "allow-other",
    ]
    return [*options, "read-only", *_LOOKED_UP_ONCE] if mount.read_only else [*options, "allow-delete", "allow-overwrite"]


def _cache(mount: FolderMount) -> dict[str, str]:
    # Never without its limit: it would fill the node's disk.
    return {"cache": "emptyDir", "cacheEmptyDirSizeLimit": f"{mount.file_cache_gib}Gi"} if mount.file_cache_gib else {}


def _check_volume(name: str, args: S3MountpointVolumeArgs) -> FolderMount:
    owner = f"S3MountpointVolume {name}"
    mount = resolve_folder_mount(owner, args["purpose"], args)
    check_form(f"{owner}: region", args["region"], AWS_REGION)
    if (cache := mount.file_cache_gib) and not mount.read_only:
        problem = f"is only for datasets: with purpose {args['purpose']} a node would keep reading an overwritten checkpoint"
        refuse(owner, SettingsProblem("file_cache_gib", str(cache), problem, "leave it out"))
    return mount
