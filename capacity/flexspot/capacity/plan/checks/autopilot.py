"""GKE Autopilot: what caps spend there, whether pods get nodes of their own pools alone, and which options of a pool it has."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.data_files import Record
from flexspot.capacity.catalog.machines import Architecture
from flexspot.capacity.catalog.workload_classes import Fallback
from flexspot.capacity.plan.pools import asked_for, compute_class_of, taints_by_gke
from flexspot.capacity.plan.queues import shared_labels
from flexspot.capacity.settings.pools import GkePool, GpuDriver, ReservationUse, SharingStrategy
from flexspot.capacity.settings.stack_file import shown
from flexspot.capacity.values.errors import SettingsProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.capacity.catalog.workload_classes import WorkloadClass
    from flexspot.capacity.plan.resolve import ResolvedPool, ResolvedSettings


def what_caps_spend_is_said(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """A node pool's ceiling holds whatever pods ask for; on Autopilot there is none."""
    if resolved.autopilot:
        problem = "has no node pools, so no ceilings: only Kueue, ResourceQuota and project quota cap spend"
        remedy = "request a project quota of what the pools may have, and set it in gpu_quotas; with mode: standard every ceiling holds"
        yield SettingsProblem("cluster.mode", "autopilot", problem, remedy, "autopilot-without-ceilings", refused=False)


