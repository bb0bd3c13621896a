"""All alignment checks, in the order of the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.alignment import (
    autopilot,
    autopilot_pools,
    capacity_types,
    ceilings,
    classes,
    cluster,
    cohorts,
    eks_nodes,
    gke_nodes,
    measurement,
    names,
    network,
    shares,
    spending,
    storage,
    topology,
    zones,
)

if TYPE_CHECKING:
    from capacity.planning.ground import Ground
    from capacity.settings.problems import SettingsProblem

_CHECKS = (
    *names.CHECKS,
    *cluster.CHECKS,
    *autopilot.CHECKS,
    *zones.CHECKS,
    *network.CHECKS,
    *ceilings.CHECKS,
    *capacity_types.CHECKS,
    *gke_nodes.CHECKS,
    *autopilot_pools.CHECKS,
    *eks_nodes.CHECKS,
    *classes.CHECKS,
    *topology.CHECKS,
    *cohorts.CHECKS,
    *shares.CHECKS,
    *storage.CHECKS,
    *measurement.CHECKS,
    *spending.CHECKS,
)


def disagreements(ground: Ground) -> list[SettingsProblem]:
    """Everything that does not agree: what is refused, and (with `refused` false) what is probably not meant."""
    return [problem for check in _CHECKS for problem in check(ground)]
