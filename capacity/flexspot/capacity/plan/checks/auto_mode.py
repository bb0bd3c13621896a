"""What EKS Auto Mode cannot do, or does itself: refused with its place, so that nothing that is written is without effect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.accelerators import NVIDIA
from flexspot.capacity.catalog.data_files import Record
from flexspot.capacity.catalog.machines import is_zone_id
from flexspot.capacity.catalog.versions import auto_mode
from flexspot.capacity.settings.cluster import EksClusterSettings, SystemPool
from flexspot.capacity.settings.controllers import EksControllers
from flexspot.capacity.settings.platform import EksSettings
from flexspot.capacity.settings.pools import EksPool, default_volume
from flexspot.capacity.settings.stack_file import shown
from flexspot.capacity.values.errors import SettingsProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.capacity.plan.resolve import ResolvedPool, ResolvedSettings

DRAIN_HOURS = 24
"""How long a node drains before AWS ends it, in hours: Auto Mode's own default (create-node-pool.adoc at 01385604, read 2026-11-25)."""


def node_hours() -> int:
    """After how many hours a node begins to drain, so that it is gone when AWS ends it."""
    return auto_mode().node_lifetime.hours - DRAIN_HOURS


@dataclass(frozen=True)
class _Lacking:
    """Why an option is none of Auto Mode's, and what to do."""

    why: str
    remedy: str = "leave it out, or use mode: standard"


_OF_CLUSTERS = {
    "ami": _Lacking("Auto Mode runs AWS's own image, which cannot be chosen"),
    "images_file": _Lacking("Auto Mode runs AWS's own image, whose release cannot be chosen"),
    "nodes": _Lacking("Auto Mode has neither user data nor kubelet settings"),
    "node_repair": _Lacking("Auto Mode always replaces broken nodes itself", "leave it out"),
    "existing": _Lacking(
        "the role of an existing cluster, which its owner manages, does not let Auto Mode set our tags on nodes",
        "leave it out, so that the stack creates the cluster, or use mode: standard",
    ),
    "existing_karpenter": _Lacking("AWS runs Karpenter outside the cluster"),
    "existing_gpu_operator": _Lacking(
        "Auto Mode includes NVIDIA's device plugin, next to which the GPU operator's cannot run",
        "leave it out, and set the operator's devicePlugin.enabled and dcgmExporter.enabled to false, or use mode: standard",
    ),
}
"""Options of the cluster that nothing in Auto Mode takes."""

_OF_CONTROLLERS = {
    "karpenter": _Lacking("AWS runs Karpenter outside the cluster", "leave it out"),
    "load_balancer_controller": _Lacking(
        "Auto Mode includes it: use a Service with loadBalancerClass eks.amazonaws.com/nlb, an IngressClass of eks.amazonaws.com/alb",
        "leave it out",
    ),
    "nvidia_device_plugin": _Lacking("Auto Mode includes it", "leave it out"),
    "neuron_device_plugin": _Lacking("Flexspot has no pools of Neuron devices on Auto Mode, which has its own plugin for them"),
    # aws/eks-charts pull request 1359, where one of AWS says so (2026-08-17); its chart leaves out nodes of Auto Mode.
    "efa_device_plugin": _Lacking("Auto Mode includes it", "leave it out"),
}
"""Controllers that Auto Mode has in itself."""


def _refused(path: str, written: object, lacking: _Lacking) -> SettingsProblem:
    value = written.model_dump(mode="json", exclude_defaults=True) if isinstance(written, Record) else written
    return SettingsProblem(path, shown(value), lacking.why, lacking.remedy, "option-not-in-auto-mode")


