"""A Cloud Storage bucket for checkpoints or for datasets, a team's access to it, and a folder of it as a volume."""

import hashlib
import re
from dataclasses import dataclass
from typing import NotRequired, TypedDict

import pulumi
from pulumi_gcp import serviceaccount, storage
from pulumi_kubernetes.core.v1 import CSIPersistentVolumeSourceArgs

from flexspot.capacity.values.errors import SettingsProblem
from flexspot.components.cloud_names import check_gcp_labels, fitted
from flexspot.components.shared_args import publish, refuse
from flexspot.components.storage.claimed_volume import (
    CHECKPOINTS,
    DATASETS,
    SHARED_FOLDER,
    BucketVolumeArgs,
    FolderMount,
    FolderVolume,
    check_dns_labels,
    check_folder,
    check_purpose,
    check_setting_names,
    declare_claimed_volume,
    resolve_folder_mount,
)

BUCKET_NAME_CHARACTERS = 63

# Cloud Storage allows a dot, but it makes the name a domain, which needs proof of ownership.
_BUCKET_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{1,61}[a-z0-9]")

_CHECKPOINT_DAYS = 30
_DATASET_SOFT_DELETE_SECONDS = 7 * 24 * 60 * 60


class GcsBucketArgs(TypedDict):
    """Arguments of GcsBucket."""

    bucket: str
    """The bucket's name, globally unique, at most 63 characters. `bucket_name` builds a suitable one."""

    project: str
    """The project that owns the bucket."""

    location: str
    """The bucket's region, such as us-central1."""

    cluster_region: str
    """The region of the nodes that will use the bucket. `location` must be the same."""

    purpose: str
    """Use of the bucket: `checkpoints` or `datasets`."""

    labels: dict[str, str]
    """Labels of the bucket, in Google Cloud's format."""

    retention_days: NotRequired[int | None]
    """Days after which an object is deleted. Default: 30 for checkpoints, never for datasets."""

    folders: NotRequired[list[str] | None]
    """Managed folders to create, without a trailing slash. Default: shared for datasets, none for checkpoints.

    A team's folder is created by its GcsTeamAccess."""

    kms_key: NotRequired[pulumi.Input[str] | None]
    """Key that encrypts new objects. Cloud Storage's service agent must be allowed to use it. Default: Google's own key."""

    force_destroy: NotRequired[bool | None]
    """If true, destroying the bucket also deletes its contents. Default: False, a bucket with objects is not destroyed."""


class GcsBucket(pulumi.ComponentResource):
    """A private bucket in the cluster's own region, accessible only through IAM.

    Checkpoints have neither old versions nor soft deletion: training overwrites and deletes them all day, and each copy would be billed
    again, by default for a week. Objects older than `retention_days` are deleted, so copy elsewhere what must stay. Datasets are hard to
    recreate: they stay, and can be restored for 7 days after a deletion. Parts of interrupted uploads, which are billed but appear in no
    listing, are deleted after a day.

    The namespace is flat, not hierarchical: GcsFuseVolume mounts for identities that may only list their own folder.

    Raises ValueError for a name that Cloud Storage rejects, a location other than the cluster's region, an unknown purpose, a folder that
    is not a relative path, a retention below one day, and labels that Google Cloud rejects. This component has not been deployed to a live
    project.
    """

    name: pulumi.Output[str]
    """The bucket's name, known once its folders exist."""

    url: pulumi.Output[str]
    """The bucket's URL, gs:// and its name."""

    project_number: pulumi.Output[int]
    """The number of the project that owns the bucket, which is part of principal:// identifiers."""

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
                # Its objects stay, and are then only covered by the bucket's policy.
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
    """Return a bucket name of at most 63 characters. It is unique, because project ids are."""
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
        form = f"must have 3 to {BUCKET_NAME_CHARACTERS} of a-z, 0-9, - and _, begin and end with a letter or digit, and not contain google"
        written, remedy = f"{bucket!r}, {len(bucket)} characters", "use bucket_name(project, environment, purpose)"
        refuse(owner, SettingsProblem("bucket", written, form, remedy))
    check_purpose(owner, args["purpose"])
    if args["location"].lower() != args["cluster_region"].lower():
        problem = "differs from cluster_region, and traffic between regions costs money and slows every checkpoint"
        refuse(owner, SettingsProblem("location", args["location"], problem, f"set it to {args['cluster_region']}"))
    days = args.get("retention_days")
    if days is not None and days < 1:
        refuse(owner, SettingsProblem("retention_days", str(days), "must be at least 1", "raise it, or leave it out"))
    for folder in args.get("folders") or []:
        check_folder(owner, "folders", folder)
    check_gcp_labels(owner, args["labels"])


