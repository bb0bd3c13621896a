"""Model servers and their weights near the GPUs: replicas that roll, drain, spread and scale as far as the team's share allows."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from flexspot.capacity.catalog.data_files import Record
from flexspot.capacity.catalog.node_labels import HOSTNAME_LABEL, TEAM_LABEL, WORKLOAD_TYPE_LABEL, ZONE_LABEL
from flexspot.capacity.catalog.platform import POD_USER, Platform
from flexspot.capacity.values.errors import SettingsProblem, nearest
from flexspot.capacity.values.names import BUCKET, MODEL_FOLDER, Name
from flexspot.capacity.values.quantities import gib_quantity
from flexspot.capacity.workloads.place import find_place
from flexspot.capacity.workloads.pods import (
    KubeObject,
    count_problems,
    most_gpus,
    own_labels,
    pod_template,
    selector_of,
    service_of,
    with_mounts,
)
from flexspot.capacity.workloads.requests import NAME_LABEL, WorkloadType, refuse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flexspot.capacity.plan.model import Plan
    from flexspot.capacity.workloads.place import Place
    from flexspot.capacity.workloads.requests import ModelServerRequest


MODEL_CACHE = "ModelCache"

GCS_DRIVER, S3_DRIVER = "gcsfuse.csi.storage.gke.io", "s3.csi.aws.com"

_VOLUME_NAME_CHARACTERS = 63
"""A socket's path contains the volume's name and has at most 107 characters."""

_CAPACITY = {"storage": "1Gi"}
"""Kubernetes requires a size. A bucket has none."""


class ModelCacheRequest(Record):
    """A request for a cache of model weights."""

    name: Name
    team: str
    bucket: Annotated[str, Field(pattern=BUCKET)]
    bucket_region: str | None = None
    """Region of `bucket`, which must be the cluster's: weights of 100 GB that each new pod reads across regions cost more than its node.

    Default: the cluster's region.
    """
    folder: Annotated[str, Field(pattern=MODEL_FOLDER)] = "shared/models"
    """Folder to mount. The identity of the team's pods may read `shared` of the stack's dataset bucket."""
    cache_gib: Annotated[int, Field(ge=0, le=10_000)] = 100
    """Size of the cache on a node's disk for weights that were read. 0: no cache."""
    run_as_user: Annotated[int, Field(ge=1)] = POD_USER
    """Owner of the files."""


def model_cache(plan: Plan, request: ModelCacheRequest) -> tuple[KubeObject, ...]:
    """Return the volume and the claim with the request's name, which any number of pods on any nodes can mount at once.

    They are bound to each other from both sides, so that no other claim takes the volume. The volume stays bound to its bucket. The options
    are those of flexspot/components/storage for data sets. Raises WorkloadError for an unknown team, a bucket in another region, a platform
    without buckets, and names that are too long together.
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
                # Empty rather than absent: the cluster's default class would create a separate disk.
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


def _ownership_options(request: ModelCacheRequest) -> list[str]:
    return [f"uid={request.run_as_user}", f"gid={request.run_as_user}", "file-mode=664", "dir-mode=775"]


def _gcs(request: ModelCacheRequest) -> tuple[list[str], dict[str, Any]]:
    """Return options and source for GCS FUSE. The check of the bucket is skipped: the team's identity may only list its own folder."""
    options = [
        "implicit-dirs",
        f"only-dir={request.folder}",
        *_ownership_options(request),
        "enable-hns:false",
        "metadata-cache:negative-ttl-secs:0",
    ]
    options += ["metadata-cache:ttl-secs:-1", "file-system:kernel-list-cache-ttl-secs:-1"]
    if request.cache_gib:
        # Never -1: without a limit the cache fills the pod's disk, and the pod is evicted.
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
    """Return options and source for Mountpoint for S3, which uses the pod's identity. Its cache is in a separate pod, with a limit."""
    options = [f"region={plan.region}", f"prefix={request.folder}/", *_ownership_options(request), "allow-other", "read-only"]
    options += ["metadata-ttl=indefinite", "negative-metadata-ttl=minimal"]
    cache = {"cache": "emptyDir", "cacheEmptyDirSizeLimit": f"{request.cache_gib}Gi"} if request.cache_gib else {}
    attributes = {"bucketName": request.bucket, "authenticationSource": "pod", **cache}
    return options, {"driver": S3_DRIVER, "volumeHandle": volume, "readOnly": True, "volumeAttributes": attributes}


