"""Checks of existing parts, such as Karpenter or a GPU operator, of settings that have no effect on them, and of file systems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.accelerators import NVIDIA
from flexspot.capacity.catalog.data_files import Record
from flexspot.capacity.settings.platform import EksSettings, GkeSettings
from flexspot.capacity.settings.stack_file import shown
from flexspot.capacity.settings.storage import EFS_TEAMS, LustreDeployment, StorageKind
from flexspot.capacity.values.errors import SettingsProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.capacity.plan.resolve import ResolvedSettings
    from flexspot.capacity.settings.platform import PlatformSettings


_KARPENTER, _OPERATOR = "cluster.existing_karpenter", "cluster.existing_gpu_operator"


def another_karpenter_is_on_its_own_cluster(resolved: ResolvedSettings, settings: EksSettings) -> Iterator[SettingsProblem]:
    """Refuse an existing Karpenter on a new cluster, and settings that only the owner of an existing Karpenter can change."""
    # Another check refuses the setting in Auto Mode.
    if resolved.auto_mode or (theirs := settings.cluster.existing_karpenter) is None:
        return
    if settings.cluster.existing is None:
        problem = "belongs to an existing cluster, but the stack creates a new one"
        remedy = "name the cluster in cluster.existing, or leave it out"
        yield SettingsProblem(_KARPENTER, theirs.deployment, problem, remedy, "existing-karpenter-of-no-cluster")
    if not settings.cluster.node_repair:
        problem = "is a feature gate of Karpenter, and only the owner of an existing Karpenter can set it"
        yield SettingsProblem("cluster.node_repair", "false", problem, "leave it out", "setting-of-existing-part")


def a_gpu_operator_is_where_it_works(resolved: ResolvedSettings, settings: EksSettings) -> Iterator[SettingsProblem]:
    """Refuse a GPU operator next to Bottlerocket's device plugin, and warn if no pool needs the operator.

    Two device plugins of one kind on a node would compete for its GPUs.
    """
    if resolved.auto_mode or not settings.cluster.existing_gpu_operator:
        return
    if settings.cluster.image.startswith("bottlerocket@"):
        problem = "includes NVIDIA's device plugin, which would run next to the GPU operator's"
        remedy = f"use al2023, or leave out {_OPERATOR}"
        yield SettingsProblem("cluster.ami", repr(settings.cluster.ami), problem, remedy, "gpu-operator-on-bottlerocket")
    if resolved.pools and all(pool.gpu.accelerator is not NVIDIA for pool in resolved.pools.values()):
        problem = "is for NVIDIA GPUs, and no pool has one"
        yield SettingsProblem(_OPERATOR, "true", problem, "leave it out", "gpu-operator-not-used", refused=False)


@dataclass(frozen=True)
class ExistingPart:
    """A part that the stack does not create, and the settings that have no effect if it exists."""

    setting: str
    """The setting that names the part."""
    model: type[PlatformSettings]
    """Platforms to which the row applies."""
    what: str
    """The part, in words."""
    warned: tuple[str, ...] = ()
    """Settings without effect that cause a warning."""
    refused: tuple[str, ...] = ()
    """Settings without effect that are refused, because users would rely on them: protection, or settings of a controller."""


_EXISTING, _VPC, _NETWORK, _KUEUE = "cluster.existing", "network.existing_vpc", "network.existing_network", "queueing.existing_kueue"
_PROTECTION = "cluster.deletion_protection"

_VPC_SETTINGS = tuple(
    f"network.{name}"
    for name in (
        "vpc_cidr",
        "private_cidrs",
        "public_cidrs",
        "control_plane_zones",
        "control_plane_cidrs",
        "pods_per_node",
        "nat",
        "interface_endpoints",
    )
)
_NETWORK_SETTINGS = tuple(f"network.{name}" for name in ("nodes_cidr", "pods_cidr", "services_cidr"))

TABLE = (
    ExistingPart(
        _EXISTING,
        EksSettings,
        "the cluster",
        (
            *_VPC_SETTINGS,
            "network.services_cidr",
            "network.existing_control_plane_subnets",
            "network.runner_cidrs",
            "control_plane.access",
            "control_plane.cidrs",
            "cluster.name",
            "cluster.addon_versions",
            "cluster.support",
            "cluster.system_pool",
            "cluster.addons",
            "cluster.admin_roles",
            "cluster.log_days",
        ),
        (_PROTECTION, "cluster.logs_kms_key"),
    ),
    ExistingPart(
        _EXISTING,
        GkeSettings,
        "the cluster",
        (
            *_NETWORK_SETTINGS,
            "network.control_plane_cidr",
            "network.existing_network",
            "network.existing_subnetwork",
            "network.pods_range",
            "network.services_range",
            "network.runner_cidrs",
            "cluster.release_channel",
            "cluster.min_version",
            "cluster.system_pool",
            "cluster.maintenance",
            "cluster.gpu_auto_provisioning",
            "cluster.former_accelerators",
            "cluster.groups_domain",
        ),
        (_PROTECTION,),
    ),
    ExistingPart(_VPC, EksSettings, "the VPC", _VPC_SETTINGS),
    ExistingPart(_NETWORK, GkeSettings, "the network", _NETWORK_SETTINGS),
    ExistingPart("cluster.existing_karpenter", EksSettings, "Karpenter", refused=("controllers.karpenter",)),
    ExistingPart(
        "cluster.existing_gpu_operator",
        EksSettings,
        "the GPU operator",
        refused=("controllers.nvidia_device_plugin", "controllers.dcgm_exporter"),
    ),
    ExistingPart(_KUEUE, EksSettings, "Kueue", ("controllers.kueue",)),
    ExistingPart(_KUEUE, GkeSettings, "Kueue", ("controllers.kueue",)),
)
"""Settings that have no effect on each existing part.

