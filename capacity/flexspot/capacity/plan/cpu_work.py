"""Queues of work without GPUs, such as data preparation, launchers and reports. It runs on machines that belong to no GPU pool."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexspot.capacity.catalog.node_labels import KARPENTER_POOL_LABEL
from flexspot.capacity.catalog.platform import Platform
from flexspot.capacity.plan.model import CpuAmount, CpuQueuePlan, CpuWorkPlan
from flexspot.capacity.plan.queues import stop_of
from flexspot.capacity.settings.cluster import OtherWork
from flexspot.capacity.settings.platform import EksSettings, GkeSettings, LocalSettings

if TYPE_CHECKING:
    from flexspot.capacity.plan.model import FlavorPlan, QueuePlan
    from flexspot.capacity.plan.resolve import ResolvedSettings
    from flexspot.capacity.settings.platform import PlatformSettings
    from flexspot.capacity.settings.teams import TeamSettings

OTHER_WORK = "other-work"
"""Karpenter's NodePool, and its node class, for pods that request no GPU. Pools of the settings cannot have this name."""

CPU_QUEUE = "cpu"
"""The LocalQueue of a team's work without GPUs."""

_GIB = 1024

_KEPT_FROM_QUEUES = 4
"""One part in this many of the room is reserved for unqueued pods: services, dashboards and what people install."""

_LAUNCHERS = 4
"""One part in this many of a team's quota is for pods without GPUs of GPU jobs."""

_GIB_PER_VCPU = 8
"""Memory of the machines with the most memory that Karpenter may launch, EC2's family r."""


def room_of(settings: PlatformSettings) -> OtherWork:
    """Return the room for work without GPUs.

    On Autopilot and on an existing GKE cluster, this stack does not create the nodes. There the room only bounds the queues.
    """
    match settings:
        case GkeSettings() | EksSettings():
            return settings.cluster.other_work
        case LocalSettings():
            return settings.other_work
        case _:
            return OtherWork(max_vcpu=0, max_memory_gib=0)


def has_room(settings: PlatformSettings) -> bool:
    """Return whether there may be nodes without GPUs."""
    room = room_of(settings)
    return bool(room.max_vcpu and room.max_memory_gib)


def largest_vcpu(max_vcpu: int) -> int:
    """Return the vCPU of the largest machine that Karpenter may launch for such work.

    A machine above the ceiling would never start, and one that uses most of it would leave no room for another.
    """
    return max(2, max_vcpu // 2)


def own_share(settings: PlatformSettings, team: TeamSettings) -> CpuAmount:
    """Return a team's own quota: the one in its settings, or an equal part of what the other teams' settings leave."""
    if team.cpu_work is not None:
        return CpuAmount(team.cpu_work.vcpu, team.cpu_work.memory_gib * _GIB)
    written = [each.cpu_work for each in settings.teams if each.cpu_work is not None]
    room, teams = _for_queues(settings), len(settings.teams) - len(written)
    vcpu = room.vcpu - sum(each.vcpu for each in written)
    gib = room.memory_mib // _GIB - sum(each.memory_gib for each in written)
    return CpuAmount(max(0, vcpu) // teams, max(0, gib) // teams * _GIB)


def cpu_names(settings: PlatformSettings) -> tuple[str, dict[str, str]]:
    """Return the name of the flavor and the cohort, and the ClusterQueue of each team by the team's name."""
    return f"{settings.cohort}-{CPU_QUEUE}", {team.name: f"{team.name}-{CPU_QUEUE}" for team in settings.teams}


def cpu_work_plan(resolved: ResolvedSettings, flavors: tuple[FlavorPlan, ...], queues: tuple[QueuePlan, ...]) -> CpuWorkPlan | None:
    """Return the queues of work without GPUs, or None if the settings leave no room for it.

    The cohort has the quota that belongs to no team, and any team may borrow it. A team's launchers have their quota in its GPU queue,
    because a job is in one queue with all of its pods. A queue whose flavors all have a topology has no launcher quota: next to a flavor
    without one, Kueue 0.19 admits no job that does not request a topology itself.
    """
    settings = resolved.settings
    if not has_room(settings):
        return None
    name, cluster_queues = cpu_names(settings)
    placed = {flavor.name for flavor in flavors if flavor.topology is not None}
    of_gpus = {queue.namespace for queue in queues if any(quota.flavor not in placed for quota in queue.quotas)}
    teams = sorted(settings.teams, key=lambda each: each.name)
    own = {team.name: own_share(settings, team) for team in teams}
    launchers = {team.name: _part(own[team.name], _LAUNCHERS) if team.name in of_gpus else CpuAmount(0, 0) for team in teams}
    ceiling, room = _for_queues(settings), room_of(settings)
    left = CpuAmount(
        max(0, ceiling.vcpu - sum(each.vcpu for each in own.values())),
        max(0, ceiling.memory_mib - sum(each.memory_mib for each in own.values())),
    )
    return CpuWorkPlan(
        flavor=name,
        node_labels={} if settings.cloud is Platform.GKE else {KARPENTER_POOL_LABEL: OTHER_WORK},
        cohort=name,
        unowned=left,
        largest=CpuAmount(room.max_vcpu, room.max_memory_gib * _GIB)
        if settings.cloud is Platform.GKE
        else _largest(room.max_vcpu, room.max_memory_gib * _GIB),
        queues=tuple(
            CpuQueuePlan(
                cluster_queue=cluster_queues[team.name],
                namespace=team.name,
                local_queue=CPU_QUEUE,
                weight=team.weight,
                nominal=_less(own[team.name], launchers[team.name]),
                launchers=launchers[team.name],
                stop=stop_of(settings, team),
            )
            for team in teams
        ),
    )


def _for_queues(settings: PlatformSettings) -> CpuAmount:
    room = room_of(settings)
    return CpuAmount(
        room.max_vcpu - room.max_vcpu // _KEPT_FROM_QUEUES, (room.max_memory_gib - room.max_memory_gib // _KEPT_FROM_QUEUES) * _GIB
    )


def _part(whole: CpuAmount, parts: int) -> CpuAmount:
    return CpuAmount(whole.vcpu // parts, whole.memory_mib // parts)


def _less(whole: CpuAmount, part: CpuAmount) -> CpuAmount:
    return CpuAmount(whole.vcpu - part.vcpu, whole.memory_mib - part.memory_mib)


def _largest(max_vcpu: int, max_memory_mib: int) -> CpuAmount:
    vcpu = largest_vcpu(max_vcpu)
    return CpuAmount(vcpu, min(max_memory_mib, vcpu * _GIB_PER_VCPU * _GIB))
