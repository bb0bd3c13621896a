"""A volume over a folder of a bucket or a file system, the claim bound to it, and the folders' purposes and names."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NotRequired, TypedDict

import pulumi
from pulumi_kubernetes.core.v1 import (
    CSIPersistentVolumeSourceArgs,
    ObjectReferenceArgs,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpecArgs,
    PersistentVolumeSpecArgs,
    VolumeResourceRequirementsArgs,
)
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from flexspot.capacity.catalog.platform import MOUNT_GROUP, POD_USER
from flexspot.capacity.values.errors import SettingsProblem
from flexspot.capacity.values.names import NAME
from flexspot.capacity.workloads.requests import CHECKPOINT_CLAIM, DATASET_CLAIM
from flexspot.components.cloud_names import fitted
from flexspot.components.shared_args import refuse

CHECKPOINTS, DATASETS = CHECKPOINT_CLAIM, DATASET_CLAIM
"""Purposes of a bucket or file system, which are also the names of the claims on them in each namespace."""

PURPOSES = (CHECKPOINTS, DATASETS)

SHARED_FOLDER = "shared"
"""The folder of a dataset bucket that every team may read."""

_FOLDER = re.compile(r"[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*")


def check_purpose(owner: str, purpose: str) -> None:
    """Raise ValueError for an unknown purpose."""
    if purpose not in PURPOSES:
        refuse(owner, SettingsProblem("purpose", repr(purpose), "is not a purpose", f"use {' or '.join(PURPOSES)}"))


def check_folder(owner: str, argument: str, folder: str) -> None:
    """Raise ValueError if a folder is not a relative path of lower-case names."""
    if not _FOLDER.fullmatch(folder):
        problem = "must be a path such as vision/imagenet, of a-z, 0-9, ., - and _, without a slash at either end"
        refuse(owner, SettingsProblem(argument, repr(folder), problem, "respell it"))


_NAME = re.compile(NAME)
_DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def check_setting_names(owner: str, names: dict[str, str]) -> None:
    """Raise ValueError for names that the settings would reject, by argument. Others are safe in a path and in a pattern."""
    for argument, value in names.items():
        if not _NAME.fullmatch(value):
            problem = "must have 1 to 40 characters of a-z, 0-9 and inner -, and begin with a letter"
            refuse(owner, SettingsProblem(argument, repr(value), problem, "respell it"))


def check_dns_labels(owner: str, names: dict[str, str]) -> None:
    """Raise ValueError for names that Kubernetes rejects for a namespace, a service account or a claim, by argument."""
    for argument, value in names.items():
        if not _DNS_LABEL.fullmatch(value):
            problem = "must have 1 to 63 characters of a-z, 0-9 and inner -"
            refuse(owner, SettingsProblem(argument, repr(value), problem, "respell it"))


class VolumeArgs(TypedDict):
    """Owner, claim and labels of a volume."""

    team: str
    """The team's name, which is also its checkpoint folder."""

    namespace: str
    """Namespace of the claim. It must exist before: pass its resource in `depends_on`."""

    labels: dict[str, str]
    """Labels of both objects, in Kubernetes format."""

    claim: NotRequired[str | None]
    """The claim's name. Default: the purpose, checkpoints or datasets."""


class BucketVolumeArgs(VolumeArgs):
    """Folder of a bucket to mount, and the owner of its files."""

    bucket: pulumi.Input[str]
    """The bucket's name."""

    purpose: str
    """`checkpoints` (read and write) or `datasets` (read-only)."""

    folder: NotRequired[str | None]
    """The folder to mount, without a trailing slash. Default: the team's for checkpoints, shared for datasets."""

    run_as_user: NotRequired[int | None]
    """User id that owns the files, equal to the pods' runAsUser, at least 1. Default: 1000."""

    run_as_group: NotRequired[int | None]
    """Group id that owns the files, equal to the pods' runAsGroup, at least 1. Default: 1000."""


