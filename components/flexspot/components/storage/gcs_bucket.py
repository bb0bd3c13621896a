"""A Cloud Storage bucket for checkpoints or for datasets, and a folder of one as a volume of a namespace."""

import re
from dataclasses import dataclass
from typing import NotRequired, TypedDict

import pulumi
from pulumi_gcp import storage
from pulumi_kubernetes.core.v1 import CSIPersistentVolumeSourceArgs

from flexspot.components.cloud_names import check_gcp_labels, fitted
from flexspot.components.shared_args import publish
from flexspot.components.storage.claimed_volume import (
    CHECKPOINTS,
    DATASETS,
    SHARED_FOLDER,
    FolderMount,
    FolderVolume,
    check_folder,
    check_purpose,
    declare_claimed_volume,
    resolve_folder_mount,
)

BUCKET_NAME_CHARACTERS = 63

# A dot is allowed by Cloud Storage, but makes the name a domain that somebody must prove to own.
_BUCKET_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{1,61}[a-z0-9]")

_CHECKPOINT_DAYS = 30
_DATASET_SOFT_DELETE_SECONDS = 7 * 24 * 60 * 60


class GcsBucketArgs(TypedDict):
    """Arguments of GcsBucket."""

    bucket: str
    """The bucket's name, globally unique, at most 63 characters; `bucket_name` builds a suitable one."""

    project: str
    """The project that owns the bucket."""

    location: str
    """The bucket's region, such as us-central1."""

    cluster_region: str
    """The region of the nodes that will use the bucket; `location` must be the same."""

    purpose: str
    """checkpoints or datasets."""

    labels: dict[str, str]
    """Labels of the bucket, in Google Cloud's format."""

    retention_days: NotRequired[int | None]
    """Days after which an object is deleted. Default: 30 for checkpoints, never for datasets."""

    folders: NotRequired[list[str] | None]
    """Managed folders to create, without a trailing slash. Default: shared for datasets, none for checkpoints.

    A team's folder is created by its GcsTeamAccess."""

    kms_key: NotRequired[pulumi.Input[str] | None]
    """Key that encrypts new objects; Cloud Storage's service agent must be allowed to use it. Default: a key of Google's."""

    force_destroy: NotRequired[bool | None]
    """Whether destroying the bucket also deletes its contents. Default: False, a bucket with objects is not destroyed."""


