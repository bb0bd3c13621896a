"""What a cluster of EKS that is there already must have before a platform can be on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity.catalog.versions import Addon, Chart, shipped_versions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.catalog.node_images import ImageBook
    from capacity.plan.model import Plan
    from capacity.settings.platform import EksSettings


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
