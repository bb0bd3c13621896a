"""Regions and zones: the machines that they have, and buckets and work queues against where the nodes are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.catalog.machines import Cloud
from capacity.settings.platform import GkeSettings
from capacity.settings.storage import LEASE_MARGIN_SECONDS
from capacity.values.errors import SettingsProblem, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.plan.resolved_settings import ResolvedPool, ResolvedSettings


def zones_are_in_the_region(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Every zone of the platform is one of its region, once, and every zone of a pool one of the platform's."""
    separator = "-" if resolved.words.catalog is Cloud.GCP else ""
    for number, zone in enumerate(resolved.zones):
        if zone[:-1] != f"{resolved.region}{separator}" or not zone[-1:].isalpha():
            example = f"a zone of it is called {resolved.region}{separator}a"
            yield SettingsProblem(f"zones.{number}", repr(zone), f"is not in region {resolved.region}", example, "zone-outside-region")
        elif zone in resolved.zones[:number]:
            yield SettingsProblem(f"zones.{number}", repr(zone), "stands twice", "zones are unique", "duplicate-name")
    for pool in resolved.pools.values():
        for number, zone in enumerate(pool.settings.zones):
            path = f"{pool.path}.zones.{number}"
            if zone in pool.settings.zones[:number]:
                yield SettingsProblem(path, repr(zone), "stands twice", "leave one of them out", "duplicate-name")
            elif resolved.zones and zone not in resolved.zones:
                yield SettingsProblem(
                    path, repr(zone), "is not a zone of the platform", nearest(zone, resolved.zones), "zone-outside-region"
                )


def the_region_has_the_machine(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """A machine that is nowhere offered in the region or the pool's zones would never come, and no error would say why."""
    for pool in resolved.pools.values():
        for machine in pool.machines:
            if not machine.zones:
                remedy = "check with the cloud that the region has it"
                problem = f"where {machine.name} is offered is not known"
                yield SettingsProblem(f"{pool.path}.machine", "", problem, remedy, "region-not-known", refused=False)
                continue
            offered = machine.zones.get(resolved.region)
            if offered is None:
                regions = f"regions that have it: {', '.join(sorted(machine.zones))}"
                problem = f"is not offered in region {resolved.region}"
                yield SettingsProblem(f"{pool.path}.machine", repr(machine.name), problem, regions, "region-without-machine")
            elif (wanted := _zones(resolved, pool)) and not set(wanted) & set(offered):
                problem = f"is not offered in {', '.join(sorted(wanted))}"
                zones = f"zones of {resolved.region} that have it: {', '.join(offered)}"
                yield SettingsProblem(f"{pool.path}.machine", repr(machine.name), problem, zones, "zone-without-machine")


def each_zone_of_a_pool_has_its_machine(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """A node pool over a zone without the machine cannot be made."""
    for pool in resolved.pools.values():
        if any(not machine.zones for machine in pool.machines):
            continue
        offered = {zone for machine in pool.machines for zone in machine.zones.get(resolved.region, ())}
        for number, zone in enumerate(pool.settings.zones):
            # Where no zone has it, that is told as such.
            if offered & set(pool.settings.zones) and zone not in offered and (not resolved.zones or zone in resolved.zones):
                problem = f"does not offer {pool.machines[0].name}"
                path = f"{pool.path}.zones.{number}"
                yield SettingsProblem(path, repr(zone), problem, f"allowed: {', '.join(sorted(offered))}", "zone-without-machine")


def _zones(resolved: ResolvedSettings, pool: ResolvedPool) -> tuple[str, ...]:
    """The zones of a pool; none if it names one that the platform does not have, which another check reports."""
    if resolved.zones and not set(pool.settings.zones) <= set(resolved.zones):
        return ()
    return pool.settings.zones or resolved.zones


def the_system_machine_exists(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Controllers run on machines of the catalog, and not on GPUs."""
    cluster = getattr(resolved.settings, "cluster", None)
    if cluster is None or cluster.existing or resolved.autopilot:
        return
    name: str = cluster.system_pool.machine
    machine = resolved.machines.get(name)
    plain = [each.name for each in resolved.machines.values() if each.gpu is None]
    path = "cluster.system_pool.machine"
    if machine is None:
        yield SettingsProblem(path, repr(name), "is not a machine of the catalog", nearest(name, plain), "unknown-machine")
    elif machine.gpu is not None:
        yield SettingsProblem(path, repr(name), "has GPUs, which controllers do not use", nearest(name, plain), "system-pool-with-gpu")


def buckets_are_in_the_region(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Checkpoints over a region's border cost egress at every write, and time that a Spot node does not have."""
    location = getattr(getattr(resolved.settings, "storage", None), "location", None)
    if location is not None and location.lower() != resolved.region:
        problem = f"is not the cluster's region {resolved.region}"
        yield SettingsProblem("storage.location", repr(location), problem, f"allowed: {resolved.region}", "bucket-outside-region")


def keys_are_in_the_region(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """A key encrypts what is in its own region: Cloud KMS and AWS KMS refuse another."""
    key: str | None = getattr(getattr(resolved.settings, "storage", None), "encryption_key", None)
    if key is not None:
        place = key.split(":")[3] if key.startswith("arn:") else key.split("/")[3]
        if place != resolved.region:
            problem = f"is a key of {place}, and the buckets are in {resolved.region}"
            yield SettingsProblem("storage.encryption_key", repr(key), problem, f"use a key of {resolved.region}", "key-outside-region")


def leases_are_longer_than_the_grace(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """An item whose lease ends while an interrupted worker still writes is handed out a second time."""
    least = max((each.grace_seconds for each in resolved.classes.values()), default=0) + LEASE_MARGIN_SECONDS
    for number, team in enumerate(resolved.settings.teams):
        if team.work_queue is not None and team.work_queue.lease_seconds < least:
            path = f"teams.{number}.work_queue.lease_seconds"
            problem = f"does not outlast the longest grace of a class by {LEASE_MARGIN_SECONDS} seconds"
            remedy = f"allowed: {least} to 600"
            yield SettingsProblem(path, str(team.work_queue.lease_seconds), problem, remedy, "lease-within-grace")


def names_are_not_googles_own(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Buckets and work queues are called after project and environment, and Google keeps names with its own in them.

    https://docs.cloud.google.com/storage/docs/buckets#naming, https://docs.cloud.google.com/pubsub/docs/pubsub-basics#resource_names
    """
    settings = resolved.settings
    if not isinstance(settings, GkeSettings):
        return
    has_queues = any(team.work_queue is not None for team in settings.teams)
    for path, name, begins in (("project", settings.project, True), ("environment", settings.environment, has_queues)):
        if "google" in name or (begins and name.startswith("goog")):
            problem = (
                "becomes part of the names of buckets and work queues, and Google refuses those with google in them or goog at their start"
            )
            yield SettingsProblem(path, repr(name), problem, "choose a name without it", "name-with-google")


CHECKS = (
    zones_are_in_the_region,
    the_region_has_the_machine,
    each_zone_of_a_pool_has_its_machine,
    the_system_machine_exists,
    buckets_are_in_the_region,
    keys_are_in_the_region,
    leases_are_longer_than_the_grace,
    names_are_not_googles_own,
)
