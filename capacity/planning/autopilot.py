"""GKE Autopilot, where pods say what they need and all nodes are GKE's: what a pool's pods ask for, and what is then on their nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.node_labels import (
    COMPUTE_CLASS_LABEL,
    GKE_ACCELERATOR_COUNT_LABEL,
    GKE_GPU_CLIENTS_LABEL,
    GKE_GPU_DRIVER_LABEL,
    GKE_GPU_PARTITION_LABEL,
    GKE_GPU_SHARING_LABEL,
    GKE_RESERVATION_NAME_LABEL,
    GKE_RESERVATION_PROJECT_LABEL,
    GPU_RESOURCE,
    ZONE_LABEL,
)
from capacity.plan import Taint
from capacity.settings.gke_pools import GkePool, GpuDriver

if TYPE_CHECKING:
    from collections.abc import Iterable

    from capacity.planning.ground import Ground, ResolvedPool


def asked_for(ground: Ground, pool: ResolvedPool) -> dict[str, str]:
    """The labels by which a pod asks Autopilot for a node of `pool`; no label names the pool itself.

    The GPU and how many of it a node has: without the count every node gets one pod, however few of its GPUs that uses. Then what the
    capacity type asks by (capacity/capacity_types/gke.yaml), and the pool's own options. Which machine it is GKE decides by what the pods
    request. How GPUs are shared, and in which zone, are labels of GKE's too.
    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/autopilot-gpus (as of 2026-04-10): several pods on a node from
    1.29.2-gke.1355000 on, time-sharing and MIG from 1.29.3-gke.1093000 on, the driver from 1.29.2-gke.1108000 on. The labels of shared and
    partitioned GPUs are those that GoogleCloudPlatform/cluster-autoscaler reads, pkg/autoprovisioning/gpu_requests.go.
    """
    settings, facts = pool.settings, ground.facts[pool.settings.capacity_type].autopilot
    labels = {ground.words.accelerator_label: pool.gpu.name, GKE_ACCELERATOR_COUNT_LABEL: str(pool.gpus_per_node)}
    labels |= facts.selector if facts else {}
    if isinstance(settings, GkePool):
        labels |= _reserved(settings) | _divided(settings)
        if settings.gpu_driver is GpuDriver.LATEST:
            labels[GKE_GPU_DRIVER_LABEL] = settings.gpu_driver.value
    if len(settings.zones) == 1:
        labels[ZONE_LABEL] = settings.zones[0]
    return labels


def _reserved(settings: GkePool) -> dict[str, str]:
    reservation = settings.reservation
    if reservation is None or reservation.name is None:
        return {}
    project = {} if reservation.project is None else {GKE_RESERVATION_PROJECT_LABEL: reservation.project}
    return {GKE_RESERVATION_NAME_LABEL: reservation.name, **project}


def _divided(settings: GkePool) -> dict[str, str]:
    labels = {} if settings.mig_partition is None else {GKE_GPU_PARTITION_LABEL: settings.mig_partition}
    if settings.gpu_sharing is not None:
        labels[GKE_GPU_SHARING_LABEL] = settings.gpu_sharing.strategy.value
        labels[GKE_GPU_CLIENTS_LABEL] = str(settings.gpu_sharing.clients_per_gpu)
    return labels


def taints_by_gke(ground: Ground, pool: ResolvedPool, compute_class: str | None) -> tuple[Taint, ...]:
    """The taints that GKE sets on the nodes that it makes for the pods of `pool`; there are no others.

    Nodes of a `compute_class` have the class's taint in the place of that for Spot.

    GKE adds the tolerations to a pod as it is created. Written out in flavors and routes all the same: a pod that waits in a queue gets its
    selectors from Kueue when it is admitted, and GKE has seen it by then.
    """
    if compute_class is not None:
        return (Taint(GPU_RESOURCE, "present"), Taint(COMPUTE_CLASS_LABEL, compute_class))
    facts = ground.facts[pool.settings.capacity_type].autopilot
    own = facts.taints if facts else ()
    return (Taint(GPU_RESOURCE, "present"), *(Taint(each.key, str(each.value)) for each in own))


def shared_labels(selectors: Iterable[dict[str, str]]) -> dict[str, str]:
    """The labels that all of `selectors` ask for, with the same value.

    The autoscaler takes each key once: an affinity for several values of a key hides the selector for one of them that Kueue adds, and the
    pod would ask for any GPU. Source: GoogleCloudPlatform/cluster-autoscaler of 2026-08, pkg/podrequirements, GetRequirements.
    """
    first, *others = selectors
    return {key: value for key, value in sorted(first.items()) if all(each.get(key) == value for each in others)}
