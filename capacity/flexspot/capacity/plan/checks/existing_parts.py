"""What somebody else made or runs: where their Karpenter and GPU operator can be, and which settings nothing reads then."""

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
    """A cluster that is made here has no Karpenter but ours, and feature gates are those of whose Karpenter it is."""
    # Auto Mode refuses the setting itself.
    if resolved.auto_mode or (theirs := settings.cluster.existing_karpenter) is None:
        return
    if settings.cluster.existing is None:
        problem = "is the Karpenter of an existing cluster, but the stack creates its cluster"
        remedy = "name the cluster in cluster.existing, or leave it out"
        yield SettingsProblem(_KARPENTER, theirs.deployment, problem, remedy, "existing-karpenter-of-no-cluster")
    if not settings.cluster.node_repair:
        problem = "is a feature gate of Karpenter, which is its owner's to set"
        yield SettingsProblem("cluster.node_repair", "false", problem, "leave it out", "setting-of-existing-part")


def a_gpu_operator_is_where_it_works(resolved: ResolvedSettings, settings: EksSettings) -> Iterator[SettingsProblem]:
    """Two device plugins of one kind on a node take its GPUs from each other."""
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
class Theirs:
    """Something that somebody else has made: the setting that says so, and the settings that nothing then reads.

    Those in `refused` a person would count on: something is to be protected, or a controller to be set, and is not. Of the others a
    person is warned.
    """

    setting: str
    model: type[PlatformSettings]
    what: str
    warned: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


_EXISTING, _VPC, _NETWORK, _KUEUE = "cluster.existing", "network.existing_vpc", "network.existing_network", "queueing.existing_kueue"
_PROTECTION = "cluster.deletion_protection"

