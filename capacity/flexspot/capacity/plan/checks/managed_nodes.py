"""Checks of EKS Auto Mode and GKE Autopilot, where the cloud manages nodes: unsupported settings, and restrictions of pools."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.accelerators import NVIDIA
from flexspot.capacity.catalog.data_files import Record
from flexspot.capacity.catalog.machines import Architecture, is_zone_id
from flexspot.capacity.catalog.versions import auto_mode
from flexspot.capacity.catalog.workload_classes import Fallback
from flexspot.capacity.plan.pools import compute_class_of, requested_labels, taints_by_gke
from flexspot.capacity.plan.queues import shared_labels
from flexspot.capacity.settings.cluster import EksClusterSettings, SystemPool
from flexspot.capacity.settings.controllers import EksControllers
from flexspot.capacity.settings.pools import EksPool, GkePool, GpuDriver, ReservationUse, SharingStrategy, default_volume
from flexspot.capacity.settings.stack_file import shown
from flexspot.capacity.values.errors import SettingsProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.capacity.catalog.workload_classes import WorkloadClass
    from flexspot.capacity.plan.resolve import ResolvedPool, ResolvedSettings
    from flexspot.capacity.settings.platform import EksSettings


DRAIN_HOURS = 24
"""Hours that a node drains before AWS ends it: Auto Mode's own default (create-node-pool.adoc at 01385604, read 2026-11-25)."""


def node_hours() -> int:
    """Return the hours after which a node begins to drain, so that it is gone when AWS ends it."""
    return auto_mode().node_lifetime.hours - DRAIN_HOURS


@dataclass(frozen=True)
class _Unsupported:
    """The reason why the cloud does not support an option, and the remedy."""

    why: str
    remedy: str = "leave it out, or use mode: standard"


_OF_CLUSTERS = {
    "ami": _Unsupported("Auto Mode runs AWS's own image, which cannot be chosen"),
    "images_file": _Unsupported("Auto Mode runs AWS's own image, whose release cannot be chosen"),
    "nodes": _Unsupported("Auto Mode has neither user data nor kubelet settings"),
    "node_repair": _Unsupported("Auto Mode always replaces broken nodes itself", "leave it out"),
    "existing": _Unsupported(
        "the role of an existing cluster, which its owner manages, does not let Auto Mode set the stack's tags on nodes",
        "leave it out, so that the stack creates the cluster, or use mode: standard",
    ),
    "existing_karpenter": _Unsupported("AWS runs Karpenter outside the cluster"),
    "existing_gpu_operator": _Unsupported(
        "Auto Mode includes NVIDIA's device plugin, next to which the GPU operator's cannot run",
        "leave it out, and set the operator's devicePlugin.enabled and dcgmExporter.enabled to false, or use mode: standard",
    ),
}
"""Options of the cluster that Auto Mode does not support."""

_OF_CONTROLLERS = {
    "karpenter": _Unsupported("AWS runs Karpenter outside the cluster", "leave it out"),
    "load_balancer_controller": _Unsupported(
        "Auto Mode includes it: use a Service with loadBalancerClass eks.amazonaws.com/nlb, or an IngressClass of eks.amazonaws.com/alb",
        "leave it out",
    ),
    "nvidia_device_plugin": _Unsupported("Auto Mode includes it", "leave it out"),
    "neuron_device_plugin": _Unsupported("Flexspot has no pools of Neuron devices on Auto Mode, which has its own plugin for them"),
    # According to an AWS engineer in aws/eks-charts pull request 1359 (2026-08-17); the chart excludes nodes of Auto Mode.
    "efa_device_plugin": _Unsupported("Auto Mode includes it", "leave it out"),
}
"""Controllers that Auto Mode includes or does not support."""


def _refused(path: str, written: object, unsupported: _Unsupported, rule: str = "option-not-in-auto-mode") -> SettingsProblem:
    value = written.model_dump(mode="json", exclude_defaults=True) if isinstance(written, Record) else written
    value = list[object](value) if isinstance(value, tuple) else value
    return SettingsProblem(path, shown(value), unsupported.why, unsupported.remedy, rule)


