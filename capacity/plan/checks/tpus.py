"""Pools of TPUs: where they can be, which classes they can serve, and that what is given away of them is whole hosts and whole slices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.catalog.accelerators import TPU
from capacity.catalog.workload_classes import Fallback
from capacity.settings.teams import TeamSettings
from capacity.values.errors import SettingsProblem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from capacity.plan.resolve import ResolvedPool, ResolvedSettings


def _pools(resolved: ResolvedSettings) -> dict[str, ResolvedPool]:
    return {name: pool for name, pool in resolved.pools.items() if pool.gpu.accelerator is TPU}


def _is_slice(pool: ResolvedPool) -> bool:
    return getattr(pool.settings, "tpu_topology", None) is not None


def tpus_are_in_pools_of_our_own(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """On Autopilot and in compute classes GKE makes the nodes, by fields that nobody here has asked a cluster about."""
    for pool in _pools(resolved).values():
        if resolved.autopilot:
            problem = "has TPU chips, which need node pools, and Autopilot has none"
            remedy = "use cluster.mode: standard, or a machine with NVIDIA GPUs"
            yield SettingsProblem(f"{pool.path}.machine", repr(pool.settings.machine), problem, remedy, "tpus-on-autopilot")
        climbing = sorted(name for name in set(pool.settings.serves) & set(resolved.classes) if _climbs(resolved, name))
        for name in climbing:
            problem = f"serves class {name}, which falls back at a stock-out: its compute class would have to name TPU chips"
            remedy = f"let it serve a class with fallback: quota, or set classes.{name}.fallback to quota"
            yield SettingsProblem(f"{pool.path}.serves", name, problem, remedy, "tpus-in-compute-class")


def _climbs(resolved: ResolvedSettings, name: str) -> bool:
    return resolved.classes[name].fallback is Fallback.STOCK_OUT


def slices_are_for_jobs_alone(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """A service or a notebook is pods of one node each, and on one node of a slice its chips wait for the others for ever."""
    for pool in _pools(resolved).values():
        for name in sorted(set(pool.settings.serves) & set(resolved.classes)):
            if _is_slice(pool) and not resolved.classes[name].queued:
                problem = f"serves class {name}, whose pods wait in no queue and start one by one, but a slice is used as a whole"
                remedy = "let it serve only queued classes, or leave tpu_topology out for nodes that work on their own"
                yield SettingsProblem(f"{pool.path}.serves", name, problem, remedy, "slice-for-single-pods")


def whole_hosts_are_given_away(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """A pod takes all chips of its node and a job all nodes of a slice, so that a part of them is a share that nobody can use."""
    owners = [("teams", number, each) for number, each in enumerate(resolved.settings.teams)]
    owners += [("cohorts", number, each) for number, each in enumerate(resolved.settings.cohorts)]
    for kind, number, owner in owners:
        given: dict[str, Mapping[str, int]] = {
            "shares": owner.shares,
            "borrowing_limits": owner.borrowing_limits,
            "lending_limits": owner.lending_limits,
            "unqueued": owner.unqueued if isinstance(owner, TeamSettings) else {},
        }
        for field, amounts in given.items():
            for name, pool in _pools(resolved).items():
                chips = amounts.get(name, 0)
                unit = pool.ceiling.gpus if _is_slice(pool) else pool.gpus_per_node
                if chips % unit:
                    what = f"the {unit} chips of the slice" if _is_slice(pool) else f"the {unit} chips of a {pool.machines[0].name}"
                    problem = f"is not a multiple of {what}, which work takes as a whole"
                    lower = chips // unit * unit
                    near = f"{lower} or {lower + unit}" if lower + unit <= pool.ceiling.gpus else str(lower)
                    path = f"{kind}.{number}.{field}.{name}"
                    yield SettingsProblem(path, str(chips), problem, f"allowed: {near}", "part-of-a-tpu-host")


CHECKS = (
    tpus_are_in_pools_of_our_own,
    slices_are_for_jobs_alone,
    whole_hosts_are_given_away,
)
