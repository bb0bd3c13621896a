"""What GKE Autopilot has of a pool's capacity types and options, and what only a node pool has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity.planning.pools import compute_class_of
from capacity.records import Record
from capacity.settings.gke_pools import GkePool, GpuDriver, ReservationUse, SharingStrategy
from capacity.settings.problems import SettingsProblem
from capacity.settings.wording import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.planning.ground import Ground


@dataclass(frozen=True)
class _Lacking:
    """Why an option is none of Autopilot's, and what to do."""

    why: str
    remedy: str = "leave it out, or use mode: standard"


_OF_NODE_POOLS = {
    "min_nodes": _Lacking("Autopilot makes a node when a pod needs it, and keeps none", "leave it out"),
    "shutdown_grace_seconds": _Lacking(
        "GKE documents more than 15 seconds for Standard node pools and compute classes, and nowhere for Autopilot"
    ),
    "compact_placement": _Lacking("no page of GKE says how a GPU pod of Autopilot asks for it"),
    "topology": _Lacking("Kueue places pods on nodes that are there, and those of Autopilot come with the pods"),
    "local_ssd_disks": _Lacking("Autopilot gives local disks by the GPU, and not by number"),
    "secondary_boot_disk_images": _Lacking("no page of GKE says how a pod of Autopilot asks for them"),
}
"""Options that nothing on Autopilot takes."""

_BY_A_CLASS = "leave it out, or let the pool serve a class with fallback: stock-out"

_OF_RUNGS = dict.fromkeys(("max_run_hours", "boot_disk_gib"), _Lacking("a pod cannot ask for it; a compute class can", _BY_A_CLASS))
"""Options that a rung of a compute class takes: https://docs.cloud.google.com/kubernetes-engine/docs/reference/crds/computeclass."""

_OF_SELECTORS = dict.fromkeys(
    ("gpu_sharing", "mig_partition"),
    _Lacking(
        "GKE documents it for pods that select GPUs by labels, and not for compute classes",
        "let the pool serve a class with fallback: quota",
    ),
)
"""Options that a pod asks for by labels, and that the page of the compute classes does not have."""


def capacity_types_are_ones_that_autopilot_gives(ground: Ground) -> Iterator[SettingsProblem]:
    """Queued provisioning takes a node pool, and only a reservation that the pod names is used."""
    if not ground.autopilot:
        return
    given = ", ".join(name for name, facts in ground.facts.items() if facts.autopilot is not None)
    for pool in ground.pools.values():
        if ground.facts[pool.settings.capacity_type].autopilot is None:
            path, written = f"{pool.path}.capacity_type", repr(pool.settings.capacity_type.value)
            problem = "is documented for node pools of Standard clusters, and not for Autopilot"
            remedy = f"allowed: {given}; flex-start is the nearest, without all nodes at once; or use mode: standard"
            yield SettingsProblem(path, written, problem, remedy, "capacity-type-not-on-autopilot")
        reservation = pool.settings.reservation if isinstance(pool.settings, GkePool) else None
        if reservation is not None and reservation.use is ReservationUse.ANY:
            problem = "Autopilot uses no reservation but one that is named"
            yield SettingsProblem(
                f"{pool.path}.reservation.use", "any", problem, "allowed: specific, with its name", "any-reservation-on-autopilot"
            )


def options_are_ones_that_autopilot_has(ground: Ground) -> Iterator[SettingsProblem]:
    """What would be left out without a word is refused."""
    if not ground.autopilot:
        return
    for pool in ground.pools.values():
        if not isinstance(pool.settings, GkePool):
            continue
        on_a_ladder = compute_class_of(ground, pool) is not None
        for option, lacking in (_OF_NODE_POOLS | (_OF_SELECTORS if on_a_ladder else _OF_RUNGS)).items():
            written = getattr(pool.settings, option)
            if written != GkePool.model_fields[option].default:
                yield _refused(f"{pool.path}.{option}", _written(written), lacking)
        yield from _choices(pool.path, pool.settings, on_a_ladder=on_a_ladder)


def _choices(path: str, pool: GkePool, *, on_a_ladder: bool) -> Iterator[SettingsProblem]:
    """Options of which Autopilot has some values."""
    if pool.gpu_driver is GpuDriver.DISABLED:
        yield _refused(
            f"{path}.gpu_driver", "'disabled'", _Lacking("Autopilot installs a driver on every GPU node", "allowed: default, latest")
        )
    if pool.gpu_sharing is not None and pool.gpu_sharing.strategy is SharingStrategy.MPS and not on_a_ladder:
        lacking = _Lacking("GKE documents time-sharing for Autopilot, and not MPS", "allowed: time-sharing")
        yield _refused(f"{path}.gpu_sharing.strategy", "'mps'", lacking)
    if len(set(pool.zones)) > 1 and not on_a_ladder:
        lacking = _Lacking(
            "a pod asks for one zone or for none; a compute class may name several",
            f"name one; {_BY_A_CLASS}",
        )
        yield _refused(f"{path}.zones", ", ".join(pool.zones), lacking)


def _refused(path: str, written: str, lacking: _Lacking) -> SettingsProblem:
    return SettingsProblem(path, written, lacking.why, lacking.remedy, "option-not-on-autopilot")


def _written(value: object) -> str:
    return shown(list(value) if isinstance(value, tuple) else value.model_dump() if isinstance(value, Record) else value)  # pyright: ignore[reportUnknownArgumentType] -- a tuple of settings


CHECKS = (capacity_types_are_ones_that_autopilot_gives, options_are_ones_that_autopilot_has)
