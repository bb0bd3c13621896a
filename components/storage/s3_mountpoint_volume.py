"""A folder of an S3 bucket as a volume of a namespace."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types.
from typing import NotRequired, TypedDict

import pulumi
from pulumi_kubernetes.core.v1 import CSIPersistentVolumeSourceArgs

from capacity.values.names import AWS_REGION
from components.cloud_names import check_form
from components.storage.claimed_volume import FolderMount, FolderVolume, declare_claimed_volume, resolve_folder_mount, volume_name

DRIVER = "s3.csi.aws.com"

# What was found is not asked for again; what was not there may have been put there since (Mountpoint 1.15 and later).
_LOOKED_UP_ONCE = ("metadata-ttl=indefinite", "negative-metadata-ttl=minimal")


class S3MountpointVolumeArgs(TypedDict):
    """Arguments of S3MountpointVolume."""

    team: str
    """The team's name, which is also its checkpoint folder."""

    namespace: str
    """Namespace of the claim; it must exist before: pass its resource in `depends_on`."""

    bucket: pulumi.Input[str]
    """The bucket's name."""

    region: str
    """The bucket's region, such as us-east-1. Required, because pods cannot ask the machine's metadata service for it."""

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
    """GiB of the node's disk that cache datasets, in the Mountpoint pod's own emptyDir. Default: 0, no cache.

    Only for datasets: checkpoints are read once, and every node must see the newest."""


class S3MountpointVolume(pulumi.ComponentResource):
    """A folder of a bucket that any number of pods on any nodes can mount at once, through a claim of a fixed name.

    The driver (version 2 of the add-on aws-mountpoint-s3-csi-driver) mounts with the pod's identity, authenticationSource: pod, which
    S3TeamAccess gives to its service account, and never with its own. That identity may only list its own folder, so the folder is mounted
    as prefix. With Pod Identity nothing else is needed: stsRegion is for IRSA, and `region` would replace it.
    https://github.com/awslabs/mountpoint-s3-csi-driver/blob/main/docs/CONFIGURATION.md#pod-level-credentials The mount itself runs in a pod
    of the namespace mount-s3 on the same node, which needs some free capacity there; network policies of the team's namespace do not apply
    to it, but do apply to pods that access the bucket directly.

    It is not a disk. **A writer of checkpoints writes new files, each from beginning to end, and closes them; it cannot append, cannot
    change a part of a file, and cannot rename**, neither files nor folders, in a general purpose bucket. Others see a file, complete, once
    it was closed without an error (or after fsync, after which it cannot be written further). Frameworks must therefore not write to a
    temporary name and rename it: write step-100/ and then, last, a small file in it, or latest anew, that marks it as complete; readers
    look for that file. An existing file can be overwritten, if it is opened with truncation, and deleted. Empty folders are not kept. A
    file has at most 10,000 parts of 8 MiB, 78 GiB: split larger ones. No locks, links, chmod or chown.
    https://github.com/awslabs/mountpoint-s3/blob/main/doc/SEMANTICS.md

    Datasets are read-only, and a file that was looked up once is not looked up again while the node has the volume mounted: new files are
    visible, changes to files already read are not. The volume's size, 1 GiB, has no meaning: Kubernetes requires one, the driver ignores
    it.

    Raises ValueError for names that Kubernetes refuses, no region, an unknown purpose, a folder that is not a relative path, root as user
    or group, and a cache that is negative or for checkpoints. The options are those of Mountpoint and its driver's documentation; no mount
    was made in a live cluster.
    """

    claim: pulumi.Output[str]
    """The claim's name, known once it exists."""

    volume: pulumi.Output[str]
    """The volume's name: the namespace's and the claim's, cut to 63 characters."""

    def __init__(self, name: str, args: S3MountpointVolumeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        mount = _check(name, args)
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
                    # Not the bucket: of volumes with one handle a pod gets the first alone.
                    volume_handle=volume_name(args["namespace"], mount.claim),
                    # Left out when it is not true: the server drops a false.
                    read_only=True if mount.read_only else None,
                    volume_attributes={"bucketName": args["bucket"], "authenticationSource": "pod", **_cache(mount)},
                ),
            ),
        )
        self.claim = claimed.claim
        self.volume = claimed.volume
        self.register_outputs({"claim": self.claim, "volume": self.volume})


def _mount_options(mount: FolderMount, region: str) -> list[str]:
    options = [
        f"region={region}",
        f"prefix={mount.folder}/",
        f"uid={mount.user}",
        f"gid={mount.group}",
        "file-mode=664",
        "dir-mode=775",
        # The mount's user is the driver's: without this only it and root would see the files.
        "allow-other",
    ]
    return [*options, "read-only", *_LOOKED_UP_ONCE] if mount.read_only else [*options, "allow-delete", "allow-overwrite"]


def _cache(mount: FolderMount) -> dict[str, str]:
    # Never without its limit: it would fill the node's disk.
    return {"cache": "emptyDir", "cacheEmptyDirSizeLimit": f"{mount.file_cache_gib}Gi"} if mount.file_cache_gib else {}


def _check(name: str, args: S3MountpointVolumeArgs) -> FolderMount:
    owner = f"S3MountpointVolume {name}"
    mount = resolve_folder_mount(owner, args)
    check_form(f"{owner}: region", args["region"], AWS_REGION)
    if mount.file_cache_gib and not mount.read_only:
        raise ValueError(
            f"{owner}: file_cache_gib is {mount.file_cache_gib} with purpose {args['purpose']}; a cache is for datasets alone, as a node "
            "would go on reading an overwritten checkpoint: leave it out"
        )
    return mount
