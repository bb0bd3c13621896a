"""Work without GPUs: what teams own of its room, and the names that its queues have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.plan.cpu_work import CPU_QUEUE, cpu_names, has_room, room_of
from capacity.settings.platform import LocalSettings
from capacity.values.errors import SettingsProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.plan.resolve import ResolvedSettings


def cpu_work_fits_into_its_room(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """What is promised of nodes that there can never be makes pods wait whose queue has let them in."""
    settings = resolved.settings
    room = room_of(settings)
    owners = [(number, team.cpu_work) for number, team in enumerate(settings.teams) if team.cpu_work is not None]
    path = "other_work" if isinstance(settings, LocalSettings) else "cluster.other_work"
    for number, own in owners:
        if not has_room(settings) and (own.vcpu or own.memory_gib):
            problem = f"is {own.vcpu} vCPU and {own.memory_gib} GiB, but the stack has no room for work without GPUs"
            remedy = f"leave it out, or set max_vcpu and max_memory_gib in {path}"
            yield SettingsProblem(f"teams.{number}.cpu_work", "", problem, remedy, "cpu-work-without-room")
    if not has_room(settings) or not owners:
        return
    for field, ceiling, of_all in (("vcpu", "max_vcpu", room.max_vcpu), ("memory_gib", "max_memory_gib", room.max_memory_gib)):
        amounts = [getattr(own, field) for _, own in owners]
        if (promised := sum(amounts)) > of_all:
            last = owners[-1][0]
            problem = f"brings the total of all teams to {' + '.join(map(str, amounts))} = {promised}, but {path}.{ceiling} is {of_all}"
            remedy = f"give the teams {of_all} in total, or raise {path}.{ceiling}"
            yield SettingsProblem(f"teams.{last}.cpu_work.{field}", str(amounts[-1]), problem, remedy, "cpu-work-above-room")


def names_of_cpu_queues_are_free(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """A name of the queues of work without GPUs that is another queue's, cohort's, flavor's or NodePool's would be one object twice."""
    settings = resolved.settings
    if not has_room(settings):
        return
    name, cluster_queues = cpu_names(settings)
    owner_of = {queue: team for team, queue in cluster_queues.items()}
    for number, team in enumerate(settings.teams):
        if team.name in owner_of:
            problem = f"is the name of team {owner_of[team.name]}'s queue for work without GPUs"
            remedy = f"choose a name that is not another team's name with -{CPU_QUEUE} appended"
            yield SettingsProblem(f"teams.{number}.name", repr(team.name), problem, remedy, "name-of-cpu-queue")
    for number, cohort in enumerate(settings.cohorts):
        if cohort.name == name:
            problem, remedy = "is the name of the cohort for work without GPUs", "choose another name"
            yield SettingsProblem(f"cohorts.{number}.name", repr(name), problem, remedy, "name-of-cpu-queue")
    for number, pool in enumerate(settings.pools):
        if pool.name == name:
            problem, remedy = "is the name of the flavor for work without GPUs", "choose another name"
            yield SettingsProblem(f"pools.{number}.name", repr(name), problem, remedy, "name-of-cpu-queue")


CHECKS = (cpu_work_fits_into_its_room, names_of_cpu_queues_are_free)
