"""GKE Autopilot: what caps spend there, and whether pods get the nodes of their own pools and no others."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from capacity.planning.autopilot import asked_for, shared_labels, taints_by_gke
from capacity.planning.pools import compute_class_of
from capacity.settings.gke_pools import GkePool
from capacity.settings.problems import SettingsProblem
from capacity.workload_class import Fallback

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.planning.ground import Ground, ResolvedPool
    from capacity.workload_class import WorkloadClass


def what_caps_spend_is_said(ground: Ground) -> Iterator[SettingsProblem]:
    """A node pool's ceiling holds whatever pods ask for; on Autopilot there is none."""
    if ground.autopilot:
        problem = "has no node pools, and so no ceilings of theirs: only Kueue, ResourceQuota and project quota cap spend there"
        remedy = "ask for a project quota of what the pools may have, and write it as gpu_quotas; with mode: standard every ceiling holds"
        yield SettingsProblem("cluster.mode", "autopilot", problem, remedy, "autopilot-without-ceilings", refused=False)


def pools_can_be_told_apart(ground: Ground) -> Iterator[SettingsProblem]:
    """Two pools for which pods ask by the same labels are one to GKE: what was admitted on the quota of one runs on the nodes of the other.

    So do pods that ask for less than the others and are kept off by no taint, such as on-demand pods and idle reserved nodes.
    """
    for one, other in combinations(ground.pools.values() if ground.autopilot else (), 2):
        ladders = compute_class_of(ground, one), compute_class_of(ground, other)
        written = _shown(asked_for(ground, other))
        if ladders == (None, None) and (_lands_on(ground, one, other) or _lands_on(ground, other, one)):
            problem = f"cannot be told from pool {one.name}: pods that ask for nodes of one can run on those that GKE made for the other"
            remedy = "split them by GPU, GPUs of a node, capacity type or zone, or merge them"
        elif ladders[0] is not None and ladders[0] == ladders[1] and _made_of(ground, one) == _made_of(ground, other):
            problem = f"cannot be told from pool {one.name}: it is the same rung of compute class {ladders[0]}"
            remedy = "split them by machine, capacity type, reservation or zones, or merge them"
        else:
            continue
        yield SettingsProblem(other.path, written, problem, remedy, "pools-not-told-apart")


def _lands_on(ground: Ground, pool: ResolvedPool, other: ResolvedPool) -> bool:
    """Whether pods of `pool` can run on nodes that GKE made for `other`."""
    suits = asked_for(ground, pool).items() <= asked_for(ground, other).items()
    return suits and set(taints_by_gke(ground, other, None)) <= set(taints_by_gke(ground, pool, None))


def _made_of(ground: Ground, pool: ResolvedPool) -> tuple[object, ...]:
    """What a rung of a compute class says."""
    options = (pool.settings.max_run_hours, pool.settings.boot_disk_gib) if isinstance(pool.settings, GkePool) else ()
    return (pool.machines, asked_for(ground, pool), frozenset(pool.settings.zones), *options)


def classes_ask_for_their_own_pools(ground: Ground) -> Iterator[SettingsProblem]:
    """A job asks for what all pools of its class have in common; a queue may give it any flavor that has that.

    An affinity for one of several pools is none here: the autoscaler would not see which of them the queue chose.
    """
    for name, each in ground.classes.items():
        own = [pool for pool in ground.pools.values() if name in pool.settings.serves]
        if ground.autopilot and own and each.fallback is Fallback.QUOTA:
            yield from _reach(ground, name, each, own)


def _reach(ground: Ground, name: str, workload_class: WorkloadClass, own: list[ResolvedPool]) -> Iterator[SettingsProblem]:
    path, written = f"classes.{name}", ", ".join(pool.name for pool in own)
    if not workload_class.queued:
        if len(own) > 1:
            problem = "is served by several pools, and a pod that waits in no queue asks for one kind of node"
            yield SettingsProblem(
                path, written, problem, "leave it one pool, split the class, or use fallback: stock-out", "class-of-several-shapes"
            )
        return
    common = shared_labels(asked_for(ground, pool) for pool in own)
    others = [pool for pool in ground.queued_pools.values() if pool not in own and compute_class_of(ground, pool) is None]
    if strangers := [pool.name for pool in others if common.items() <= asked_for(ground, pool).items()]:
        told = f"all that its pools have in common is {_shown(common)}" if common else "its pools have nothing in common"
        problem = f"{told}, so a queue would give its jobs nodes of {', '.join(strangers)} too"
        remedy = f"let {strangers[0]} serve {name} as well, or split the class into one for each kind of node"
        yield SettingsProblem(path, written, problem, remedy, "class-reaches-other-pools")


def _shown(labels: dict[str, str]) -> str:
    return ", ".join(f"{key.rpartition('/')[2]}: {value}" for key, value in sorted(labels.items()))


CHECKS = (what_caps_spend_is_said, pools_can_be_told_apart, classes_ask_for_their_own_pools)
