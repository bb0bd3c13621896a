"""Checks of regions and zones: names, machines in them, and zones of control planes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexspot.capacity.catalog.machines import ZONE_SEPARATORS, ZONES_WITHOUT_EKS, Vendor, is_zone_id, zone_id_prefix, zone_in_region
from flexspot.capacity.settings.network import EKS_ZONES
from flexspot.capacity.settings.platform import EksSettings, GkeSettings, ZoneMachines
from flexspot.capacity.values.errors import SettingsProblem, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flexspot.capacity.plan.resolve import ResolvedPool, ResolvedSettings
    from flexspot.capacity.settings.machines import DescribedMachine


def zones_are_two_to_six(settings: EksSettings) -> Iterator[SettingsProblem]:
    """Refuse fewer than two or more than six zones on EKS. Its control plane needs two, and no region has more than six."""
    if len(settings.zones) not in EKS_ZONES:
        problem = f"EKS needs at least {EKS_ZONES[0]} zones" if len(settings.zones) < EKS_ZONES[0] else "no AWS region has so many zones"
        rule = "too-few-zones" if len(settings.zones) < EKS_ZONES[0] else "too-many-zones"
        yield SettingsProblem("zones", ", ".join(settings.zones), problem, f"name {EKS_ZONES[0]} to {EKS_ZONES[-1]}", rule)


def zones_are_in_the_region(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse zones outside the region, duplicates, zones of pools that the platform does not have, and mixtures of names and ids."""
    control_plane = resolved.settings.network.control_plane_zones if isinstance(resolved.settings, EksSettings) else ()
    named, ids = [[zone for zone in resolved.zones if _is_id(resolved, zone) is by_id] for by_id in (False, True)]
    if named and ids:
        problem = "mixes zone names and zone ids, which cannot be compared"
        yield SettingsProblem("zones", ", ".join(resolved.zones), problem, "use only names or only ids", "zone-names-and-ids")
        return
    if any(_is_id(resolved, zone) is not bool(ids) for zone in control_plane):
        problem = f"must use zone {'ids' if ids else 'names'} as `zones` does, because names and ids cannot be compared"
        yield SettingsProblem(_CONTROL_PLANE_ZONES, ", ".join(control_plane), problem, "write both the same way", "zone-names-and-ids")
        return
    yield from _listed_zones(resolved, "zones", resolved.zones)
    yield from _listed_zones(resolved, _CONTROL_PLANE_ZONES, control_plane)
    for number, machine in enumerate(_described(resolved)):
        path = f"machines.{number}.zones"
        if any(_is_id(resolved, zone) is not bool(ids) for zone in machine.zones):
            problem = f"must use zone {'ids' if ids else 'names'} as `zones` does, because names and ids cannot be compared"
            yield SettingsProblem(path, ", ".join(machine.zones), problem, "write both the same way", "zone-names-and-ids")
        else:
            yield from _listed_zones(resolved, path, machine.zones)
    yield from _zones_of_pools(resolved)


_CLUSTER_ZONE = "cluster.zone"


def zonal_clusters_exist_already(resolved: ResolvedSettings, settings: GkeSettings) -> Iterator[SettingsProblem]:
    """Refuse a zone of the cluster unless it is an existing zonal one. New clusters are regional, and so are all Autopilot clusters.

    docs.cloud.google.com/kubernetes-engine/docs/concepts/regional-clusters says so of Autopilot; read 2026-11-25.
    """
    if (zone := settings.cluster.zone) is None:
        return
    if settings.cluster.existing is None:
        problem = "is for an existing cluster, but a new cluster is regional"
        remedy = "leave it out, or name the cluster in cluster.existing"
        yield SettingsProblem(_CLUSTER_ZONE, repr(zone), problem, remedy, "zone-of-a-cluster-that-is-made")
    elif resolved.autopilot:
        problem, remedy = "is for a zonal cluster, but all Autopilot clusters are regional", "leave it out, or set mode: standard"
        yield SettingsProblem(_CLUSTER_ZONE, repr(zone), problem, remedy, "autopilot-in-a-zone")
    else:
        yield from _outside(resolved, _CLUSTER_ZONE, zone)


def _described(resolved: ResolvedSettings) -> tuple[DescribedMachine, ...]:
    return resolved.settings.machines if isinstance(resolved.settings, EksSettings | GkeSettings) else ()


_CONTROL_PLANE_ZONES = "network.control_plane_zones"


def _is_id(resolved: ResolvedSettings, zone: str) -> bool:
    return resolved.words.catalog is Vendor.AWS and is_zone_id(zone)


def _listed_zones(resolved: ResolvedSettings, path: str, zones: tuple[str, ...]) -> Iterator[SettingsProblem]:
    for number, zone in enumerate(zones):
        yield from _outside(resolved, f"{path}.{number}", zone)
        if zone in zones[:number]:
            yield SettingsProblem(f"{path}.{number}", repr(zone), "is listed twice", "list each zone once", "duplicate-name")


def _outside(resolved: ResolvedSettings, path: str, zone: str) -> Iterator[SettingsProblem]:
    if not zone_in_region(resolved.words.catalog, resolved.region, zone):
        name = f"{resolved.region}{ZONE_SEPARATORS[resolved.words.catalog]}a"
        example = f"{zone_id_prefix(resolved.region)}1" if _is_id(resolved, zone) else name
        yield SettingsProblem(path, repr(zone), f"is not in region {resolved.region}", f"use one such as {example}", "zone-outside-region")