def _problems(plan: Plan, request: ModelCacheRequest) -> list[SettingsProblem]:
    problems: list[SettingsProblem] = []
    teams = [each.name for each in plan.teams]
    if request.team not in teams:
        problems.append(SettingsProblem("team", repr(request.team), "is not a team", nearest(request.team, teams)))
    if plan.cloud is Platform.LOCAL:
        problem = "cannot be mounted: the local platform has no bucket"
        problems.append(SettingsProblem("bucket", repr(request.bucket), problem, "use a stack on gke or eks"))
    region = request.bucket_region
    if region is not None and region.lower() != plan.region:
        problem = f"is not the cluster's region, {plan.region}: each start of a pod would pay for reading the weights from another region"
        remedy = f"copy the weights into a bucket in {plan.region}"
        problems.append(SettingsProblem("bucket_region", repr(region), problem, remedy))
    length = len(request.team) + len(request.name) + 1
    if length > _VOLUME_NAME_CHARACTERS:
        problem = f"makes the volume's name, with the team, {length} characters long"
        problems.append(SettingsProblem("name", repr(request.name), problem, f"shorten it: at most {_VOLUME_NAME_CHARACTERS} are allowed"))
    return problems


_VOLUME = "models"

_FUSE_ANNOTATION = "gke-gcsfuse/volumes"
_FUSE_DISK_ANNOTATION = "gke-gcsfuse/ephemeral-storage-limit"

_FUSE_ROOM_GIB = 5
"""Disk space of the sidecar in addition to the cache: its default."""


def mount_model_cache(template: KubeObject, cloud: Platform, claim: str, path: str, *, cache_gib: int = 0) -> KubeObject:
    """Return the pod template, changed so that its container reads the cache's claim at `path`.

    On GKE the driver's sidecar runs in the pod and keeps the cache there. The pod needs an annotation for the sidecar, and `cache_gib` of
    disk on its node. On EKS the cache is in a separate pod of Mountpoint.
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


_SCALE_DOWN_SECONDS = 600
"""Time of low load before a replica is removed: a new one has to wait for a node to boot and the model to load."""


def rolling_update(place: Place, request: ModelServerRequest) -> dict[str, int]:
    """Return the settings that replace replicas one by one without additional GPUs.

    An extra pod needs a spare GPU on a node that must boot and be paid for. A rollout would hang where the quota has none left. So one
    replica ends before its successor starts, unless it is the only one and the team has a GPU quota for two.
    """
    alone = request.replicas == 1 and most_gpus(place) >= 2 * request.gpus
    return {"maxSurge": 1, "maxUnavailable": 0} if alone else {"maxSurge": 0, "maxUnavailable": 1}


def spread(selector: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return soft constraints that spread pods over zones, then over nodes.

    They are soft because a reservation is in one zone, and a pod that waits serves no requests.
    """
    return [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": dict(selector)},
            # Pods of the outgoing release do not count.
            "matchLabelKeys": ["pod-template-hash"],
        }
        for key in (ZONE_LABEL, HOSTNAME_LABEL)
    ]


def budget(metadata: Mapping[str, Any], selector: Mapping[str, str]) -> KubeObject:
    """Return a disruption budget that allows one eviction at a time. One that allows none would keep its nodes forever.

    A replica that does not become ready can always be evicted, because it serves no requests.
    """
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": dict(metadata),
        "spec": {"maxUnavailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow", "selector": {"matchLabels": dict(selector)}},
    }


def autoscaler(metadata: Mapping[str, Any], request: ModelServerRequest) -> KubeObject:
    """Return an autoscaler between `replicas` and `max_replicas`: fast up, slow down."""
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": dict(metadata),
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": request.name},
            "minReplicas": request.replicas,
            "maxReplicas": request.max_replicas,
            "metrics": [_metric(request)],
            "behavior": {
                "scaleDown": {
                    "stabilizationWindowSeconds": _SCALE_DOWN_SECONDS,
                    "policies": [{"type": "Pods", "value": 1, "periodSeconds": 120}],
                }
            },
        },
    }


def callers_policy(metadata: Mapping[str, Any], selector: Mapping[str, str], request: ModelServerRequest) -> KubeObject:
    """Return a policy that admits the named namespaces. The team's own policy admits only its own pods; policies add up."""
    namespaces = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": sorted(set(request.callers))}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": dict(metadata),
        "spec": {
            "podSelector": {"matchLabels": dict(selector)},
            "policyTypes": ["Ingress"],
            "ingress": [
                {
                    "from": [{"namespaceSelector": {"matchExpressions": [namespaces]}}],
                    "ports": [{"protocol": "TCP", "port": request.port}],
                }
            ],
        },
    }


