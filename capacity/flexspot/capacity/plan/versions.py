"""Versions of everything that a stack gets: the cluster, its nodes, its add-ons and its charts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.accelerators import NEURON, NVIDIA, of_ec2_machine
from flexspot.capacity.catalog.versions import BEFORE_NODES, Addon, Chart, VersionTable, auto_mode, shipped_versions
from flexspot.capacity.settings.platform import EksSettings, GkeSettings

if TYPE_CHECKING:
    from flexspot.capacity.catalog.node_images import ImageBook
    from flexspot.capacity.settings.platform import PlatformSettings

EKS_DEFAULT = "default"
"""Value in the settings for an add-on whose version EKS chooses."""


@dataclass(frozen=True)
class VersionPlan:
    """The versions that a stack requests."""

    kubernetes: str | None
    """None where the cluster's owner or GKE chooses it."""
    system_release: str | None
    """Image release of the system nodes, as EKS names it. None where EKS chooses it."""
    addons: dict[str, str]
    """EKS add-ons that are pinned, or RECOMMENDED. EKS chooses the versions of all others."""
    charts: dict[str, str]
    """Charts that the stack may install."""

    def parts(self) -> dict[str, str]:
        """Return every part with its version, in the order in which an upgrade reaches them. Empty where EKS chooses."""
        found: dict[str, str] = {}
        if self.kubernetes is not None:
            found["Kubernetes"] = self.kubernetes
            found |= {name.value: self.addons.get(name, "") for name in BEFORE_NODES}
            found["system nodes"] = self.system_release or ""
            found |= {name.value: self.addons.get(name, "") for name in Addon if name not in BEFORE_NODES}
        return found | {f"chart {name}": version for name, version in self.charts.items()}


def version_plan(settings: PlatformSettings, images: ImageBook, table: VersionTable | None = None) -> VersionPlan:
    """Return the versions that the settings pin, completed from the table for the cluster's version (default: the shipped table)."""
    table = table or shipped_versions()
    match settings:
        case EksSettings():
            cluster, charts = settings.cluster, _eks_charts(settings, table)
            if cluster.existing is not None:
                return VersionPlan(None, None, {}, charts)
            release = images.eks_release(cluster.image, cluster.version) if cluster.has_own_image else None
            return VersionPlan(cluster.version, release, _addons(settings, table.pinned(cluster.version)), charts)
        case GkeSettings():
            return VersionPlan(None, None, {}, _queueing(settings, table))
        case _:
            return VersionPlan(None, None, {}, {})


def _addons(settings: EksSettings, pinned: dict[Addon, str]) -> dict[str, str]:
    wanted = {**pinned, **settings.cluster.addon_versions}
    installed = Addon if settings.cluster.has_own_image else [name for name in Addon if name not in auto_mode().addons]
    return {name.value: wanted[name] for name in installed if wanted.get(name, EKS_DEFAULT) != EKS_DEFAULT}


def _queueing(settings: EksSettings | GkeSettings, table: VersionTable) -> dict[str, str]:
    wanted, charts = settings.controllers, dict[Chart, str | None]()
    if not settings.queueing.existing_kueue:
        charts[Chart.KUEUE] = wanted.kueue.version
    if wanted.jobset.install:
        charts[Chart.JOBSET] = wanted.jobset.version
    return {name.value: version or table.chart(name).version for name, version in charts.items()}


def _eks_charts(settings: EksSettings, table: VersionTable) -> dict[str, str]:
    wanted = settings.controllers
    charts = {} if settings.cluster.existing_karpenter is not None else {Chart.KARPENTER: wanted.karpenter.version}
    kinds = {of_ec2_machine(pool.machine) for pool in settings.pools}
    if (settings.cluster.ami or "").startswith("al2023@") and NVIDIA in kinds and not settings.cluster.existing_gpu_operator:
        charts[Chart.NVIDIA_DEVICE_PLUGIN] = wanted.nvidia_device_plugin.version
    if NEURON in kinds:
        charts[Chart.NEURON_DEVICE_PLUGIN] = wanted.neuron_device_plugin.version
    if any(pool.efa for pool in settings.pools):
        charts[Chart.EFA_DEVICE_PLUGIN] = wanted.efa_device_plugin.version
    if wanted.load_balancer_controller.install:
        charts[Chart.LOAD_BALANCER_CONTROLLER] = wanted.load_balancer_controller.version
    # Auto Mode includes all of these.
    installed = charts if settings.cluster.has_own_image else {}
    own = {name.value: version or table.chart(name).version for name, version in installed.items()}
    return own | _exporter(settings, table) | _queueing(settings, table)


def _exporter(settings: EksSettings, table: VersionTable) -> dict[str, str]:
    if not settings.measurement.dcgm_exporter or settings.cluster.existing_gpu_operator:
        return {}
    name = Chart.DCGM_EXPORTER
    return {name.value: settings.controllers.dcgm_exporter.version or table.chart(name).version}
