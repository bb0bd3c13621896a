"""What a cluster that is there already must have before a platform can be on it; and which version of GKE has what a pool asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity.catalog.capacity_type import CapacityType
from capacity.catalog.gke_versions import GkeFeature, gke_floors
from capacity.catalog.machines import Confidential
from capacity.catalog.versions import Addon, Chart, shipped_versions
from capacity.settings.cluster import GkeMode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from capacity.catalog.node_images import ImageBook
    from capacity.plan.model import Plan
    from capacity.settings.platform import EksSettings, GkeSettings
    from capacity.settings.pools import PoolSettings


_BY_TYPE = {CapacityType.FLEX_START: GkeFeature.FLEX_START, CapacityType.QUEUED: GkeFeature.QUEUED}


@dataclass(frozen=True)
class VersionNeed:
    """A version of GKE that `user`, in words, cannot do without."""

    version: str
    user: str


@dataclass(frozen=True)
class ClusterNeeds:
    """What must be so of the cluster. `room` is what its pools may come to, in GKE's words: cpu, memory in GiB, and GPUs by kind."""

    mode: GkeMode
    versions: tuple[VersionNeed, ...]
    room: dict[str, int]


def cluster_needs(settings: GkeSettings, plan: Plan) -> ClusterNeeds:
    """What the stack needs of a cluster that it does not make.

    Not among it is node auto-provisioning: compute classes name pools of the plan, and on Autopilot GKE makes nodes anyway. Where it is on,
    its limits hold pools back as well, so they must leave `room`.
    """
    autopilot = settings.cluster.mode is GkeMode.AUTOPILOT
    classes = {pool: each.name for each in plan.compute_classes for pool in each.pools}
    floors = gke_floors()
    versions = [
        VersionNeed(floors[feature].of(autopilot=autopilot), user) for user, feature in gke_features(enumerate(settings.pools), classes)
    ]
    if not settings.queueing.existing_kueue:
        kueue = shipped_versions().kueue
        version = settings.controllers.kueue.version or kueue.chart.version
        versions.append(VersionNeed(kueue.kubernetes_at_least.version, f"Kueue {version}"))
    room = (
        {}
        if autopilot
        else {
            "cpu": sum(pool.ceiling.vcpu for pool in plan.pools),
            "memory": -(-sum(pool.ceiling.memory_mib for pool in plan.pools) // 1024),
            **plan.accelerators,
        }
    )
    return ClusterNeeds(settings.cluster.mode, tuple(versions), room)


def gke_features(pools: Iterable[tuple[int, PoolSettings]], compute_classes: Mapping[str, str]) -> Iterator[tuple[str, GkeFeature]]:
    """What needs a version of GKE, with the setting that asks for it.

    `pools` are those of the settings with their places, `compute_classes` the compute class of each that is in one, by the pool's name.
    """
    for number, pool in pools:
        path = f"pools.{number}"
        if feature := _BY_TYPE.get(pool.capacity_type):
            yield f"{path}.capacity_type ({pool.name}: {pool.capacity_type})", feature
        if (grace := getattr(pool, "shutdown_grace_seconds", None)) is not None:
            yield f"{path}.shutdown_grace_seconds ({pool.name}: {grace})", GkeFeature.SHUTDOWN_GRACE
        if (technology := getattr(pool, "confidential_nodes", None)) not in {None, Confidential.SEV}:
            yield f"{path}.confidential_nodes ({pool.name}: {technology})", GkeFeature.CONFIDENTIAL_NODES
        if name := compute_classes.get(pool.name):
            yield f"{path}.serves ({pool.name}: the compute class {name})", GkeFeature.COMPUTE_CLASS
            if pool.capacity_type is CapacityType.RESERVED:
                yield f"{path}.reservation ({pool.name}, in the compute class {name})", GkeFeature.COMPUTE_CLASS_RESERVATION


@dataclass(frozen=True)
class KubernetesNeed:
    """The versions of Kubernetes that `user`, in words, works with; None: any. `remedy` is what else fixes it."""

    user: str
    least: str | None
    most: str | None
    remedy: str


@dataclass(frozen=True)
class EksClusterNeeds:
    """What must be so of the cluster. `addons` are those that must run on it, whoever installed them."""

    versions: tuple[KubernetesNeed, ...]
    addons: tuple[Addon, ...]


def eks_cluster_needs(settings: EksSettings, plan: Plan, images: ImageBook) -> EksClusterNeeds:
    """What the stack needs of a cluster that it does not make. Not among it is the EBS driver: no volume of the platform's is a disk."""
    drivers = [Addon.S3_DRIVER] if len(settings.storage.file_systems) < len(_PURPOSES) else []
    drivers += [Addon.EFS_DRIVER] if settings.storage.has_efs else []
    drivers += [Addon.LUSTRE_DRIVER] if settings.storage.has_lustre else []
    return EksClusterNeeds(tuple(_versions(settings, plan, images)), (Addon.POD_IDENTITY_AGENT, *drivers))


_PURPOSES = ("checkpoints", "datasets")
"""What each team mounts."""


def _versions(settings: EksSettings, plan: Plan, images: ImageBook) -> Iterator[KubernetesNeed]:
    charts, table = plan.versions.charts, shipped_versions()
    if has := images.versions_of(settings.cluster.image):
        yield KubernetesNeed(f"cluster.ami {settings.cluster.image}", has[0], has[-1], "name a release with images for it")
    if (version := charts.get(Chart.KARPENTER)) and (known := table.karpenter.range_of(version)):
        yield KubernetesNeed(f"Karpenter {version}", known.least, known.most, "name another in controllers.karpenter.version")
    if version := charts.get(Chart.KUEUE):
        least = table.kueue.kubernetes_at_least.version
        yield KubernetesNeed(f"Kueue {version}", least, None, "say queueing.existing_kueue: true where there is an older one")
