"""What must agree between the settings' parts before a plan is made; everything that does not is told at once."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from capacity.stack_file import SettingsProblem, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.machines import Machine
    from capacity.settings import PlatformSettings


def problems_of(settings: PlatformSettings, machines: dict[str, Machine]) -> list[SettingsProblem]:
    """Every disagreement, in the order of the settings."""
    return [
        *_twice(settings),
        *_pools(settings, machines),
        *_teams(settings, machines),
    ]


def _twice(settings: PlatformSettings) -> Iterator[SettingsProblem]:
    names = {
        "pools": [each.name for each in settings.pools],
        "classes": [each.name for each in settings.classes],
        "teams": [each.name for each in settings.teams],
        "classes (priority_class)": [each.priority_class for each in settings.classes],
    }
    for path, found in names.items():
        for name in (name for name, count in Counter(found).items() if count > 1):
            yield SettingsProblem(path, repr(name), "stands twice", "names are unique")


def _pools(settings: PlatformSettings, machines: dict[str, Machine]) -> Iterator[SettingsProblem]:
    classes = {each.name: each for each in settings.classes}
    queued_by_labels: dict[tuple[str, str], str] = {}
    for number, pool in enumerate(settings.pools):
        path = f"pools.{number}"
        machine = machines.get(pool.machine)
        if machine is None:
            yield SettingsProblem(f"{path}.machine", repr(pool.machine), "is not a machine of the catalog", nearest(pool.machine, machines))
        elif machine.gpu is None:
            yield SettingsProblem(f"{path}.machine", repr(pool.machine), "has no GPU", "pools are GPU pools")
        known = [classes[name] for name in pool.serves if name in classes]
        for name in pool.serves:
            if name not in classes:
                yield SettingsProblem(f"{path}.serves", repr(name), "is not a class of these settings", nearest(name, classes))
        if len({each.queued for each in known}) > 1:
            # A queue would promise GPUs that an unqueued class has taken.
            yield SettingsProblem(f"{path}.serves", ", ".join(pool.serves), "mixes queued and unqueued classes", "split the pool")
        if machine is not None and machine.gpu is not None and any(each.queued for each in known):
            labels = (machine.gpu.name, pool.capacity_type.value)
            if other := queued_by_labels.get(labels):
                problem = f"has the same labels ({', '.join(labels)}) as queued pool {other}"
                yield SettingsProblem(path, repr(pool.name), problem, "make it one pool, or choose another GPU or capacity type")
            queued_by_labels[labels] = pool.name


def _teams(settings: PlatformSettings, machines: dict[str, Machine]) -> Iterator[SettingsProblem]:
    queued_classes = {each.name for each in settings.classes if each.queued}
    queued = {pool.name: pool for pool in settings.pools if set(pool.serves) & queued_classes}
    for number, team in enumerate(settings.teams):
        for name in team.shares:
            if name not in queued:
                problem = SettingsProblem(
                    f"teams.{number}.shares.{name}", "", "is not a pool that serves a queued class", nearest(name, queued)
                )
                yield problem
    for name, pool in queued.items():
        machine = machines.get(pool.machine)
        promised = sum(team.shares.get(name, 0) for team in settings.teams)
        ceiling = pool.max_nodes * machine.gpu.count if machine and machine.gpu else promised
        if promised > ceiling:
            problem = f"the teams' shares of pool {name} add up to {promised} GPUs, but its ceiling is {ceiling}"
            yield SettingsProblem("teams", "", problem, "lower the shares, or raise max_nodes of the pool")
