"""A team's folder of an EFS file system as a volume of its namespace."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from typing import NotRequired, TypedDict

import pulumi
from pulumi_kubernetes.core.v1 import CSIPersistentVolumeSourceArgs

from components.storage.claimed_volume import FolderVolume, declare_claimed_volume, resolve_folder_mount

DRIVER = "efs.csi.aws.com"


class EfsVolumeArgs(TypedDict):
    """Arguments of EfsVolume."""

    team: str
    """The team's name."""

    namespace: str
    """Namespace of the claim; it must exist before: pass its resource in `depends_on`."""

    purpose: str
    """checkpoints (read and write) or datasets (read-only)."""

    volume_handle: pulumi.Input[str]
    """The file system and the team's own access point, such as fs-0123::fsap-4567. It must be unique: of several volumes with the same
    handle a pod only gets the first."""

    labels: dict[str, str]
    """Labels of both objects, in Kubernetes format."""

    claim: NotRequired[str | None]
    """The claim's name. Default: the purpose."""


class EfsVolume(pulumi.ComponentResource):
    """A folder that any number of pods on any nodes can mount at once, through a claim of a fixed name, from an EfsFileSystem.

    It is a file system: programs can append, rename and lock, and a closed file is visible to whoever opens it next (close-to-open, as in
    NFS). The driver (the add-on aws-efs-csi-driver) mounts from the node over TLS, its default, and presents no identity. The volume's
    size, 1 GiB, has no meaning: Kubernetes requires one, the driver ignores it. The driver refuses ReadOnlyMany (volumeCapAccessModes in
    its pkg/driver/node.go at 00fa07a; its issues 972 and 1409), so datasets are mounted with the option `ro`.
    https://github.com/kubernetes-sigs/aws-efs-csi-driver/tree/master/examples/kubernetes/access_points

    Raises ValueError for names that Kubernetes refuses and an unknown purpose. No mount was made in a live cluster.
    """

    claim: pulumi.Output[str]
    """The claim's name, known once it exists."""

    volume: pulumi.Output[str]
    """The volume's name: the namespace's, the claim's and efs, cut to 63 characters."""

    def __init__(self, name: str, args: EfsVolumeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        mount = resolve_folder_mount(
            f"EfsVolume {name}",
            {"team": args["team"], "namespace": args["namespace"], "purpose": args["purpose"], "claim": args.get("claim")},
        )
        super().__init__("flexspot:index:EfsVolume", name, {**args}, opts)
        claimed = declare_claimed_volume(
            name,
            self,
            FolderVolume(
                namespace=args["namespace"],
                mount=mount,
                labels=args["labels"],
                source=CSIPersistentVolumeSourceArgs(
                    driver=DRIVER,
                    volume_handle=args["volume_handle"],
                    # Left out when it is not true: the server drops a false.
                    read_only=True if mount.read_only else None,
                ),
                kind="efs",
                mounts_read_only=False,
            ),
        )
        self.claim = claimed.claim
        self.volume = claimed.volume
        self.register_outputs({"claim": self.claim, "volume": self.volume})