DRIVER = "gcsfuse.csi.storage.gke.io"


class GcsFuseVolumeArgs(BucketVolumeArgs):
    """Arguments of GcsFuseVolume."""

    file_cache_gib: NotRequired[int | None]
    """Size in GiB of the cache of read files on the node's disk, which also makes large reads parallel. Default: 0, no cache.

    The pod needs this space: set its annotation gke-gcsfuse/ephemeral-storage-limit above it."""


class GcsFuseVolume(pulumi.ComponentResource):
    """A folder of a bucket that any number of pods on any nodes can mount at once, through a claim of a fixed name.

    Never ReadWriteOnce: a disk can only be attached to one node, and the second pod of a job would wait for it forever. The volume and its
    claim are bound from both sides, so no other claim can take it. It is retained, like the bucket, when the claim is deleted.

    Pods that use it carry the annotation gke-gcsfuse/volumes: "true" and run as a service account that GcsTeamAccess binds. That identity
    may only list its own folder, so the volume is mounted with only-dir, without the driver's own bucket check and without the check for a
    hierarchical bucket: both need a listing of the whole bucket.

    For checkpoints, changes by other pods are visible at once, and files are written straight to the bucket instead of being staged on the
    node. A folder can be renamed, which frameworks do to publish a finished checkpoint. In a flat bucket that is not atomic: look for the
    file that is written last. For datasets, a pod lists and looks up each file once and does not see later changes.

    Raises ValueError for names that Kubernetes rejects, an unknown purpose, a folder that is not a relative path, root as user or group,
    and a negative cache. The options follow the sources of gcsfuse 3 and its driver. It has not been mounted in a live cluster.
    """

    claim: pulumi.Output[str]
    """The claim's name, known once it exists."""

    volume: pulumi.Output[str]
    """The volume's name: the namespace's and the claim's, cut to 63 characters."""

    def __init__(self, name: str, args: GcsFuseVolumeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        mount = resolve_folder_mount(f"GcsFuseVolume {name}", args["purpose"], args)
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
                    # Omitted when it is not true: the server drops a false.
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
            # Never -1: without a limit it fills the pod's disk, and the pod is evicted.
            f"file-cache:max-size-mb:{mount.file_cache_gib * 1024}",
            "file-cache:cache-file-for-range-read:true",
            "file-cache:enable-parallel-downloads:true",
        ]
    return options


ACCOUNT_ID_CHARACTERS = 30


class GcsTeamAccessArgs(TypedDict):
    """Arguments of GcsTeamAccess. Neither service accounts nor managed folders have labels. An account's description names its owner."""

    team: str
    """The team's name, which is also the name of its folder in the checkpoint bucket."""

    environment: str
    """The environment's name, which separates the identities of two environments in one project."""

    project: str
    """The project of the cluster and of the identity."""

    namespace: str
    """The team's Kubernetes namespace."""

    service_account: str
    """The Kubernetes service account, in that namespace, whose pods act as the team."""

    checkpoint_bucket: pulumi.Input[str]
    """Bucket in which the team's folder is created."""

    project_number: NotRequired[pulumi.Input[int] | None]
    """The number of `project`. If set, no account is created: the Kubernetes service account itself gets the roles. Default: none."""

    dataset_bucket: NotRequired[pulumi.Input[str] | None]
    """Bucket with datasets. Default: none, the team reads no dataset."""


