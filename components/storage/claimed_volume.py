"""A volume over a bucket, and the claim of a namespace that is bound to it; the same with every driver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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

from components.fitted_name import fitted

if TYPE_CHECKING:
    from pulumi_kubernetes.core.v1 import CSIPersistentVolumeSourceArgs

    from components.storage.folder_mount import FolderMount

# A socket's path holds the volume's name and has at most 107 characters; the longest name that Kubernetes allows, 253, would not fit.
VOLUME_NAME_CHARACTERS = 63

# Kubernetes asks for a size and the drivers ignore it: a bucket has none. Small, as a quota on requests.storage would count it.
_CAPACITY = {"storage": "1Gi"}


@dataclass(frozen=True)
class BucketVolume:
    """A volume and its claim before they are declared."""

    namespace: str
    mount: FolderMount
    labels: dict[str, str]
    mount_options: list[str]
    source: CSIPersistentVolumeSourceArgs


@dataclass(frozen=True)
class ClaimedVolume:
    """The names of a claim and of its volume, known once both exist."""

    claim: pulumi.Output[str]
    volume: pulumi.Output[str]


def volume_name(namespace: str, claim: str) -> str:
    """A name for the volume of a claim that no other claim's has."""
    return fitted(f"{namespace}.{claim}", VOLUME_NAME_CHARACTERS)


def declare_claimed_volume(name: str, parent: pulumi.Resource, volume: BucketVolume) -> ClaimedVolume:
    """Registers both under `parent`, bound to each other from both sides, so that no other claim takes the volume.

    The volume is retained, as is the bucket, when the claim goes.
    """
    access_modes = ["ReadOnlyMany" if volume.mount.read_only else "ReadWriteMany"]
    claim_name = volume.mount.claim
    name_of_volume = volume_name(volume.namespace, claim_name)
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
            mount_options=volume.mount_options,
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
