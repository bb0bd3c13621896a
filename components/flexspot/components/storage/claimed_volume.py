"""A volume over a folder of a bucket or a file system, and the claim bound to it; what each is for, and whose its folders are."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NotRequired, TypedDict

import pulumi
from pulumi_kubernetes.core.v1 import (
    ObjectReferenceArgs,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpecArgs,
    PersistentVolumeSpecArgs,
    VolumeResourceRequirementsArgs,
)
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from flexspot.capacity.catalog.platform import MOUNT_GROUP, POD_USER
from flexspot.capacity.values.names import NAME
from flexspot.capacity.workloads.requests import CHECKPOINT_CLAIM, DATASET_CLAIM
from flexspot.components.cloud_names import fitted

if TYPE_CHECKING:
    from pulumi_kubernetes.core.v1 import CSIPersistentVolumeSourceArgs


CHECKPOINTS, DATASETS = CHECKPOINT_CLAIM, DATASET_CLAIM
"""The claims on them are called so in each namespace."""

PURPOSES = (CHECKPOINTS, DATASETS)

SHARED_FOLDER = "shared"
"""The folder of a dataset bucket that every team may read."""

_FOLDER = re.compile(r"[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*")


def check_purpose(owner: str, purpose: str) -> None:
    """Raises ValueError for what is no purpose of a bucket."""
    if purpose not in PURPOSES:
        raise ValueError(f"{owner}: purpose is {purpose!r}; purposes are {' and '.join(PURPOSES)}: choose one")


def check_folder(owner: str, argument: str, folder: str) -> None:
    """Raises ValueError for what is no relative path of lower-case names."""
    if not _FOLDER.fullmatch(folder):
        raise ValueError(
            f"{owner}: {argument} has {folder!r}; a folder is a path such as vision/imagenet, of a-z, 0-9, ., - and _, "
            "without a slash at its ends: respell it"
        )


_NAME = re.compile(NAME)
_DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def check_setting_names(owner: str, names: dict[str, str]) -> None:
    """Raises ValueError for a name, by its argument, that the settings would refuse; it is then safe in a path and in a pattern."""
    for argument, value in names.items():
        if not _NAME.fullmatch(value):
            raise ValueError(f"{owner}: {argument} is {value!r}; a name has 1 to 40 of a-z, 0-9 and inner -, from a letter on: respell it")


def check_dns_labels(owner: str, names: dict[str, str]) -> None:
    """Raises ValueError for a name, by its argument, that Kubernetes refuses for a namespace, a service account or a claim."""
    for argument, value in names.items():
        if not _DNS_LABEL.fullmatch(value):
            raise ValueError(f"{owner}: {argument} is {value!r}; a name has 1 to 63 of a-z, 0-9 and inner -: respell it")


class FolderMountArgs(TypedDict):
    """What the arguments of every volume component have, as their own documentation says."""

    team: str
    namespace: str
    purpose: str
    folder: NotRequired[str | None]
    claim: NotRequired[str | None]
    run_as_user: NotRequired[int | None]
    run_as_group: NotRequired[int | None]
    file_cache_gib: NotRequired[int | None]


@dataclass(frozen=True)
class FolderMount:
    """The arguments with their defaults."""

    read_only: bool
    folder: str
    claim: str
    user: int
    group: int
    file_cache_gib: int


def resolve_folder_mount(owner: str, args: FolderMountArgs) -> FolderMount:
    """The mount that the arguments ask for.

    Raises ValueError for names that Kubernetes refuses, an unknown purpose, a folder that is no relative path, root as user or group, and a
    negative cache.
    """
    check_purpose(owner, args["purpose"])
    read_only = args["purpose"] == DATASETS
    mount = FolderMount(
        read_only=read_only,
        folder=args.get("folder") or (SHARED_FOLDER if read_only else args["team"]),
        claim=args.get("claim") or args["purpose"],
        user=POD_USER if (user := args.get("run_as_user")) is None else user,
        group=MOUNT_GROUP if (group := args.get("run_as_group")) is None else group,
        file_cache_gib=args.get("file_cache_gib") or 0,
    )
    check_dns_labels(owner, {"team": args["team"], "namespace": args["namespace"], "claim": mount.claim})
    check_folder(owner, "folder", mount.folder)
    for argument, value in {"run_as_user": mount.user, "run_as_group": mount.group}.items():
        if value < 1:
            raise ValueError(f"{owner}: {argument} is {value}; restricted Pod Security refuses root: give the pods' id, at least 1")
    if mount.file_cache_gib < 0:
        raise ValueError(f"{owner}: file_cache_gib is {mount.file_cache_gib}; give 0 for no cache, or a size in GiB")
    return mount


# A socket's path holds the volume's name and has at most 107 characters; the longest name that Kubernetes allows, 253, would not fit.
VOLUME_NAME_CHARACTERS = 63

# Kubernetes asks for a size and the drivers ignore it: neither a bucket nor a file system of EFS has one, and Lustre's is not the volume's.
# Small, as a quota on requests.storage would count it.
_CAPACITY = {"storage": "1Gi"}


@dataclass(frozen=True)
class FolderVolume:
    """A volume and its claim before they are declared. `kind` tells volumes of one claim apart that are in different places.

    `mounts_read_only` says that the driver knows ReadOnlyMany. One that does not refuses to mount such a volume: it is ReadWriteMany then,
    and what is only to be read is mounted with the option `ro`, which no pod can take away.
    """

    namespace: str
    mount: FolderMount
    labels: dict[str, str]
    source: CSIPersistentVolumeSourceArgs
    mount_options: list[str] = field(default_factory=list[str])
    kind: str = ""
    mounts_read_only: bool = True


@dataclass(frozen=True)
class ClaimedVolume:
    """The names of a claim and of its volume, known once both exist."""

    claim: pulumi.Output[str]
    volume: pulumi.Output[str]


def volume_name(namespace: str, claim: str, kind: str = "") -> str:
    """A name that neither another claim's volume has nor this claim's own of another kind, which is there until then."""
    return fitted(".".join(filter(None, (namespace, claim, kind))), VOLUME_NAME_CHARACTERS)


def declare_claimed_volume(name: str, parent: pulumi.Resource, volume: FolderVolume) -> ClaimedVolume:
    """Registers both under `parent`, bound to each other from both sides, so that no other claim takes the volume.

    The volume is retained, as is what it is over, when the claim goes.
    """
    access_modes = ["ReadOnlyMany" if volume.mount.read_only and volume.mounts_read_only else "ReadWriteMany"]
    read_only_option = ["ro"] if volume.mount.read_only and not volume.mounts_read_only else []
    claim_name = volume.mount.claim
    name_of_volume = volume_name(volume.namespace, claim_name, volume.kind)
    persistent = PersistentVolume(
        f"{name}-volume",
        metadata=ObjectMetaArgs(name=name_of_volume, labels=volume.labels),
        spec=PersistentVolumeSpecArgs(
            access_modes=access_modes,
            capacity=_CAPACITY,
            # No storage class: an empty one is the same, and the API server leaves it out, so that each look would find a difference and
            # replace the volume.
            claim_ref=ObjectReferenceArgs(namespace=volume.namespace, name=claim_name),
            persistent_volume_reclaim_policy="Retain",
            mount_options=[*read_only_option, *volume.mount_options] or None,
            csi=volume.source,
        ),
        opts=pulumi.ResourceOptions(parent=parent),
    )
    claim = PersistentVolumeClaim(
        f"{name}-claim",
        metadata=ObjectMetaArgs(name=claim_name, namespace=volume.namespace, labels=volume.labels),
        spec=PersistentVolumeClaimSpecArgs(
            access_modes=access_modes,
            # Empty, not left out: the cluster's default class would make a disk of its own.
            storage_class_name="",
            volume_name=name_of_volume,
            resources=VolumeResourceRequirementsArgs(requests=_CAPACITY),
        ),
        opts=pulumi.ResourceOptions(parent=parent, depends_on=[persistent]),
    )
    return ClaimedVolume(claim.metadata.apply(lambda metadata: str(metadata.name)), pulumi.Output.from_input(name_of_volume))