class GcsTeamAccess(pulumi.ComponentResource):
    """The permissions of a team's pods: read and write the team's checkpoints, read its datasets, and nothing else.

    They act as an IAM service account that is created for the team. With `project_number` they act as themselves: roles are granted to the
    principal:// identifier of their Kubernetes service account (https://docs.cloud.google.com/iam/docs/principal-identifiers; Google's own
    samples do so for folders and topics, GoogleCloudPlatform/accelerated-platforms; read 2026-11-25). Either way the identity consists of
    project, namespace and name: to Google Cloud, pods with the same names in another cluster of the project are the same.

    Access is granted on managed folders, not by IAM conditions on object names. A listing is checked on the bucket, where a condition on
    `resource.name` does not match an object's name, so such a team could read a checkpoint but not find it. A role on a managed folder
    covers the objects under its path. https://docs.cloud.google.com/storage/docs/managed-folders A listing must then name the folder as its
    prefix. A listing of the whole bucket is rejected. GcsFuseVolume mounts accordingly, and a mount without its options fails. This follows
    the documentation and the sources of gcsfuse, and has not been tried in a live project.

    The cluster must exist first, with workload identity: pass it in `depends_on`, because its identity pool is created with it. If there is
    a service account, annotate the Kubernetes service account with iam.gke.io/gcp-service-account and `email`.

    Raises ValueError for names that Kubernetes or Google Cloud rejects, and for dataset folders without a dataset bucket.
    """

    member: pulumi.Output[str]
    """The team's pods as an IAM member: serviceAccount: and an address, or a principal:// identifier."""

    email: pulumi.Output[str] | None
    """The service account's address. None without an account."""

    checkpoint_url: pulumi.Output[str]
    """The URL of the team's checkpoints, gs://bucket/team/."""

    def __init__(self, name: str, args: GcsTeamAccessArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        _check_access(name, args)
        super().__init__("flexspot:index:GcsTeamAccess", name, {**args}, opts)
        child = pulumi.ResourceOptions(parent=self)
        number = args.get("project_number")
        self.email = _account(name, args, child).email if number is None else None
        self.member = _principal(args, number) if self.email is None else pulumi.Output.concat("serviceAccount:", self.email)
        checkpoints = storage.ManagedFolder(
            f"{name}-checkpoints",
            bucket=args["checkpoint_bucket"],
            name=f"{args['team']}/",
            # A team that is removed loses its access. Its checkpoints stay until the bucket's retention ends.
            force_destroy=True,
            opts=child,
        )
        storage.ManagedFolderIamMember(
            f"{name}-checkpoints-user",
            bucket=checkpoints.bucket,
            managed_folder=checkpoints.name,
            role="roles/storage.objectUser",
            member=self.member,
            opts=child,
        )
        dataset_bucket = args.get("dataset_bucket")
        if dataset_bucket is not None:
            # The shared folder belongs to the bucket: only the first team could create it here.
            storage.ManagedFolderIamMember(
                f"{name}-{SHARED_FOLDER}-viewer",
                bucket=dataset_bucket,
                managed_folder=f"{SHARED_FOLDER}/",
                role="roles/storage.objectViewer",
                member=self.member,
                opts=child,
            )
        self.checkpoint_url = pulumi.Output.concat("gs://", checkpoints.bucket, "/", checkpoints.name)
        publish(self)


def _account(name: str, args: GcsTeamAccessArgs, child: pulumi.ResourceOptions) -> serviceaccount.Account:
    """Return an account that the pods of the team's Kubernetes service account may use."""
    account = serviceaccount.Account(
        f"{name}-account",
        account_id=account_id(args["team"], args["environment"]),
        project=args["project"],
        display_name=f"Team {args['team']}, {args['environment']}",
        description=f"Pods of team {args['team']} in namespace {args['namespace']} of {args['environment']}; made by Flexspot.",
        opts=child,
    )
    serviceaccount.IAMMember(
        f"{name}-workload-identity",
        service_account_id=account.name,
        role="roles/iam.workloadIdentityUser",
        member=f"serviceAccount:{args['project']}.svc.id.goog[{args['namespace']}/{args['service_account']}]",
        opts=child,
    )
    return account


def _principal(args: GcsTeamAccessArgs, number: pulumi.Input[int] | None) -> pulumi.Output[str]:
    """Return the Kubernetes service account as an IAM member."""
    pool = f"{args['project']}.svc.id.goog"
    subject = f"ns/{args['namespace']}/sa/{args['service_account']}"
    return pulumi.Output.format(
        "principal://iam.googleapis.com/projects/{0}/locations/global/workloadIdentityPools/{1}/subject/{2}", number, pool, subject
    )


def account_id(team: str, environment: str) -> str:
    """Return the id of a team's service account: 6 to 30 characters, different for every pair of team and environment.

    Hyphens join the names in an id, and names may contain hyphens: team a-b of c and team a of b-c. If one does, a digest of the pair
    distinguishes them.
    """
    joined = f"team-{team}-{environment}"
    if "-" in team or "-" in environment:
        # With a slash, which no name contains.
        joined += f"-{hashlib.sha256(f'{team}/{environment}'.encode()).hexdigest()[:8]}"
    return fitted(joined, ACCOUNT_ID_CHARACTERS)


def _check_access(name: str, args: GcsTeamAccessArgs) -> None:
    owner = f"GcsTeamAccess {name}"
    check_setting_names(owner, {"team": args["team"], "environment": args["environment"]})
    check_dns_labels(owner, {"namespace": args["namespace"], "service_account": args["service_account"]})
