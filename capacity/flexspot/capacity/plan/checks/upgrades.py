"""Whether GKE's own upgrades leave the stack's runs their time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.settings.maintenance import WITHOUT_UPGRADES, WITHOUT_UPGRADES_DAYS, ExclusionScope
from flexspot.capacity.settings.platform import GkeSettings
from flexspot.capacity.settings.pools import GkePool
from flexspot.capacity.values.errors import SettingsProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.capacity.plan.resolve import ResolvedSettings


def upgrades_leave_runs_their_time(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """A run that is longer than the time between two windows meets one, and GKE may replace its nodes then.

    Spot nodes go at any time anyway, and those of DWS are not upgraded.
    """
    settings = resolved.settings
    if not isinstance(settings, GkeSettings) or resolved.autopilot or settings.cluster.existing is not None:
        return
    maintenance = settings.cluster.maintenance
    between = maintenance.hours_between_windows
    longest = [name for name, each in resolved.classes.items() if each.queued and (each.run_limit_hours or between + 1) > between]
    for pool in resolved.pools.values():
        upgraded = pool.settings.capacity_type in {CapacityType.ON_DEMAND, CapacityType.RESERVED} and not maintenance.holds_nodes
        met = sorted(set(pool.settings.serves) & set(longest))
        if upgraded and met and isinstance(pool.settings, GkePool) and not pool.settings.hold_upgrades:
            problem = f"a window opens every {between} hours, but runs of {', '.join(met)} on {pool.name} are longer: an upgrade stops them"
            remedy = "open it on fewer days, set hold_upgrades on the pool, or give the class a shorter run_limit_hours"
            written = ", ".join(maintenance.days) or "every day"
            yield SettingsProblem("cluster.maintenance", written, problem, remedy, "upgrade-within-a-run", refused=False)


def exclusions_are_short_enough(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Said and not refused: GKE may have raised its bounds since they were read."""
    settings = resolved.settings
    if not isinstance(settings, GkeSettings) or settings.cluster.existing is not None:
        return
    whole = [(at, each) for at, each in enumerate(settings.cluster.maintenance.exclusions) if each.scope is ExclusionScope.NO_UPGRADES]
    for at, each in whole:
        if each.days is not None and each.days > WITHOUT_UPGRADES_DAYS:
            problem = f"is {each.days} days long; GKE's documentation allows {WITHOUT_UPGRADES_DAYS} days without any upgrade"
            remedy = f"use {ExclusionScope.NO_MINOR_OR_NODE_UPGRADES}, which replaces no nodes either"
            yield SettingsProblem(f"cluster.maintenance.exclusions.{at}", each.name, problem, remedy, "exclusion-too-long", refused=False)
    if len(whole) > WITHOUT_UPGRADES:
        problem = f"has {len(whole)} exclusions of all upgrades; GKE's documentation allows {WITHOUT_UPGRADES}"
        names = ", ".join(each.name for _, each in whole)
        remedy = f"use {ExclusionScope.NO_MINOR_OR_NODE_UPGRADES} for the others"
        yield SettingsProblem("cluster.maintenance.exclusions", names, problem, remedy, "exclusion-too-long", refused=False)


CHECKS = (upgrades_leave_runs_their_time, exclusions_are_short_enough)
