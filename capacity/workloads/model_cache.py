"""Model weights near the GPUs: a folder of a bucket in the cluster's region, read only, kept on the nodes' disks, and how pods mount it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from capacity.catalog.data_files import Record
from capacity.catalog.node_labels import TEAM_LABEL
from capacity.catalog.platform import Platform
from capacity.values.errors import SettingsProblem, nearest
from capacity.values.names import BUCKET, MODEL_FOLDER, Name
from capacity.values.quantities import gib_quantity
from capacity.workloads.names import NAME_LABEL, WORKLOAD_TYPE_LABEL
from capacity.workloads.requests import WorkloadType, refuse
from capacity.workloads.services import with_mounts

if TYPE_CHECKING:
    from capacity.plan.model import Plan
    from capacity.workloads.pods import KubeObject


MODEL_CACHE = "ModelCache"

GCS_DRIVER, S3_DRIVER = "gcsfuse.csi.storage.gke.io", "s3.csi.aws.com"

_VOLUME_NAME_CHARACTERS = 63
"""A socket's path holds a volume's name and has at most 107 characters."""

_CAPACITY = {"storage": "1Gi"}
"""Kubernetes asks for a size, which a bucket has not."""


class ModelCacheRequest(Record):
    """A request for a cache of model weights.

    `bucket` lies in `bucket_region`, which must be the cluster's: weights of 100 GB that each new pod reads across regions cost more than
    its node. Default: that it does. `folder` is what is mounted; the identity of the team's pods may read `shared` of the stack's
    dataset bucket. `cache_gib` is kept on a node's disk of what was read (0: nothing). `run_as_user` owns the files.
    """

    name: Name
    team: str
    bucket: Annotated[str, Field(pattern=BUCKET)]
    bucket_region: str | None = None
    folder: Annotated[str, Field(pattern=MODEL_FOLDER)] = "shared/models"
    cache_gib: Annotated[int, Field(ge=0, le=10_000)] = 100
    run_as_user: Annotated[int, Field(ge=1)] = 1000


def model_cache(plan: Plan, request: ModelCacheRequest) -> tuple[KubeObject, ...]:
    """The volume and the claim, of the request's name, that any number of pods on any nodes mount at once.

    They are bound to each other from both sides, so that no other claim takes the volume, which stays with its bucket. The options are
    those of components/storage for data sets. Raises WorkloadError for a team that there is none of, a bucket in another region, a
    platform without buckets, and names that are too long together.
    """
    team = next((each for each in plan.teams if each.name == request.team), None)
    refuse(f"{MODEL_CACHE} {request.name}", _problems(plan, request))
    assert team is not None, "refused above"  # noqa: S101 -- tells the type checker what was checked
    volume = f"{team.namespace}.{request.name}"
    labels = {**plan.labels, TEAM_LABEL: team.name, WORKLOAD_TYPE_LABEL: WorkloadType.CACHE.value, NAME_LABEL: request.name}
    claim = {"name": request.name, "namespace": team.namespace}
    options, source = _gcs(request) if plan.cloud is Platform.GKE else _s3(plan, request, volume)
    return (
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume, "labels": labels},
            "spec": {
                "accessModes": ["ReadOnlyMany"],
                "capacity": _CAPACITY,
                "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim},
                # Empty, not left out: the cluster's default class would make a disk of its own.
                "storageClassName": "",
                "persistentVolumeReclaimPolicy": "Retain",
                "mountOptions": options,
                "csi": source,
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {**claim, "labels": labels},
            "spec": {
                "accessModes": ["ReadOnlyMany"],
                "storageClassName": "",
                "volumeName": volume,
                "resources": {"requests": _CAPACITY},
            },
        },
    )


def _owned(request: ModelCacheRequest) -> list[str]:
    return [f"uid={request.run_as_user}", f"gid={request.run_as_user}", "file-mode=664", "dir-mode=775"]


def _gcs(request: ModelCacheRequest) -> tuple[list[str], dict[str, Any]]:
    """GCS FUSE: the team's identity may list its folder alone, so the bucket itself is not asked about."""
    options = ["implicit-dirs", f"only-dir={request.folder}", *_owned(request), "enable-hns:false", "metadata-cache:negative-ttl-secs:0"]
    options += ["metadata-cache:ttl-secs:-1", "file-system:kernel-list-cache-ttl-secs:-1"]
    if request.cache_gib:
        # Never -1: without a ceiling it fills the pod's disk, and the pod is evicted.
        options += [f"file-cache:max-size-mb:{request.cache_gib * 1024}", "file-cache:cache-file-for-range-read:true"]
        options += ["file-cache:enable-parallel-downloads:true"]
    source = {
        "driver": GCS_DRIVER,
        "volumeHandle": request.bucket,
        "readOnly": True,
        "volumeAttributes": {"skipCSIBucketAccessCheck": "true"},
    }
    return options, source


def _s3(plan: Plan, request: ModelCacheRequest, volume: str) -> tuple[list[str], dict[str, Any]]:
    """Mountpoint for S3, with the identity of the pod; its cache is in a pod of its own, with a limit."""
    options = [f"region={plan.region}", f"prefix={request.folder}/", *_owned(request), "allow-other", "read-only"]
    options += ["metadata-ttl=indefinite", "negative-metadata-ttl=minimal"]
    cache = {"cache": "emptyDir", "cacheEmptyDirSizeLimit": f"{request.cache_gib}Gi"} if request.cache_gib else {}
    attributes = {"bucketName": request.bucket, "authenticationSource": "pod", **cache}
    return options, {"driver": S3_DRIVER, "volumeHandle": volume, "readOnly": True, "volumeAttributes": attributes}


def _problems(plan: Plan, request: ModelCacheRequest) -> list[SettingsProblem]:
    problems: list[SettingsProblem] = []
    teams = [each.name for each in plan.teams]
    if request.team not in teams:
        problems.append(SettingsProblem("team", repr(request.team), "is no team", nearest(request.team, teams)))
    if plan.cloud is Platform.LOCAL:
        problem = "cannot be mounted: the local platform has no bucket"
        problems.append(SettingsProblem("bucket", repr(request.bucket), problem, "take a stack of gke or eks"))
    region = request.bucket_region
    if region is not None and region.lower() != plan.region:
        problem = f"is not the cluster's region, {plan.region}: each pod that starts would pay for reading the weights across"
        remedy = f"copy them into a bucket in {plan.region}"
        problems.append(SettingsProblem("bucket_region", repr(region), problem, remedy))
    length = len(request.team) + len(request.name) + 1
    if length > _VOLUME_NAME_CHARACTERS:
        problem = f"makes, with its team, a volume's name of {length} characters"
        problems.append(SettingsProblem("name", repr(request.name), problem, f"{_VOLUME_NAME_CHARACTERS} are allowed: shorten it"))
    return problems


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
