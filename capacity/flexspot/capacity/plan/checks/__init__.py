"""All alignment checks, in the order of the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexspot.capacity.plan.checks import (
    access,
    auto_mode,
    autopilot,
    classes,
    existing_parts,
    gke_accelerators,
    places,
    pool_options,
    shares,
    storage,
    system_nodes,
    upgrades,
    versions,
    zones,
)

if TYPE_CHECKING:
    from flexspot.capacity.plan.resolve import ResolvedSettings
    from flexspot.capacity.values.errors import SettingsProblem

_CHECKS = (
    *zones.CHECKS,
    *places.CHECKS,
    *storage.CHECKS,
    *system_nodes.CHECKS,
    *versions.CHECKS,
    *existing_parts.CHECKS,
    *upgrades.CHECKS,
    *autopilot.CHECKS,
    *auto_mode.CHECKS,
    *pool_options.CHECKS,
    *gke_accelerators.CHECKS,
    *classes.CHECKS,
    *shares.CHECKS,
    *access.CHECKS,
)


def disagreements(resolved: ResolvedSettings) -> list[SettingsProblem]:
    """Everything that does not agree: what is refused, and (with `refused` false) what is probably not meant."""
    return [problem for check in _CHECKS for problem in check(resolved)]