def pools_can_be_told_apart(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Two pools for which pods ask by the same labels are one to GKE: what was admitted on the quota of one runs on the nodes of the other.

    So do pods that ask for less than the others and are kept off by no taint, such as on-demand pods and idle reserved nodes.
    """
    for one, other in combinations(resolved.pools.values() if resolved.autopilot else (), 2):
        classes = compute_class_of(resolved, one), compute_class_of(resolved, other)
        written = _shown(asked_for(resolved, other))
        if classes == (None, None) and (_lands_on(resolved, one, other) or _lands_on(resolved, other, one)):
            problem = (
                f"cannot be told apart from pool {one.name}: pods that request nodes of one can run on those that GKE created for the other"
            )
            remedy = "split them by GPU, GPUs of a node, capacity type or zone, or merge them"
        elif classes[0] is not None and classes[0] == classes[1] and _made_of(resolved, one) == _made_of(resolved, other):
            problem = f"cannot be told apart from pool {one.name}: it is the same priority of compute class {classes[0]}"
            remedy = "split them by machine, capacity type, reservation or zones, or merge them"
        else:
            continue
        yield SettingsProblem(other.path, written, problem, remedy, "pools-not-told-apart")


def _lands_on(resolved: ResolvedSettings, pool: ResolvedPool, other: ResolvedPool) -> bool:
    """Whether pods of `pool` can run on nodes that GKE made for `other`."""
    suits = asked_for(resolved, pool).items() <= asked_for(resolved, other).items()
    return suits and set(taints_by_gke(resolved, other, None)) <= set(taints_by_gke(resolved, pool, None))


def _made_of(resolved: ResolvedSettings, pool: ResolvedPool) -> tuple[object, ...]:
    """What a priority of a compute class says."""
    options = (pool.settings.max_run_hours, pool.settings.boot_disk_gib) if isinstance(pool.settings, GkePool) else ()
    return (pool.machines, asked_for(resolved, pool), frozenset(pool.settings.zones), *options)


def classes_ask_for_their_own_pools(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """A job asks for what all pools of its class have in common; a queue may give it any flavor that has that.

    An affinity for one of several pools is none here: the autoscaler would not see which of them the queue chose.
    """
    for name, each in resolved.classes.items():
        own = [pool for pool in resolved.pools.values() if name in pool.settings.serves]
        if resolved.autopilot and own and each.fallback is Fallback.QUOTA:
            yield from _reach(resolved, name, each, own)


def _reach(resolved: ResolvedSettings, name: str, workload_class: WorkloadClass, own: list[ResolvedPool]) -> Iterator[SettingsProblem]:
    path, written = f"classes.{name}", ", ".join(pool.name for pool in own)
    if not workload_class.queued:
        if len(own) > 1:
            problem = "is served by several pools, but a pod that waits in no queue requests one kind of node"
            yield SettingsProblem(
                path, written, problem, "leave it one pool, split the class, or use fallback: stock-out", "class-of-several-shapes"
            )
        return
    common = shared_labels(asked_for(resolved, pool) for pool in own)
    others = [pool for pool in resolved.queued_pools.values() if pool not in own and compute_class_of(resolved, pool) is None]
    if strangers := [pool.name for pool in others if common.items() <= asked_for(resolved, pool).items()]:
        told = f"its pools have only {_shown(common)} in common" if common else "its pools have nothing in common"
        problem = f"{told}, so a queue would give its jobs nodes of {', '.join(strangers)} too"
        remedy = f"let {strangers[0]} serve {name} as well, or split the class into one for each kind of node"
        yield SettingsProblem(path, written, problem, remedy, "class-reaches-other-pools")


def _shown(labels: dict[str, str]) -> str:
    return ", ".join(f"{key.rpartition('/')[2]}: {value}" for key, value in sorted(labels.items()))


@dataclass(frozen=True)
class _AutopilotLacking:
    """Why an option is none of Autopilot's, and what to do."""

    why: str
    remedy: str = "leave it out, or use mode: standard"


_OF_NODE_POOLS = {
    "min_nodes": _AutopilotLacking("Autopilot creates a node when a pod needs it, and keeps none", "leave it out"),
    "shutdown_grace_seconds": _AutopilotLacking(
        "GKE documents more than 15 seconds for Standard node pools and compute classes, but not for Autopilot"
    ),
    "compact_placement": _AutopilotLacking("GKE does not document how a GPU pod on Autopilot requests it"),
    "network": _AutopilotLacking("on Autopilot GKE creates the nodes, and they have none of the stack's networks"),
    "topology": _AutopilotLacking("Kueue places pods only on existing nodes, and Autopilot creates nodes only for pods"),
    "confidential_nodes": _AutopilotLacking("on Autopilot it applies to the whole cluster or to a compute class of your own"),
    "boot_disk_kms_key": _AutopilotLacking(
        "Autopilot nodes have the cluster's key", "leave it out, and name the key in cluster.security.boot_disk_kms_key"
    ),
    "local_ssd_disks": _AutopilotLacking("Autopilot provides local disks by the GPU, not by number"),
    "secondary_boot_disk_images": _AutopilotLacking("GKE does not document how a pod on Autopilot requests them"),
}
"""Options that nothing on Autopilot takes."""

_BY_A_CLASS = "leave it out, or let the pool serve a class with fallback: stock-out"

_OF_PRIORITIES = dict.fromkeys(
    ("max_run_hours", "boot_disk_gib"), _AutopilotLacking("a pod cannot request it; a compute class can", _BY_A_CLASS)
)
"""Options that a priority of a compute class takes: https://docs.cloud.google.com/kubernetes-engine/docs/reference/crds/computeclass."""

_OF_SELECTORS = dict.fromkeys(
    ("gpu_sharing", "mig_partition"),
    _AutopilotLacking(
        "GKE documents it for pods that select GPUs by labels, but not for compute classes",
        "let the pool serve a class with fallback: quota",
    ),
)
"""Options that a pod asks for by labels, and that the page of the compute classes does not have."""


def capacity_types_are_ones_that_autopilot_gives(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Queued provisioning takes a node pool, and only a reservation that the pod names is used."""
    if not resolved.autopilot:
        return
    given = ", ".join(name for name, facts in resolved.facts.items() if facts.autopilot is not None)
    for pool in resolved.pools.values():
        if resolved.facts[pool.settings.capacity_type].autopilot is None:
            path, written = f"{pool.path}.capacity_type", repr(pool.settings.capacity_type.value)
            problem = "is documented for node pools of Standard clusters, but not for Autopilot"
            remedy = f"allowed: {given}; flex-start is the nearest, without all nodes at once; or use mode: standard"
            yield SettingsProblem(path, written, problem, remedy, "capacity-type-not-on-autopilot")
        reservation = pool.settings.reservation if isinstance(pool.settings, GkePool) else None
        if reservation is not None and reservation.use is ReservationUse.ANY:
            problem = "Autopilot uses only reservations that are named"
            yield SettingsProblem(
                f"{pool.path}.reservation.use", "any", problem, "allowed: specific, with its name", "any-reservation-on-autopilot"
            )
        if reservation is not None and reservation.block is not None:
            lacking = _AutopilotLacking("a pod on Autopilot can name a reservation here, but no block of it")
            yield _refused(f"{pool.path}.reservation.block", repr(reservation.block), lacking)


def options_are_ones_that_autopilot_has(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """What would be left out without a word is refused."""
    if not resolved.autopilot:
        return
    for pool in resolved.pools.values():
        if not isinstance(pool.settings, GkePool):
            continue
        machine = pool.machines[0]
        if machine.architecture is Architecture.ARM64:
            lacking = _AutopilotLacking(
                "is arm64, and GKE does not document how GPU pods on Autopilot request it", "choose another, or use mode: standard"
            )
            yield _refused(f"{pool.path}.machine", repr(machine.name), lacking)
        by_compute_class = compute_class_of(resolved, pool) is not None
        for option, lacking in (_OF_NODE_POOLS | (_OF_SELECTORS if by_compute_class else _OF_PRIORITIES)).items():
            written = getattr(pool.settings, option)
            if written != GkePool.model_fields[option].default:
                yield _refused(f"{pool.path}.{option}", _written(written), lacking)
        yield from _choices(pool.path, pool.settings, by_compute_class=by_compute_class)


def _choices(path: str, pool: GkePool, *, by_compute_class: bool) -> Iterator[SettingsProblem]:
    """Options of which Autopilot has some values."""
    if pool.gpu_driver is GpuDriver.DISABLED:
        yield _refused(
            f"{path}.gpu_driver",
            "'disabled'",
            _AutopilotLacking("Autopilot installs a driver on every GPU node", "allowed: default, latest"),
        )
    if pool.gpu_sharing is not None and pool.gpu_sharing.strategy is SharingStrategy.MPS and not by_compute_class:
        lacking = _AutopilotLacking("GKE documents time-sharing for Autopilot, but not MPS", "allowed: time-sharing")
        yield _refused(f"{path}.gpu_sharing.strategy", "'mps'", lacking)
    if len(set(pool.zones)) > 1 and not by_compute_class:
        lacking = _AutopilotLacking(
            "a pod requests one zone or none; a compute class may name several",
            f"name one; {_BY_A_CLASS}",
        )
        yield _refused(f"{path}.zones", ", ".join(pool.zones), lacking)


def _refused(path: str, written: str, lacking: _AutopilotLacking) -> SettingsProblem:
    return SettingsProblem(path, written, lacking.why, lacking.remedy, "option-not-on-autopilot")


def _written(value: object) -> str:
    return shown(list(value) if isinstance(value, tuple) else value.model_dump() if isinstance(value, Record) else value)
