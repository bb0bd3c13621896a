"""How pods mount a ModelCache; for model servers and for jobs alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.platform import Platform
from capacity.quantities import gib_quantity
from capacity.workloads.service_pods import with_mounts

if TYPE_CHECKING:
    from capacity.workloads.pods import KubeObject

_VOLUME = "models"

_FUSE_ANNOTATION = "gke-gcsfuse/volumes"
_FUSE_DISK_ANNOTATION = "gke-gcsfuse/ephemeral-storage-limit"

_FUSE_ROOM_GIB = 5
"""What the sidecar has beside the cache itself: its own default."""


def mount_model_cache(template: KubeObject, cloud: Platform, claim: str, path: str, *, cache_gib: int = 0) -> KubeObject:
    """The template of pods, changed so that its container reads the cache's claim at `path`.

    On GKE the driver's sidecar runs in the pod and keeps the cache there: the pod needs an annotation for the sidecar, and room for
    `cache_gib` on its node. On EKS the cache is in a pod of Mountpoint's own.
    """
    annotations: dict[str, str] = {}
    if cloud is Platform.GKE:
        annotations[_FUSE_ANNOTATION] = "true"
        if cache_gib:
            annotations[_FUSE_DISK_ANNOTATION] = gib_quantity(cache_gib + _FUSE_ROOM_GIB)
    return with_mounts(
        template,
        [{"name": _VOLUME, "persistentVolumeClaim": {"claimName": claim, "readOnly": True}}],
        [{"name": _VOLUME, "mountPath": path, "readOnly": True}],
        annotations,
    )