Tests compare the table with the programs: on an existing cluster, every edit without effect is reported, and reported edits have no
effect.
"""


def settings_without_effect_are_reported(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Report each setting without effect once. Auto Mode refuses an existing cluster itself."""
    settings, reported = resolved.settings, set[str]()
    for each in TABLE:
        if not isinstance(settings, each.model) or not _value(settings, each.setting):
            continue
        if resolved.auto_mode and each.setting.startswith("cluster."):
            continue
        for path in (*each.refused, *each.warned):
            if path not in reported and _written(settings, path):
                reported.add(path)
                yield _without_effect(settings, each, path)


def _without_effect(settings: PlatformSettings, part: ExistingPart, path: str) -> SettingsProblem:
    value = _value(settings, path)
    written = value.model_dump(mode="json", exclude_unset=True) if isinstance(value, Record) else _plain(value)
    problem = f"has no effect: the stack does not create {part.what} ({part.setting})"
    remedy = f"leave it out and have the owner of {part.what} set it, or remove {part.setting}"
    # Turning a protection off has the requested result.
    refused = path in part.refused and value is not False
    return SettingsProblem(path, shown(written), problem, remedy, "setting-of-existing-part", refused=refused)


def _plain(value: object) -> object:
    """Return a value as in the stack file: a list for a tuple, and the text of an enum's member."""
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, (bool, int, dict)) else str(value)


def _value(settings: object, path: str) -> object:
    for step in path.split("."):
        settings = getattr(settings, step)
    return settings


def _written(settings: Record, path: str) -> bool:
    """Return whether the stack file sets the value, even to its default."""
    value: object = settings
    for step in path.split("."):
        if not isinstance(value, Record) or step not in value.model_fields_set:
            return False
        value = getattr(value, step)
    return value is not None


def file_systems_have_subnets(settings: EksSettings) -> Iterator[SettingsProblem]:
    """Refuse file systems without known subnets.

    They are reached in subnets, and only the owner of an existing cluster knows its subnets.
    """
    if settings.cluster.existing is not None and not settings.network.existing_private_subnets:
        for purpose, kind in settings.storage.file_systems.items():
            needed = "a mount target in each zone" if kind is StorageKind.EFS else "a subnet"
            problem = f"needs {needed}, but the subnets of an existing cluster are not known"
            remedy = "name its VPC in network.existing_vpc and the nodes' subnets in network.existing_private_subnets"
            yield SettingsProblem(f"storage.{purpose}", repr(kind.value), problem, remedy, f"{kind.value}-without-subnets")


def file_systems_have_room_for_all_teams(settings: EksSettings) -> Iterator[SettingsProblem]:
    """Refuse more teams than a file system's policy has room for. It names the access point of every team."""
    if settings.storage.has_efs and (teams := len(settings.teams)) > EFS_TEAMS:
        for purpose in settings.storage.in_efs:
            problem = f"supports up to {EFS_TEAMS} teams, as its policy names each team's access point, but there are {teams}"
            remedy = "use s3, or split the teams over two platforms"
            yield SettingsProblem(f"storage.{purpose}", repr(StorageKind.EFS.value), problem, remedy, "efs-teams")


def days_are_those_of_buckets(settings: EksSettings) -> Iterator[SettingsProblem]:
    """Warn about `checkpoint_days` with EFS, which deletes no files."""
    if settings.storage.checkpoints is not StorageKind.EFS:
        return
    if "checkpoint_days" in settings.storage.model_fields_set:
        problem = "deletes checkpoints only in the bucket, but workloads write theirs to EFS, which keeps files until they are deleted"
        remedy = "have the workloads delete their older checkpoints, and leave this out if nothing writes to the bucket"
        days = str(settings.storage.checkpoint_days)
        yield SettingsProblem("storage.checkpoint_days", days, problem, remedy, "checkpoints-kept-in-efs", refused=False)


def file_systems_are_used(settings: EksSettings) -> Iterator[SettingsProblem]:
    """Warn about settings of a file system that the stack does not have."""
    for kind, where in ((StorageKind.EFS, "storage.checkpoints or storage.datasets"), (StorageKind.LUSTRE, "storage.datasets")):
        if kind in settings.storage.model_fields_set and kind not in settings.storage.file_systems.values():
            problem, remedy = "configures a file system that the stack does not have", f"set {where} to {kind}, or leave this out"
            yield SettingsProblem(f"storage.{kind}", "set", problem, remedy, f"{kind}-not-used", refused=False)


def lustre_is_in_a_zone_of_the_nodes(settings: EksSettings) -> Iterator[SettingsProblem]:
    """Refuse a zone of the Lustre file system that is not one of the stack's: it needs the private subnet of its zone."""
    if (zone := settings.storage.lustre.zone) is not None and zone not in settings.zones:
        problem = "is not one of the platform's zones, and only those have a subnet"
        yield SettingsProblem("storage.lustre.zone", repr(zone), problem, f"use one of {', '.join(settings.zones)}", "lustre-zone")


def lustre_takes_the_key(settings: EksSettings) -> Iterator[SettingsProblem]:
    """Refuse a key with SCRATCH_2, which would not be encrypted with it."""
    if not settings.storage.has_lustre or settings.storage.encryption_key is None:
        return
    if settings.storage.lustre.deployment is LustreDeployment.SCRATCH_2:
        problem = "is encrypted with keys of FSx, which accepts storage.encryption_key only for PERSISTENT_2"
        yield SettingsProblem("storage.lustre.deployment", "SCRATCH_2", problem, "use PERSISTENT_2", "lustre-without-the-key")