def _zones_of_pools(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    for pool in resolved.pools.values():
        for number, zone in enumerate(pool.settings.zones):
            path = f"{pool.path}.zones.{number}"
            if zone in pool.settings.zones[:number]:
                yield SettingsProblem(path, repr(zone), "is listed twice", "remove one of them", "duplicate-name")
            elif resolved.zones and zone not in resolved.zones:
                yield SettingsProblem(
                    path, repr(zone), "is not a zone of the platform", nearest(zone, resolved.zones), "zone-outside-region"
                )


def the_region_has_the_machine(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse machines that the region or the pool's zones do not offer. They would never start, and no error would say why."""
    if _unchecked(resolved):
        return
    for pool in resolved.pools.values():
        for machine in pool.machines:
            if not machine.zones:
                remedy = "check with the cloud that the region has it"
                problem = f"the catalog does not know where {machine.name} is offered"
                yield SettingsProblem(f"{pool.path}.machine", "", problem, remedy, "region-not-known", refused=False)
                continue
            offered = machine.offered_in(resolved.region)
            if not offered:
                regions = f"regions that have it: {', '.join(sorted(machine.zones))}"
                problem = f"is not offered in region {resolved.region}"
                yield SettingsProblem(f"{pool.path}.machine", repr(machine.name), problem, regions, "region-without-machine")
            elif (wanted := _zones(resolved, pool)) and not set(wanted) & set(offered):
                problem = f"is not offered in {', '.join(sorted(wanted))}"
                yield _zone_without_machine(resolved, f"{pool.path}.machine", repr(machine.name), problem, offered)


def each_zone_of_a_pool_has_its_machine(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse a pool's zone that does not offer its machine: the node pool could not be created."""
    if _unchecked(resolved):
        return
    for pool in resolved.pools.values():
        if any(not machine.zones for machine in pool.machines):
            continue
        offered = {zone for machine in pool.machines for zone in machine.offered_in(resolved.region)}
        for number, zone in enumerate(pool.settings.zones):
            # If no zone offers it, another check reports that.
            if offered & set(pool.settings.zones) and zone not in offered and (not resolved.zones or zone in resolved.zones):
                problem = f"does not offer {pool.machines[0].name}"
                yield _zone_without_machine(resolved, f"{pool.path}.zones.{number}", repr(zone), problem, offered)


def _unchecked(resolved: ResolvedSettings) -> bool:
    """Return whether the settings turn the check of zones off."""
    return getattr(resolved.settings, "zone_machines", None) is ZoneMachines.UNCHECKED


def _zone_without_machine(resolved: ResolvedSettings, path: str, written: str, problem: str, offered: Iterable[str]) -> SettingsProblem:
    """Return the problem of a zone without a machine. It is a warning if the zone's name may mean another zone in this account."""
    ids = any(is_zone_id(zone) for zone in resolved.zones)
    zones = ", ".join(sorted(zone for zone in offered if is_zone_id(zone) == ids))
    remedy = f"zones of {resolved.region} that have it: {zones}; set zone_machines: unchecked to skip this check"
    if not resolved.zones_are_known:
        has = ", ".join(sorted(zone for zone in offered if is_zone_id(zone)))
        remedy = f"the catalog has another account's zone names, and AWS maps them for each account; zone ids that have it: {has}"
    return SettingsProblem(path, written, problem, remedy, "zone-without-machine", refused=resolved.zones_are_known)


def control_planes_have_zones(settings: EksSettings) -> Iterator[SettingsProblem]:
    """Refuse control planes without two zones and a range in each, and zones that EKS does not accept for them."""
    if settings.cluster.existing is not None or settings.network.existing_vpc is not None:
        return
    named = settings.network.control_plane_zones
    if len(named) == 1:
        yield SettingsProblem(
            _CONTROL_PLANE_ZONES, named[0], "EKS needs control plane addresses in two zones", "name two or more", "too-few-zones"
        )
    elif len(settings.control_plane_cidrs) != len(settings.control_plane_zones):
        problem = f"has {len(settings.control_plane_cidrs)} ranges for {len(settings.control_plane_zones)} zones of the control plane"
        written = ", ".join(settings.control_plane_cidrs)
        remedy = f"name one for each of {', '.join(settings.control_plane_zones)}"
        yield SettingsProblem("network.control_plane_cidrs", written, problem, remedy, "range-too-small")
    for number, zone in enumerate(settings.control_plane_zones):
        # us-east-1e is that zone in accounts created since November 2025, and in most others.
        if zone in ZONES_WITHOUT_EKS or zone == "us-east-1e":
            problem = f"is {'' if is_zone_id(zone) else 'most often use1-az3, '}a zone in which EKS runs no control planes"
            remedy = "choose another zone" if named else "name others in network.control_plane_zones; nodes may be in this zone"
            path = f"{_CONTROL_PLANE_ZONES if named else 'zones'}.{number}"
            yield SettingsProblem(path, repr(zone), problem, remedy, "zone-without-eks", refused=is_zone_id(zone))


def _zones(resolved: ResolvedSettings, pool: ResolvedPool) -> tuple[str, ...]:
    """Return the zones of a pool, or none if it names an unknown zone, which another check reports."""
    if resolved.zones and not set(pool.settings.zones) <= set(resolved.zones):
        return ()
    return pool.settings.zones or resolved.zones