@dataclass(frozen=True)
class FolderMount:
    """The arguments of a volume with their defaults."""

    read_only: bool
    folder: str
    claim: str
    user: int
    group: int
    file_cache_gib: int


def resolve_folder_mount(owner: str, purpose: str, args: Mapping[str, Any]) -> FolderMount:
    """Return the mount that a volume's arguments describe.

    Raises ValueError for names that Kubernetes rejects, an unknown purpose, a folder that is not a relative path, root as user or group,
    and a negative cache.
    """
    check_purpose(owner, purpose)
    read_only = purpose == DATASETS
    mount = FolderMount(
        read_only=read_only,
        folder=args.get("folder") or (SHARED_FOLDER if read_only else args["team"]),
        claim=args.get("claim") or purpose,
        user=POD_USER if (user := args.get("run_as_user")) is None else user,
        group=MOUNT_GROUP if (group := args.get("run_as_group")) is None else group,
        file_cache_gib=args.get("file_cache_gib") or 0,
    )
    check_dns_labels(owner, {"team": args["team"], "namespace": args["namespace"], "claim": mount.claim})
    check_folder(owner, "folder", mount.folder)
    for argument, value in {"run_as_user": mount.user, "run_as_group": mount.group}.items():
        if value < 1:
            problem, remedy = "must be at least 1, because restricted Pod Security rejects root", "give the id that the pods run as"
            refuse(owner, SettingsProblem(argument, str(value), problem, remedy))
    if (cache := mount.file_cache_gib) < 0:
        refuse(owner, SettingsProblem("file_cache_gib", str(cache), "must be 0 or more", "give 0 for no cache, or a size in GiB"))
    return mount


# A socket's path contains the volume's name and has at most 107 characters. Kubernetes' longest name, 253, would not fit.
VOLUME_NAME_CHARACTERS = 63

# Kubernetes requires a size and the drivers ignore it: neither a bucket nor a file system of EFS has one, and Lustre's is not the volume's.
# It is small, because a quota on requests.storage would count it.
_CAPACITY = {"storage": "1Gi"}


@dataclass(frozen=True)
class FolderVolume:
    """A volume and its claim before they are declared."""

    namespace: str
    mount: FolderMount
    labels: dict[str, str]
    source: CSIPersistentVolumeSourceArgs
    mount_options: list[str] = field(default_factory=list[str])
    kind: str = ""
    """Distinguishes volumes of one claim that are in different places."""
    mounts_read_only: bool = True
    """True if the driver supports ReadOnlyMany. A driver that does not refuses to mount such a volume.

    The volume is ReadWriteMany then, and a read-only mount has the option `ro`, which no pod can remove.
    """


@dataclass(frozen=True)
class ClaimedVolume:
    """The names of a claim and of its volume, known once both exist."""

    claim: pulumi.Output[str]
    volume: pulumi.Output[str]


def volume_name(namespace: str, claim: str, kind: str = "") -> str:
    """Return a name that no other claim's volume has, nor this claim's volume of another kind, which may still exist."""
    return fitted(".".join(filter(None, (namespace, claim, kind))), VOLUME_NAME_CHARACTERS)


def declare_claimed_volume(name: str, parent: pulumi.Resource, volume: FolderVolume) -> ClaimedVolume:
    """Register both under `parent`, bound to each other from both sides, so that no other claim takes the volume.

    The volume and its data are retained when the claim is deleted.
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
            # No storage class: an empty one is the same, but the API server omits it, so that each refresh would find a difference and
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
            # Empty, not omitted: otherwise the cluster's default class would create a disk.
            storage_class_name="",
            volume_name=name_of_volume,
            resources=VolumeResourceRequirementsArgs(requests=_CAPACITY),
        ),
        opts=pulumi.ResourceOptions(parent=parent, depends_on=[persistent]),
    )
    return ClaimedVolume(claim.metadata.apply(lambda metadata: str(metadata.name)), pulumi.Output.from_input(name_of_volume))
