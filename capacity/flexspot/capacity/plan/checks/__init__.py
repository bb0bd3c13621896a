"""All alignment checks, in the order of the settings."""

from __future__ import annotations

from inspect import isgeneratorfunction, signature
from typing import TYPE_CHECKING

from flexspot.capacity.plan.checks import (
    auto_mode,
    autopilot,
    classes,
    existing_parts,
    gke_accelerators,
    places,
    pool_options,
    shares,
    system_nodes,
    versions,
    zones,
)
from flexspot.capacity.settings.platform import EksSettings, GkeSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flexspot.capacity.plan.resolve import ResolvedSettings
    from flexspot.capacity.values.errors import SettingsProblem

    Check = Callable[..., Iterator[SettingsProblem]]

_MODULES = (
    zones,
    places,
    system_nodes,
    versions,
    existing_parts,
    autopilot,
    auto_mode,
    pool_options,
    gke_accelerators,
    classes,
    shares,
)

CHECKS: list[Check] = [
    each
    for module in _MODULES
    for name, each in vars(module).items()
    if isgeneratorfunction(each) and each.__module__ == module.__name__ and not name.startswith("_")
]
"""Every public generator of these modules is a check.

Its parameters say for what it is called: `resolved`; `settings`, for the platforms of its type alone; `pool`, for each one.
"""

_PLATFORMS = {"EksSettings": EksSettings, "GkeSettings": GkeSettings, "GkeSettings | EksSettings": (GkeSettings, EksSettings)}
"""By the types that `settings` may have."""


def disagreements(resolved: ResolvedSettings) -> list[SettingsProblem]:
    """Everything that does not agree: what is refused, and (with `refused` false) what is probably not meant."""
    return [problem for check in CHECKS for problem in problems_of(check, resolved)]


def problems_of(check: Check, resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """What one check finds, called as its parameters say."""
    wanted = signature(check).parameters
    if "settings" in wanted and not isinstance(resolved.settings, _PLATFORMS[wanted["settings"].annotation]):
        return
    given = {"resolved": resolved, "settings": resolved.settings}
    for pool in resolved.pools.values() if "pool" in wanted else (None,):
        yield from check(**{name: {**given, "pool": pool}[name] for name in wanted})
