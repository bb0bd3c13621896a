"""A file system of FSx for Lustre as a volume of a team's namespace, to read."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from typing import NotRequired, TypedDict

import pulumi
from pulumi_kubernetes.core.v1 import CSIPersistentVolumeSourceArgs

from components.storage.claimed_volume import DATASETS, FolderVolume, declare_claimed_volume, resolve_folder_mount

DRIVER = "fsx.csi.aws.com"


class LustreVolumeArgs(TypedDict):
    """Arguments of LustreVolume."""

    team: str
    """The team's name."""

    namespace: str
    """Namespace of the claim; it must exist before: pass its resource in `depends_on`."""

    file_system_id: pulumi.Input[str]
    """The file system's id, such as fs-0123."""

    dns_name: pulumi.Input[str]
    """DNS name by which nodes reach it."""

    mount_name: pulumi.Input[str]
    """Its mount name, such as abcdefgh."""

    labels: dict[str, str]
    """Labels of both objects, in Kubernetes format."""

    claim: NotRequired[str | None]
    """The claim's name. Default: datasets."""


class LustreVolume(pulumi.ComponentResource):
    """Datasets that any number of pods on any nodes can read at once, through a claim of a fixed name, from a LustreFileSystem.

    The driver (the add-on aws-fsx-csi-driver) mounts from the node, whose kernel must support Lustre: AL2023's and Bottlerocket's do
    (kubernetes-sigs/aws-fsx-csi-driver pull request 460; bottlerocket-os/bottlerocket issue 4676). It refuses ReadOnlyMany (its issue 164),
    so the volume is ReadWriteMany and mounted with the option `ro`, which no pod can remove. The volume handle is the file system's id with
    the namespace, because handles must be unique; the driver mounts by the attributes. Its size, 1 GiB, has no meaning: Kubernetes requires
    one. https://github.com/kubernetes-sigs/aws-fsx-csi-driver/tree/master/examples/kubernetes/static_provisioning

    Raises ValueError for names that Kubernetes refuses. No mount was made in a live cluster.
    """

    claim: pulumi.Output[str]
    """The claim's name, known once it exists."""

    volume: pulumi.Output[str]
    """The volume's name: the namespace's, the claim's and lustre, cut to 63 characters."""

    def __init__(self, name: str, args: LustreVolumeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        mount = resolve_folder_mount(
            f"LustreVolume {name}",
            {"team": args["team"], "namespace": args["namespace"], "purpose": DATASETS, "claim": args.get("claim")},
        )
        super().__init__("flexspot:index:LustreVolume", name, {**args}, opts)
        claimed = declare_claimed_volume(
            name,
            self,
            FolderVolume(
                namespace=args["namespace"],
                mount=mount,
                labels=args["labels"],
                source=CSIPersistentVolumeSourceArgs(
                    driver=DRIVER,
                    volume_handle=pulumi.Output.concat(args["file_system_id"], "::", args["namespace"]),
                    volume_attributes={"dnsname": args["dns_name"], "mountname": args["mount_name"]},
                ),
                # Without it every lock is an error, those of readers too (mount.lustre).
                mount_options=["flock"],
                kind="lustre",
                mounts_read_only=False,
            ),
        )
        self.claim = claimed.claim
        self.volume = claimed.volume
        self.register_outputs({"claim": self.claim, "volume": self.volume})
