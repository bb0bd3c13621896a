"""All checks of whether settings agree with each other and with the catalog, in the order of the settings."""

from __future__ import annotations

from inspect import isgeneratorfunction, signature
from typing import TYPE_CHECKING

from flexspot.capacity.plan.checks import (
    classes,
    existing_parts,
    gke_accelerators,
    managed_nodes,
    places,
    pool_options,
    shares,
    system_nodes,
    versions,
    zones,
)
from flexspot.capacity.settings.platform import EksSettings, GkeSettings
from flexspot.capacity.settings.pools import EksPool, GkePool

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
    managed_nodes,
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
"""All checks: every public generator function of these modules.

A check's parameters determine its calls: `resolved` for every platform; `settings` only for platforms of its type; `pool` for each pool;
`options` only for pools whose settings have its type.
"""

_TYPES = {
    "EksSettings": EksSettings,
    "GkeSettings": GkeSettings,
    "GkeSettings | EksSettings": (GkeSettings, EksSettings),
    "EksPool": EksPool,
    "GkePool": GkePool,
}
"""Types that `settings` and `options` may have, by annotation."""


def disagreements(resolved: ResolvedSettings) -> list[SettingsProblem]:
    """Return all problems, and (with `refused` false) warnings about settings that probably do not mean what they say."""
    return [problem for check in CHECKS for problem in problems_of(check, resolved)]


def problems_of(check: Check, resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Yield the problems that one check finds, called with the arguments that its parameters name."""
    wanted = signature(check).parameters
    given: dict[str, object] = {"resolved": resolved, "settings": resolved.settings}
    for pool in resolved.pools.values() if "pool" in wanted else (None,):
        given |= {"pool": pool, "options": pool and pool.settings}
        if all(isinstance(given[name], _TYPES[wanted[name].annotation]) for name in ("settings", "options") if name in wanted):
            yield from check(**{name: given[name] for name in wanted})
