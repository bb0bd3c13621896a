"""File systems of EFS and Lustre: whether nodes can reach them, and what is said of them that does nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexspot.capacity.settings.platform import EksSettings
from flexspot.capacity.settings.storage import EFS_TEAMS, LustreDeployment, StorageKind
from flexspot.capacity.values.errors import SettingsProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.capacity.plan.resolve import ResolvedSettings


def file_systems_have_subnets(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """A file system is reached in subnets, and those of a cluster that is there already are known to its owner alone."""
    settings = resolved.settings
    if isinstance(settings, EksSettings) and settings.cluster.existing is not None and not settings.network.existing_private_subnets:
        for purpose, kind in settings.storage.file_systems.items():
            needed = "a mount target in each zone" if kind is StorageKind.EFS else "a subnet"
            problem = f"needs {needed}, but the subnets of an existing cluster are not known"
            remedy = "name its VPC in network.existing_vpc and the nodes' subnets in network.existing_private_subnets"
            yield SettingsProblem(f"storage.{purpose}", repr(kind.value), problem, remedy, f"{kind.value}-without-subnets")


def file_systems_have_room_for_all_teams(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """The policy of a file system names the access point of every team."""
    settings = resolved.settings
    if isinstance(settings, EksSettings) and settings.storage.has_efs and (teams := len(settings.teams)) > EFS_TEAMS:
        for purpose in settings.storage.in_efs:
            problem = f"supports up to {EFS_TEAMS} teams, as its policy names each team's access point, but there are {teams}"
            remedy = "use s3, or split the teams over two platforms"
            yield SettingsProblem(f"storage.{purpose}", repr(StorageKind.EFS.value), problem, remedy, "efs-teams")


def days_are_those_of_buckets(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """EFS deletes nothing: who writes days expects that what is older goes."""
    settings = resolved.settings
    if not isinstance(settings, EksSettings) or settings.storage.checkpoints is not StorageKind.EFS:
        return
    if "checkpoint_days" in settings.storage.model_fields_set:
        problem = "deletes checkpoints only in the bucket, but workloads write theirs to EFS, which keeps files until somebody deletes them"
        remedy = "have the workloads delete their older checkpoints, and leave this out if nothing writes to the bucket"
        days = str(settings.storage.checkpoint_days)
        yield SettingsProblem("storage.checkpoint_days", days, problem, remedy, "checkpoints-kept-in-efs", refused=False)


def file_systems_are_used(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """What is said of a file system that is not there does nothing."""
    settings = resolved.settings
    if not isinstance(settings, EksSettings):
        return
    for kind, where in ((StorageKind.EFS, "storage.checkpoints or storage.datasets"), (StorageKind.LUSTRE, "storage.datasets")):
        if kind in settings.storage.model_fields_set and kind not in settings.storage.file_systems.values():
            problem, remedy = "configures a file system, but there is none", f"set {where} to {kind}, or leave this out"
            yield SettingsProblem(f"storage.{kind}", "set", problem, remedy, f"{kind}-not-used", refused=False)


def lustre_is_in_a_zone_of_the_nodes(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """It is in the private subnet of its zone."""
    settings = resolved.settings
    if isinstance(settings, EksSettings) and (zone := settings.storage.lustre.zone) is not None and zone not in settings.zones:
        problem = "is not one of the platform's zones, and only those have a subnet"
        yield SettingsProblem("storage.lustre.zone", repr(zone), problem, f"use one of {', '.join(settings.zones)}", "lustre-zone")


def lustre_takes_the_key(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Who names a key expects that all is encrypted with it."""
    settings = resolved.settings
    if not isinstance(settings, EksSettings) or not settings.storage.has_lustre or settings.storage.encryption_key is None:
        return
    if settings.storage.lustre.deployment is LustreDeployment.SCRATCH_2:
        problem = "is encrypted with keys of FSx, which accepts storage.encryption_key only for PERSISTENT_2"
        yield SettingsProblem("storage.lustre.deployment", "SCRATCH_2", problem, "use PERSISTENT_2", "lustre-without-the-key")


CHECKS = (
    file_systems_have_subnets,
    file_systems_have_room_for_all_teams,
    days_are_those_of_buckets,
    file_systems_are_used,
    lustre_is_in_a_zone_of_the_nodes,
    lustre_takes_the_key,
)