def auto_mode_supports_the_settings(resolved: ResolvedSettings, settings: EksSettings) -> Iterator[SettingsProblem]:
    """Refuse settings of parts that AWS manages in Auto Mode."""
    if not resolved.auto_mode:
        return
    for option, unsupported in _OF_CLUSTERS.items():
        if (written := getattr(settings.cluster, option)) != EksClusterSettings.default(option):
            yield _refused(f"cluster.{option}", written, unsupported)
    if (least := settings.cluster.system_pool.min_nodes) != SystemPool.default("min_nodes"):
        unsupported = _Unsupported("Auto Mode creates a node when a controller needs one, and keeps no minimum", "leave it out")
        yield _refused("cluster.system_pool.min_nodes", least, unsupported)
    for addon, version in settings.cluster.addon_versions.items():
        if addon in auto_mode().addons:
            unsupported = _Unsupported("Auto Mode includes it, in a version that AWS chooses", "leave it out")
            yield _refused(f"cluster.addon_versions.{addon}", version, unsupported)
    for option, unsupported in _OF_CONTROLLERS.items():
        if (written := getattr(settings.controllers, option)) != EksControllers.default(option):
            yield _refused(f"controllers.{option}", written, unsupported)


def volumes_leave_the_nvme_disks(resolved: ResolvedSettings, pool: ResolvedPool, options: EksPool) -> Iterator[SettingsProblem]:
    """Refuse volumes as large as the NVMe disks. Auto Mode puts pods' data on NVMe disks only if they are larger than the volume."""
    if not resolved.auto_mode:
        return
    gib = options.volume(default_volume(pool.machines)).gib
    smallest = min(machine.local_ssd_gb for machine in pool.machines)
    # The catalog has GB, as EC2 does; the volume is in GiB.
    if smallest and gib * 1024**3 >= smallest * 1000**3:
        problem = f"is not below the {smallest} GB of NVMe disks, so Auto Mode leaves them to pods as raw devices"
        yield SettingsProblem(f"{pool.path}.boot_disk_gib", str(gib), problem, "leave it out", "volume-instead-of-nvme")


SYSTEM_POOL = "system-nodes"
"""Name of the controllers' NodePool and NodeClass."""

_TAKEN = {
    "default": "EKS's own NodeClass",
    "general-purpose": "EKS's own pool",
    "system": "EKS's own pool",
    SYSTEM_POOL: "the controllers' pool",
}
"""Names of NodePools and NodeClasses that Auto Mode or the platform may create in addition to the plan's."""