_OF_A_VPC = tuple(
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
_OF_A_NETWORK = tuple(f"network.{name}" for name in ("nodes_cidr", "pods_cidr", "services_cidr"))

TABLE = (
    Theirs(
        _EXISTING,
        EksSettings,
        "the cluster",
        (
            *_OF_A_VPC,
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
    Theirs(
        _EXISTING,
        GkeSettings,
        "the cluster",
        (
            *_OF_A_NETWORK,
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
    Theirs(_VPC, EksSettings, "the VPC", _OF_A_VPC),
    Theirs(_NETWORK, GkeSettings, "the network", _OF_A_NETWORK),
    Theirs("cluster.existing_karpenter", EksSettings, "Karpenter", refused=("controllers.karpenter",)),
    Theirs(
        "cluster.existing_gpu_operator",
        EksSettings,
        "the GPU operator",
        refused=("controllers.nvidia_device_plugin", "controllers.dcgm_exporter"),
    ),
    Theirs(_KUEUE, EksSettings, "Kueue", ("controllers.kueue",)),
    Theirs(_KUEUE, GkeSettings, "Kueue", ("controllers.kueue",)),
)
"""The one home of which settings belong to what. Tests hold it to what the programs do: on a cluster that is there already every edit
that changes nothing is told, and what is told changes nothing.
"""


def what_nothing_reads_is_told(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Each setting that somebody has written without effect, once. Auto Mode refuses a cluster of somebody else's itself."""
    settings, told = resolved.settings, set[str]()
    for each in TABLE:
        if not isinstance(settings, each.model) or not _value(settings, each.setting):
            continue
        if resolved.auto_mode and each.setting.startswith("cluster."):
            continue
        for path in (*each.refused, *each.warned):
            if path not in told and _written(settings, path):
                told.add(path)
                yield _unread(settings, each, path)


def _unread(settings: PlatformSettings, theirs: Theirs, path: str) -> SettingsProblem:
    value = _value(settings, path)
    written = value.model_dump(mode="json", exclude_unset=True) if isinstance(value, Record) else _plain(value)
    problem = f"is a setting of {theirs.what}, which is not the stack's ({theirs.setting}): nothing reads it"
    remedy = f"leave it out and have its owner set it, or remove {theirs.setting}"
    # Without protection nothing less is there than was asked for.
    refused = path in theirs.refused and value is not False
    return SettingsProblem(path, shown(written), problem, remedy, "setting-of-existing-part", refused=refused)


def _plain(value: object) -> object:
    """As the file has it: a list for a tuple, the word of a choice."""
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, (bool, int, dict)) else str(value)


def _value(settings: object, path: str) -> object:
    for step in path.split("."):
        settings = getattr(settings, step)
    return settings


def _written(settings: Record, path: str) -> bool:
    """Whether it stands in the file, even with its default."""
    value: object = settings
    for step in path.split("."):
        if not isinstance(value, Record) or step not in value.model_fields_set:
            return False
        value = getattr(value, step)
    return value is not None


def file_systems_have_subnets(settings: EksSettings) -> Iterator[SettingsProblem]:
    """A file system is reached in subnets, and those of a cluster that is there already are known to its owner alone."""
    if settings.cluster.existing is not None and not settings.network.existing_private_subnets:
        for purpose, kind in settings.storage.file_systems.items():
            needed = "a mount target in each zone" if kind is StorageKind.EFS else "a subnet"
            problem = f"needs {needed}, but the subnets of an existing cluster are not known"
            remedy = "name its VPC in network.existing_vpc and the nodes' subnets in network.existing_private_subnets"
            yield SettingsProblem(f"storage.{purpose}", repr(kind.value), problem, remedy, f"{kind.value}-without-subnets")


def file_systems_have_room_for_all_teams(settings: EksSettings) -> Iterator[SettingsProblem]:
    """The policy of a file system names the access point of every team."""
    if settings.storage.has_efs and (teams := len(settings.teams)) > EFS_TEAMS:
        for purpose in settings.storage.in_efs:
            problem = f"supports up to {EFS_TEAMS} teams, as its policy names each team's access point, but there are {teams}"
            remedy = "use s3, or split the teams over two platforms"
            yield SettingsProblem(f"storage.{purpose}", repr(StorageKind.EFS.value), problem, remedy, "efs-teams")


def days_are_those_of_buckets(settings: EksSettings) -> Iterator[SettingsProblem]:
    """EFS deletes nothing: who writes days expects that what is older goes."""
    if settings.storage.checkpoints is not StorageKind.EFS:
        return
    if "checkpoint_days" in settings.storage.model_fields_set:
        problem = "deletes checkpoints only in the bucket, but workloads write theirs to EFS, which keeps files until somebody deletes them"
        remedy = "have the workloads delete their older checkpoints, and leave this out if nothing writes to the bucket"
        days = str(settings.storage.checkpoint_days)
        yield SettingsProblem("storage.checkpoint_days", days, problem, remedy, "checkpoints-kept-in-efs", refused=False)


def file_systems_are_used(settings: EksSettings) -> Iterator[SettingsProblem]:
    """Refuse settings of a file system that the stack does not have."""
    for kind, where in ((StorageKind.EFS, "storage.checkpoints or storage.datasets"), (StorageKind.LUSTRE, "storage.datasets")):
        if kind in settings.storage.model_fields_set and kind not in settings.storage.file_systems.values():
            problem, remedy = "configures a file system, but there is none", f"set {where} to {kind}, or leave this out"
            yield SettingsProblem(f"storage.{kind}", "set", problem, remedy, f"{kind}-not-used", refused=False)


def lustre_is_in_a_zone_of_the_nodes(settings: EksSettings) -> Iterator[SettingsProblem]:
    """It is in the private subnet of its zone."""
    if (zone := settings.storage.lustre.zone) is not None and zone not in settings.zones:
        problem = "is not one of the platform's zones, and only those have a subnet"
        yield SettingsProblem("storage.lustre.zone", repr(zone), problem, f"use one of {', '.join(settings.zones)}", "lustre-zone")


def lustre_takes_the_key(settings: EksSettings) -> Iterator[SettingsProblem]:
    """Who names a key expects that all is encrypted with it."""
    if not settings.storage.has_lustre or settings.storage.encryption_key is None:
        return
    if settings.storage.lustre.deployment is LustreDeployment.SCRATCH_2:
        problem = "is encrypted with keys of FSx, which accepts storage.encryption_key only for PERSISTENT_2"
        yield SettingsProblem("storage.lustre.deployment", "SCRATCH_2", problem, "use PERSISTENT_2", "lustre-without-the-key")
