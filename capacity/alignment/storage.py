"""Buckets and work queues against where the nodes are and how long their work may take to end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.settings.platform import GkeSettings
from capacity.settings.problems import SettingsProblem
from capacity.settings.storage import LEASE_MARGIN_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.planning.ground import Ground


def buckets_are_in_the_region(ground: Ground) -> Iterator[SettingsProblem]:
    """Checkpoints over a region's border cost egress at every write, and time that a Spot node does not have."""
    location = getattr(getattr(ground.settings, "storage", None), "location", None)
    if location is not None and location.lower() != ground.region:
        problem = f"is not the cluster's region {ground.region}"
        yield SettingsProblem("storage.location", repr(location), problem, f"allowed: {ground.region}", "bucket-outside-region")


def keys_are_in_the_region(ground: Ground) -> Iterator[SettingsProblem]:
    """A key encrypts what is in its own region: Cloud KMS and AWS KMS refuse another."""
    key: str | None = getattr(getattr(ground.settings, "storage", None), "encryption_key", None)
    if key is not None:
        place = key.split(":")[3] if key.startswith("arn:") else key.split("/")[3]
        if place != ground.region:
            problem = f"is a key of {place}, and the buckets are in {ground.region}"
            yield SettingsProblem("storage.encryption_key", repr(key), problem, f"use a key of {ground.region}", "key-outside-region")


def leases_are_longer_than_the_grace(ground: Ground) -> Iterator[SettingsProblem]:
    """An item whose lease ends while an interrupted worker still writes is handed out a second time."""
    least = max((each.grace_seconds for each in ground.classes.values()), default=0) + LEASE_MARGIN_SECONDS
    for number, team in enumerate(ground.settings.teams):
        if team.work_queue is not None and team.work_queue.lease_seconds < least:
            path = f"teams.{number}.work_queue.lease_seconds"
            problem = f"does not outlast the longest grace of a class by {LEASE_MARGIN_SECONDS} seconds"
            remedy = f"allowed: {least} to 600"
            yield SettingsProblem(path, str(team.work_queue.lease_seconds), problem, remedy, "lease-within-grace")


def names_are_not_googles_own(ground: Ground) -> Iterator[SettingsProblem]:
    """Buckets and work queues are called after project and environment, and Google keeps names with its own in them.

    https://docs.cloud.google.com/storage/docs/buckets#naming, https://docs.cloud.google.com/pubsub/docs/pubsub-basics#resource_names
    """
    settings = ground.settings
    if not isinstance(settings, GkeSettings):
        return
    has_queues = any(team.work_queue is not None for team in settings.teams)
    for path, name, begins in (("project", settings.project, True), ("environment", settings.environment, has_queues)):
        if "google" in name or (begins and name.startswith("goog")):
            problem = (
                "becomes part of the names of buckets and work queues, and Google refuses those with google in them or goog at their start"
            )
            yield SettingsProblem(path, repr(name), problem, "choose a name without it", "name-with-google")


CHECKS = (buckets_are_in_the_region, keys_are_in_the_region, leases_are_longer_than_the_grace, names_are_not_googles_own)