def _metric(request: ModelServerRequest) -> KubeObject:
    if request.metric is not None:
        target = {"type": "AverageValue", "averageValue": request.metric_target}
        return {"type": "Pods", "pods": {"metric": {"name": request.metric}, "target": target}}
    return {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": request.cpu_percent}}}


MODEL_SERVER = "ModelServer"

PORT_NAME = "http"

_NODE_SECONDS = 1800
"""Time for a GPU node to boot, load its driver and pull a large image. Kubernetes' own limit for the progress of a rollout is 600."""

_PROBE_SECONDS = 10


def model_server(plan: Plan, request: ModelServerRequest) -> tuple[KubeObject, ...]:
    """Return Service, Deployment and PodDisruptionBudget, then HorizontalPodAutoscaler and NetworkPolicy if requested.

    Its class does not wait in a queue, because a service would never give quota back. Raises WorkloadError if there is no place for the
    request, if it has more replicas than the team may run, or if draining takes the whole grace period.
    """
    place = find_place(plan, request, MODEL_SERVER, queued=False)
    most = request.max_replicas or request.replicas
    path = "replicas" if request.max_replicas is None else "max_replicas"
    refuse(f"{MODEL_SERVER} {request.name}", count_problems(place, path, most, request.gpus))
    template = _template(place, request)
    labels, selector = own_labels(template), selector_of(request.name, WorkloadType.SERVING)
    scaled = most > request.replicas
    metadata = {"name": request.name, "namespace": place.namespace, "labels": labels}
    deployment: KubeObject = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            # Absent where the autoscaler sets it: each later apply would revert its decision.
            **({} if scaled else {"replicas": request.replicas}),
            "selector": {"matchLabels": selector},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling_update(place, request)},
            "progressDeadlineSeconds": request.start_seconds + _NODE_SECONDS,
            "revisionHistoryLimit": 3,
            "template": template,
        },
    }
    return (
        service_of(request.name, place.namespace, labels, selector, PORT_NAME),
        deployment,
        budget(metadata, selector),
        *((autoscaler(metadata, request),) if scaled else ()),
        *((callers_policy(metadata, selector, request),) if request.callers else ()),
    )


def _template(place: Place, request: ModelServerRequest) -> KubeObject:
    ready, live = request.ready_path, request.live_path or request.ready_path
    template = pod_template(
        place,
        request,
        WorkloadType.SERVING,
        pre_stop_seconds=request.drain_seconds,
        container={
            "ports": [{"name": PORT_NAME, "containerPort": request.port, "protocol": "TCP"}],
            # The other two probes wait for this one, so that a model with a long loading time is not restarted meanwhile.
            "startupProbe": {**_get(ready), "failureThreshold": ceil(request.start_seconds / _PROBE_SECONDS)},
            "readinessProbe": {**_get(ready), "failureThreshold": 3},
            # A restart loads the model again, so a minute of failures is tolerated.
            "livenessProbe": {**_get(live), "failureThreshold": 6},
        },
        spec={"topologySpreadConstraints": spread(selector_of(request.name, WorkloadType.SERVING))},
    )
    _prefer_earlier_pools(template, place)
    if request.model_cache is not None:
        mount_model_cache(template, place.plan.cloud, request.model_cache, request.model_path, cache_gib=request.model_cache_gib)
    return template


def _get(path: str) -> KubeObject:
    return {"httpGet": {"path": path, "port": PORT_NAME}, "periodSeconds": _PROBE_SECONDS, "timeoutSeconds": 5}


def _prefer_earlier_pools(template: KubeObject, place: Place) -> None:
    """Make the scheduler prefer a free node of an earlier pool, such as a reserved one, to that of a later one.

    The autoscaler decides which *new* node comes first, by the pools' weights or the compute class. A compute class does not allow other
    selectors, so there GKE decides both.
    """
    affinity = place.route.node_affinity
    if affinity is None or len(affinity[1]) < 2:  # noqa: PLR2004 -- one pool leaves no choice
        return
    pools = [route_pool.pool for route_pool in place.route.pools]
    preferred = [
        {"weight": max(1, 100 - 10 * rank), "preference": {"matchExpressions": [{"key": affinity[0], "operator": "In", "values": [pool]}]}}
        for rank, pool in enumerate(pools[:-1])
    ]
    template["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
