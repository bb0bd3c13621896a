"""A folder of a bucket as a volume of a namespace."""

from typing import NotRequired, TypedDict

import pulumi
from pulumi_kubernetes.core.v1 import CSIPersistentVolumeSourceArgs

from components.storage.claimed_volume import BucketVolume, FolderMount, declare_claimed_volume, resolve_folder_mount

DRIVER = "gcsfuse.csi.storage.gke.io"


class GcsFuseVolumeArgs(TypedDict):
    """Arguments of GcsFuseVolume."""

    team: str
    """The team's name: the folder of its checkpoints."""

    namespace: str
    """The namespace of the claim, which must exist before: hand its resource over in `depends_on`."""

    bucket: pulumi.Input[str]
    """The bucket's name."""

    purpose: str
    """checkpoints, read and written, or datasets, read only."""

    labels: dict[str, str]
    """Labels of both objects, in Kubernetes' form."""

    folder: NotRequired[str | None]
    """The folder to mount, without a slash at the end. Default: the team's for checkpoints, shared for datasets."""

    claim: NotRequired[str | None]
    """The claim's name. Default: the purpose."""

    run_as_user: NotRequired[int | None]
    """User id that owns the files, the one of the pods' runAsUser; at least 1. Default: 1000."""

    run_as_group: NotRequired[int | None]
    """Group id that owns the files, the one of the pods' runAsGroup; at least 1. Default: 1000."""

    file_cache_gib: NotRequired[int | None]
    """GiB of the node's disk for files that were read, which makes large reads parallel. Default: 0, no cache.

    The pod needs the room: set its annotation gke-gcsfuse/ephemeral-storage-limit above it.
    """


class GcsFuseVolume(pulumi.ComponentResource):
    """A folder of a bucket that any number of pods on any nodes mount at once, through a claim of a fixed name.

    Never ReadWriteOnce: a disk can be attached to one node, and the second pod of a job would wait for it for ever. The volume is bound to
    its claim from both sides, so no other claim takes it; it is retained, as is the bucket, when the claim goes.

    Pods that use it carry the annotation gke-gcsfuse/volumes: "true" and run as a service account that GcsTeamAccess binds. That identity
    may list its folder alone, which is why the volume is mounted with only-dir, without the driver's own check of the bucket and without
    the question whether the bucket is hierarchical: both need a listing of the whole bucket.

    Checkpoints: whatever another pod wrote is seen at once, files are written straight to the bucket instead of being staged on the node,
    and a folder can be renamed, which frameworks do to publish a finished checkpoint (in a flat bucket that is not atomic: look for the
    file that is written last). Datasets: a pod lists and looks up each file once and does not see later changes.

    Raises ValueError for names that Kubernetes refuses, an unknown purpose, a folder that is no relative path, root as user or group, and
    a negative cache. The options are those of gcsfuse 3 and its driver's sources; no mount was made in a live cluster.
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
            BucketVolume(
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
        self.register_outputs({"claim": self.claim, "volume": self.volume})


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