class GcsBucket(pulumi.ComponentResource):
    """A private bucket in the cluster's own region, accessible only through IAM.

    Checkpoints have neither old versions nor soft deletion: training overwrites and deletes them all day, and each copy would be billed
    again, by default for a week. Objects older than `retention_days` are deleted, so copy elsewhere what must stay. Datasets are
    hard to recreate: they stay, and can be restored for 7 days after a deletion. Parts of interrupted uploads are deleted after a day; they
    are billed but appear in no listing.

    The namespace is flat, not hierarchical: GcsFuseVolume mounts for identities that may only list their own folder.

    Raises ValueError for a name that Cloud Storage refuses, a location other than the cluster's region, an unknown purpose, a folder that
    is not a relative path, a retention below one day, and labels that Google Cloud refuses. Nothing here was applied to a live project.
    """

    name: pulumi.Output[str]
    """The bucket's name, known once its folders exist."""

    url: pulumi.Output[str]
    """gs:// and the name."""

    project_number: pulumi.Output[int]
    """The number of the project that owns the bucket, which principal:// identifiers are made with."""

    def __init__(self, name: str, args: GcsBucketArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        _check(name, args)
        super().__init__("flexspot:index:GcsBucket", name, {**args}, opts)
        resolved = _resolve(args)
        kms_key = args.get("kms_key")
        bucket = storage.Bucket(
            f"{name}-bucket",
            name=args["bucket"],
            project=args["project"],
            location=args["location"],
            storage_class="STANDARD",
            labels=args["labels"],
            uniform_bucket_level_access=True,
            public_access_prevention="enforced",
            force_destroy=resolved.force_destroy,
            versioning=storage.BucketVersioningArgs(enabled=False),
            soft_delete_policy=storage.BucketSoftDeletePolicyArgs(retention_duration_seconds=resolved.soft_delete_seconds),
            lifecycle_rules=_lifecycle_rules(resolved.retention_days),
            encryption=None if kms_key is None else storage.BucketEncryptionArgs(default_kms_key_name=kms_key),
            opts=pulumi.ResourceOptions(parent=self),
        )
        folders = [
            storage.ManagedFolder(
                f"{name}-{folder.replace('/', '-')}-folder",
                bucket=bucket.name,
                name=f"{folder}/",
                # Its objects stay, and are then covered by the bucket's policy alone.
                force_destroy=True,
                opts=pulumi.ResourceOptions(parent=self),
            )
            for folder in resolved.folders
        ]
        self.name = pulumi.Output.all(bucket.name, *(folder.name for folder in folders)).apply(_first)
        self.url = pulumi.Output.concat("gs://", self.name)
        self.project_number = bucket.project_number
        publish(self)


def bucket_name(project: str, environment: str, purpose: str) -> str:
    """A bucket name of at most 63 characters that nobody else can have, as no two projects have one id."""
    return fitted(f"{re.sub('[^a-z0-9-]', '-', project)}-{environment}-{purpose}", BUCKET_NAME_CHARACTERS)


@dataclass(frozen=True)
class _Resolved:
    retention_days: int | None
    soft_delete_seconds: int
    folders: tuple[str, ...]
    force_destroy: bool


def _resolve(args: GcsBucketArgs) -> _Resolved:
    days = args.get("retention_days")
    folders = args.get("folders")
    default_folders = (SHARED_FOLDER,) if args["purpose"] == DATASETS else ()
    return _Resolved(
        retention_days=_CHECKPOINT_DAYS if days is None and args["purpose"] == CHECKPOINTS else days,
        soft_delete_seconds=_DATASET_SOFT_DELETE_SECONDS if args["purpose"] == DATASETS else 0,
        folders=default_folders if folders is None else tuple(dict.fromkeys(folders)),
        force_destroy=bool(args.get("force_destroy")),
    )


def _lifecycle_rules(retention_days: int | None) -> list[storage.BucketLifecycleRuleArgs]:
    ages = {"AbortIncompleteMultipartUpload": 1}
    if retention_days is not None:
        ages["Delete"] = retention_days
    return [
        storage.BucketLifecycleRuleArgs(
            action=storage.BucketLifecycleRuleActionArgs(type=action),
            condition=storage.BucketLifecycleRuleConditionArgs(age=age),
        )
        for action, age in ages.items()
    ]


def _first(names: list[str]) -> str:
    return names[0]


def _check(name: str, args: GcsBucketArgs) -> None:
    owner = f"GcsBucket {name}"
    bucket = args["bucket"]
    if not _BUCKET_NAME.fullmatch(bucket) or bucket.startswith("goog") or "google" in bucket:
        raise ValueError(
            f"{owner}: bucket is {bucket!r} ({len(bucket)} characters); a name has 3 to {BUCKET_NAME_CHARACTERS} of a-z, 0-9, - and _, "
            "begins and ends with a letter or digit, and has no google in it: use bucket_name(project, environment, purpose)"
        )
    check_purpose(owner, args["purpose"])
    if args["location"].lower() != args["cluster_region"].lower():
        raise ValueError(
            f"{owner}: location is {args['location']} and cluster_region {args['cluster_region']}; traffic between regions costs money and "
            f"slows every checkpoint: set location to {args['cluster_region']}"
        )
    days = args.get("retention_days")
    if days is not None and days < 1:
        raise ValueError(f"{owner}: retention_days is {days}; give at least 1, or leave it out")
    for folder in args.get("folders") or []:
        check_folder(owner, "folders", folder)
    check_gcp_labels(owner, args["labels"])


DRIVER = "gcsfuse.csi.storage.gke.io"


class GcsFuseVolumeArgs(TypedDict):
    """Arguments of GcsFuseVolume."""

    team: str
    """The team's name, which is also its checkpoint folder."""

    namespace: str
    """Namespace of the claim; it must exist before: pass its resource in `depends_on`."""

    bucket: pulumi.Input[str]
    """The bucket's name."""

    purpose: str
    """checkpoints (read and write) or datasets (read-only)."""

    labels: dict[str, str]
    """Labels of both objects, in Kubernetes format."""

    folder: NotRequired[str | None]
    """The folder to mount, without a trailing slash. Default: the team's for checkpoints, shared for datasets."""

    claim: NotRequired[str | None]
    """The claim's name. Default: the purpose."""

    run_as_user: NotRequired[int | None]
    """User id that owns the files, equal to the pods' runAsUser; at least 1. Default: 1000."""

    run_as_group: NotRequired[int | None]
    """Group id that owns the files, equal to the pods' runAsGroup; at least 1. Default: 1000."""

    file_cache_gib: NotRequired[int | None]
    """GiB of the node's disk that cache read files, which also makes large reads parallel. Default: 0, no cache.

    The pod needs this space: set its annotation gke-gcsfuse/ephemeral-storage-limit above it."""


class GcsFuseVolume(pulumi.ComponentResource):
    """A folder of a bucket that any number of pods on any nodes can mount at once, through a claim of a fixed name.

    Never ReadWriteOnce: a disk can only be attached to one node, and the second pod of a job would wait for it for ever. The volume and its
    claim are bound from both sides, so no other claim can take it; it is retained, like the bucket, when the claim is deleted.

    Pods that use it carry the annotation gke-gcsfuse/volumes: "true" and run as a service account that GcsTeamAccess binds. That identity
    may only list its own folder, so the volume is mounted with only-dir, without the driver's own bucket check and without the check for a
    hierarchical bucket: both need a listing of the whole bucket.

    Checkpoints: changes by other pods are visible at once, files are written straight to the bucket instead of being staged on the node,
    and a folder can be renamed, which frameworks do to publish a finished checkpoint (in a flat bucket that is not atomic: look for the
    file that is written last). Datasets: a pod lists and looks up each file once and does not see later changes.

    Raises ValueError for names that Kubernetes refuses, an unknown purpose, a folder that is not a relative path, root as user or group,
    and a negative cache. The options are those of gcsfuse 3 and its driver's sources; no mount was made in a live cluster.
    """

    claim: pulumi.Output[str]
    """The claim's name, known once it exists."""

    volume: pulumi.Output[str]
    """The volume's name: the namespace's and the claim's, cut to 63 characters."""

    def __init__(self, name: str, args: GcsFuseVolumeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        mount = resolve_folder_mount(f"GcsFuseVolume {name}", args)
        super().__init__("flexspot:index:GcsFuseVolume", name, {**args}, opts)
        claimed = declare_claimed_volume(
            name,
            self,
            FolderVolume(
                namespace=args["namespace"],
                mount=mount,
                labels=args["labels"],
                mount_options=_mount_options(mount),
                source=CSIPersistentVolumeSourceArgs(
                    driver=DRIVER,
                    volume_handle=args["bucket"],
                    # Left out when it is not true: the server drops a false.
                    read_only=True if mount.read_only else None,
                    volume_attributes={"skipCSIBucketAccessCheck": "true"},
                ),
            ),
        )
        self.claim = claimed.claim
        self.volume = claimed.volume
        publish(self)


def _mount_options(mount: FolderMount) -> list[str]:
    options = [
        "implicit-dirs",
        f"only-dir={mount.folder}",
        f"uid={mount.user}",
        f"gid={mount.group}",
        "file-mode=664",
        "dir-mode=775",
        "enable-hns:false",
        "metadata-cache:negative-ttl-secs:0",
    ]
    if mount.read_only:
        options += ["metadata-cache:ttl-secs:-1", "file-system:kernel-list-cache-ttl-secs:-1"]
    else:
        options += ["metadata-cache:ttl-secs:0", "write:enable-streaming-writes:true", "file-system:rename-dir-limit:200000"]
    if mount.file_cache_gib:
        options += [
            # Never -1: without a ceiling it fills the pod's disk, and the pod is evicted.
            f"file-cache:max-size-mb:{mount.file_cache_gib * 1024}",
            "file-cache:cache-file-for-range-read:true",
            "file-cache:enable-parallel-downloads:true",
        ]
    return options