def settings_are_ones_that_auto_mode_has(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """What AWS does, or lets nobody do, is refused where it is written."""
    settings = resolved.settings
    if not resolved.auto_mode or not isinstance(settings, EksSettings):
        return
    for option, lacking in _OF_CLUSTERS.items():
        if (written := getattr(settings.cluster, option)) != EksClusterSettings.default(option):
            yield _refused(f"cluster.{option}", written, lacking)
    if (least := settings.cluster.system_pool.min_nodes) != SystemPool.default("min_nodes"):
        lacking = _Lacking("Auto Mode creates a node when a controller needs one, and keeps none", "leave it out")
        yield _refused("cluster.system_pool.min_nodes", least, lacking)
    for addon, version in settings.cluster.addon_versions.items():
        if addon in auto_mode().addons:
            lacking = _Lacking("Auto Mode includes it, in a version that AWS chooses", "leave it out")
            yield _refused(f"cluster.addon_versions.{addon}", version, lacking)
    for option, lacking in _OF_CONTROLLERS.items():
        if (written := getattr(settings.controllers, option)) != EksControllers.default(option):
            yield _refused(f"controllers.{option}", written, lacking)
    for pool in resolved.pools.values():
        yield from _of_pool(pool)


def _of_pool(pool: ResolvedPool) -> Iterator[SettingsProblem]:
    if not isinstance(pool.settings, EksPool):
        return
    gib = pool.settings.volume(default_volume(pool.machines)).gib
    smallest = min(machine.local_ssd_gb for machine in pool.machines)
    # The catalog counts as EC2 does, in GB; the volume is in GiB.
    if smallest and gib * 1024**3 >= smallest * 1000**3:
        problem = f"is not below the {smallest} GB of NVMe disks, so Auto Mode leaves them to pods as raw devices"
        yield SettingsProblem(f"{pool.path}.boot_disk_gib", str(gib), problem, "leave it out", "volume-instead-of-nvme")


SYSTEM_POOL = "system-nodes"
"""The NodePool of the controllers, and its NodeClass."""

_TAKEN = {
    "default": "EKS's own NodeClass",
    "general-purpose": "EKS's own pool",
    "system": "EKS's own pool",
    SYSTEM_POOL: "the controllers' pool",
}
"""Names of NodePools and NodeClasses that are there without the plan's, or may be."""


def names_are_not_eks_own(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """A pool's name is that of its NodePool and of its NodeClass."""
    for pool in resolved.pools.values() if resolved.auto_mode else ():
        if pool.name in _TAKEN:
            problem = f"is the name of {_TAKEN[pool.name]} in Auto Mode"
            yield SettingsProblem(f"{pool.path}.name", repr(pool.name), problem, "choose another name", "reserved-name")


def zones_are_names(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """A NodePool asks for a zone by a label, and Auto Mode documents none with the ids of zones."""
    if not resolved.auto_mode:
        return
    for number, zone in enumerate(resolved.zones):
        if is_zone_id(zone):
            lacking = _Lacking("is a zone id, and Auto Mode documents no label with zone ids", "name zones by name, such as us-east-1a")
            yield _refused(f"zones.{number}", zone, lacking)


def machines_are_launched(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Auto Mode launches what AWS lists; for anything else pods wait, and nothing says why. The list may be older than a machine."""
    settings = resolved.settings
    if not resolved.auto_mode or not isinstance(settings, EksSettings):
        return
    described = {each.name for each in settings.machines}
    places = [(f"{pool.path}.machine", machine.name) for pool in resolved.pools.values() for machine in pool.machines]
    for path, machine in [*places, ("cluster.system_pool.machine", settings.cluster.system_pool.machine)]:
        if not auto_mode().launches(machine):
            known = auto_mode().sources[auto_mode().families.source]
            problem = f"is of a family or size that AWS does not list for Auto Mode, as of {known.as_of}"
            remedy = "choose another, or use mode: standard"
            yield SettingsProblem(path, repr(machine), problem, remedy, "machine-not-in-auto-mode", refused=machine not in described)


def accelerators_are_told_of(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """NodePools ask for a device by its label. Of GPUs Auto Mode documents the labels, of other accelerators none."""
    for pool in resolved.pools.values() if resolved.auto_mode else ():
        if pool.gpu.accelerator is not NVIDIA:
            problem = f"has {pool.gpu.accelerator.noun}s, for which Auto Mode documents no label that a pool could require"
            remedy = "use mode: standard, or a machine with NVIDIA GPUs"
            yield SettingsProblem(f"{pool.path}.machine", repr(pool.settings.machine), problem, remedy, "accelerator-not-in-auto-mode")


def work_ends_before_its_node(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """AWS ends a node whatever runs on it. Services move to another one; a job without checkpoints begins again."""
    if not resolved.auto_mode:
        return
    most = node_hours()
    for name, each in resolved.classes.items():
        if each.queued and (each.run_limit_hours is None or each.run_limit_hours > most):
            limit = "missing" if each.run_limit_hours is None else str(each.run_limit_hours)
            problem = "allows more" if each.run_limit_hours is None else f"is above {most}"
            problem += f": Auto Mode drains a node after {most} hours, and terminates it {DRAIN_HOURS} hours later"
            remedy = f"set it to {most} or less, or let the class write checkpoints"
            path = f"classes.{name}.run_limit_hours"
            yield SettingsProblem(path, limit, problem, remedy, "run-limit-beyond-auto-mode", refused=not each.checkpoint)