def names_are_not_taken_by_eks(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse pools with such a name: a pool's name is also the name of its NodePool and NodeClass."""
    for pool in resolved.pools.values() if resolved.auto_mode else ():
        if pool.name in _TAKEN:
            problem = f"is the name of {_TAKEN[pool.name]} in Auto Mode"
            yield SettingsProblem(f"{pool.path}.name", repr(pool.name), problem, "choose another name", "reserved-name")


def zones_are_names(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse zone ids. A NodePool requests a zone by a label, and Auto Mode documents no label with zone ids."""
    if not resolved.auto_mode:
        return
    for number, zone in enumerate(resolved.zones):
        if is_zone_id(zone):
            unsupported = _Unsupported(
                "is a zone id, and Auto Mode documents no label with zone ids", "name zones by name, such as us-east-1a"
            )
            yield _refused(f"zones.{number}", zone, unsupported)


def machines_are_launched(resolved: ResolvedSettings, settings: EksSettings) -> Iterator[SettingsProblem]:
    """Refuse machines that AWS does not list for Auto Mode: their pods would wait without an explanation.

    A machine that the settings describe only causes a warning, because it may be newer than the list.
    """
    if not resolved.auto_mode:
        return
    described = {each.name for each in settings.machines}
    places = [(f"{pool.path}.machine", machine.name) for pool in resolved.pools.values() for machine in pool.machines]
    for path, machine in [*places, ("cluster.system_pool.machine", settings.cluster.system_pool.machine)]:
        if not auto_mode().launches(machine):
            known = auto_mode().sources[auto_mode().families.source]
            problem = f"is of a family or size that AWS does not list for Auto Mode, as of {known.as_of}"
            remedy = "choose another machine, or use mode: standard"
            yield SettingsProblem(path, repr(machine), problem, remedy, "machine-not-in-auto-mode", refused=machine not in described)


def accelerators_have_labels(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse accelerators other than GPUs. NodePools request a device by its label, and Auto Mode documents labels only for GPUs."""
    for pool in resolved.pools.values() if resolved.auto_mode else ():
        if pool.gpu.accelerator is not NVIDIA:
            problem = f"has {pool.gpu.accelerator.noun}s, for which Auto Mode documents no label that a pool could require"
            remedy = "use mode: standard, or a machine with NVIDIA GPUs"
            yield SettingsProblem(f"{pool.path}.machine", repr(pool.settings.machine), problem, remedy, "accelerator-not-in-auto-mode")


def work_ends_before_its_node(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse runs that are longer than the life of a node, unless they write checkpoints.

    AWS ends a node whatever runs on it. Services move to another node; a job without checkpoints starts again.
    """
    if not resolved.auto_mode:
        return
    most = node_hours()
    for name, each in resolved.classes.items():
        if each.queued and (each.run_limit_hours is None or each.run_limit_hours > most):
            limit = "missing" if each.run_limit_hours is None else str(each.run_limit_hours)
            problem = "jobs may outlive their node" if each.run_limit_hours is None else f"is above {most}"
            problem += f": Auto Mode drains a node after {most} hours, and terminates it {DRAIN_HOURS} hours later"
            remedy = f"set it to {most} or less, or let the class write checkpoints"
            path = f"classes.{name}.run_limit_hours"
            yield SettingsProblem(path, limit, problem, remedy, "run-limit-beyond-auto-mode", refused=not each.checkpoint)


def missing_ceilings_are_reported(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Warn that Autopilot has no ceilings. The ceiling of a node pool applies whatever pods request, and Autopilot has no node pools."""
    if resolved.autopilot:
        problem = "has no node pools and therefore no ceilings: only Kueue, ResourceQuota and project quota limit the cost"
        remedy = "request a project quota equal to the pools' ceilings and set it in gpu_quotas, or use mode: standard, which has ceilings"
        yield SettingsProblem("cluster.mode", "autopilot", problem, remedy, "autopilot-without-ceilings", refused=False)


def pools_are_distinguishable(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse pools that GKE cannot distinguish.

    If pods request two pools by the same labels, work that was admitted on the quota of one runs on the nodes of the other. So do pods that
    request fewer labels than the others and are kept off by no taint, such as on-demand pods and idle reserved nodes.
    """
    for one, other in combinations(resolved.pools.values() if resolved.autopilot else (), 2):
        classes = compute_class_of(resolved, one), compute_class_of(resolved, other)
        written = _shown(requested_labels(resolved, other))
        if classes == (None, None) and (_fits_on(resolved, one, other) or _fits_on(resolved, other, one)):
            problem = f"cannot be distinguished from pool {one.name}: pods that request nodes of one can run on nodes created for the other"
            remedy = "make them differ in GPU, GPUs per node, capacity type or zone, or merge them"
        elif classes[0] is not None and classes[0] == classes[1] and _priority_fields(resolved, one) == _priority_fields(resolved, other):
            problem = f"cannot be distinguished from pool {one.name}: both are the same priority of compute class {classes[0]}"
            remedy = "make them differ in machine, capacity type, reservation or zones, or merge them"
        else:
            continue
        yield SettingsProblem(other.path, written, problem, remedy, "pools-not-told-apart")


def _fits_on(resolved: ResolvedSettings, pool: ResolvedPool, other: ResolvedPool) -> bool:
    """Return whether pods of `pool` can run on nodes that GKE created for `other`."""
    suits = requested_labels(resolved, pool).items() <= requested_labels(resolved, other).items()
    return suits and set(taints_by_gke(resolved, other, None)) <= set(taints_by_gke(resolved, pool, None))


def _priority_fields(resolved: ResolvedSettings, pool: ResolvedPool) -> tuple[object, ...]:
    """Return the fields of the pool's priority in a compute class."""
    options = (pool.settings.max_run_hours, pool.settings.boot_disk_gib) if isinstance(pool.settings, GkePool) else ()
    return (pool.machines, requested_labels(resolved, pool), frozenset(pool.settings.zones), *options)


def classes_request_only_their_own_pools(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse classes whose jobs a queue could also admit to pools of other classes.

    A job requests the labels that all pools of its class have in common, and a queue may assign it any flavor with those. An affinity for
    one of several pools would not help: the autoscaler would not see which of them the queue chose.
    """
    for name, each in resolved.classes.items():
        own = [pool for pool in resolved.pools.values() if name in pool.settings.serves]
        if resolved.autopilot and own and each.fallback is Fallback.QUOTA:
            yield from _other_reachable_pools(resolved, name, each, own)


def _other_reachable_pools(
    resolved: ResolvedSettings, name: str, workload_class: WorkloadClass, own: list[ResolvedPool]
) -> Iterator[SettingsProblem]:
    path, written = f"classes.{name}", ", ".join(pool.name for pool in own)
    if not workload_class.queued:
        if len(own) > 1:
            problem = "is served by several pools, but a pod that waits in no queue requests one kind of node"
            yield SettingsProblem(
                path, written, problem, "keep one pool, split the class, or use fallback: stock-out", "class-of-several-shapes"
            )
        return
    common = shared_labels(requested_labels(resolved, pool) for pool in own)
    others = [pool for pool in resolved.queued_pools.values() if pool not in own and compute_class_of(resolved, pool) is None]
    if reachable := [pool.name for pool in others if common.items() <= requested_labels(resolved, pool).items()]:
        reason = f"its pools have only {_shown(common)} in common" if common else "its pools have nothing in common"
        problem = f"{reason}, so a queue would also give its jobs nodes of {', '.join(reachable)}"
        remedy = f"let {reachable[0]} serve {name} as well, or split the class into one for each kind of node"
        yield SettingsProblem(path, written, problem, remedy, "class-reaches-other-pools")


def _shown(labels: dict[str, str]) -> str:
    return ", ".join(f"{key.rpartition('/')[2]}: {value}" for key, value in sorted(labels.items()))


_AUTOPILOT = "option-not-on-autopilot"

_OF_NODE_POOLS = {
    "min_nodes": _Unsupported("Autopilot creates a node when a pod needs it, and keeps no minimum", "leave it out"),
    "shutdown_grace_seconds": _Unsupported(
        "GKE documents more than 15 seconds for Standard node pools and compute classes, but not for Autopilot"
    ),
    "compact_placement": _Unsupported("GKE does not document how a GPU pod on Autopilot requests it"),
    "network": _Unsupported("on Autopilot GKE creates the nodes, and they have none of the stack's networks"),
    "topology": _Unsupported("Kueue places pods only on existing nodes, and Autopilot creates nodes only for pods"),
    "confidential_nodes": _Unsupported("on Autopilot it applies to the whole cluster or to a compute class of your own"),
    "boot_disk_kms_key": _Unsupported(
        "Autopilot nodes have the cluster's key", "leave it out, and name the key in cluster.security.boot_disk_kms_key"
    ),
    "local_ssd_disks": _Unsupported("on Autopilot the GPU decides the number of local disks"),
    "secondary_boot_disk_images": _Unsupported("GKE does not document how a pod on Autopilot requests them"),
}
"""Options that Autopilot does not support."""

_BY_A_CLASS = "leave it out, or let the pool serve a class with fallback: stock-out"

_OF_PRIORITIES = dict.fromkeys(
    ("max_run_hours", "boot_disk_gib"), _Unsupported("a pod cannot request it; a compute class can", _BY_A_CLASS)
)
"""Options that only the priority of a compute class supports:
https://docs.cloud.google.com/kubernetes-engine/docs/reference/crds/computeclass."""

_OF_SELECTORS = dict.fromkeys(
    ("gpu_sharing", "mig_partition"),
    _Unsupported(
        "GKE documents it for pods that select GPUs by labels, but not for compute classes",
        "let the pool serve a class with fallback: quota",
    ),
)
"""Options that a pod requests by labels, and that the documentation of compute classes does not have."""


def autopilot_supports_the_capacity_types(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse queued capacity, which needs a node pool, and unnamed reservations, which a pod on Autopilot cannot use."""
    if not resolved.autopilot:
        return
    given = ", ".join(name for name, facts in resolved.facts.items() if facts.autopilot is not None)
    for pool in resolved.pools.values():
        if resolved.facts[pool.settings.capacity_type].autopilot is None:
            path, written = f"{pool.path}.capacity_type", repr(pool.settings.capacity_type.value)
            problem = "is documented for node pools of Standard clusters, but not for Autopilot"
            remedy = f"allowed: {given}; flex-start is the most similar, but its nodes do not arrive all at once; or use mode: standard"
            yield SettingsProblem(path, written, problem, remedy, "capacity-type-not-on-autopilot")
        reservation = pool.settings.reservation if isinstance(pool.settings, GkePool) else None
        if reservation is not None and reservation.use is ReservationUse.ANY:
            problem = "Autopilot uses only reservations that are named"
            remedy = "allowed: specific, with the reservation's name"
            yield SettingsProblem(f"{pool.path}.reservation.use", "any", problem, remedy, "any-reservation-on-autopilot")
        if reservation is not None and reservation.block is not None:
            unsupported = _Unsupported("a pod on Autopilot can name a reservation, but not a block of it")
            yield _refused(f"{pool.path}.reservation.block", reservation.block, unsupported, _AUTOPILOT)


def autopilot_supports_the_options(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse options of pools that would have no effect."""
    if not resolved.autopilot:
        return
    for pool in resolved.pools.values():
        if not isinstance(pool.settings, GkePool):
            continue
        machine = pool.machines[0]
        if machine.architecture is Architecture.ARM64:
            unsupported = _Unsupported(
                "is arm64, and GKE does not document how GPU pods on Autopilot request it", "choose another machine, or use mode: standard"
            )
            yield _refused(f"{pool.path}.machine", machine.name, unsupported, _AUTOPILOT)
        by_compute_class = compute_class_of(resolved, pool) is not None
        for option, unsupported in (_OF_NODE_POOLS | (_OF_SELECTORS if by_compute_class else _OF_PRIORITIES)).items():
            written = getattr(pool.settings, option)
            if written != GkePool.model_fields[option].default:
                yield _refused(f"{pool.path}.{option}", written, unsupported, _AUTOPILOT)
        yield from _choices(pool.path, pool.settings, by_compute_class=by_compute_class)


def _choices(path: str, pool: GkePool, *, by_compute_class: bool) -> Iterator[SettingsProblem]:
    """Refuse unsupported values of options that Autopilot supports in part."""
    if pool.gpu_driver is GpuDriver.DISABLED:
        unsupported = _Unsupported("Autopilot installs a driver on every GPU node", "allowed: default, latest")
        yield _refused(f"{path}.gpu_driver", "disabled", unsupported, _AUTOPILOT)
    if pool.gpu_sharing is not None and pool.gpu_sharing.strategy is SharingStrategy.MPS and not by_compute_class:
        unsupported = _Unsupported("GKE documents time-sharing for Autopilot, but not MPS", "allowed: time-sharing")
        yield _refused(f"{path}.gpu_sharing.strategy", "mps", unsupported, _AUTOPILOT)
    if len(set(pool.zones)) > 1 and not by_compute_class:
        problem, remedy = "a pod can request only one zone, but a compute class can name several", f"name one zone, {_BY_A_CLASS}"
        yield SettingsProblem(f"{path}.zones", ", ".join(pool.zones), problem, remedy, _AUTOPILOT)
