"""The cohort tree, and whether there is anybody to borrow from."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from capacity.settings.problems import SettingsProblem, nearest
from capacity.settings.queueing import Stop

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.planning.ground import Ground


def parents_exist_and_end_at_the_root(ground: Ground) -> Iterator[SettingsProblem]:
    """Kueue disables a whole tree in which a cohort is its own ancestor."""
    settings = ground.settings
    parents = {each.name: each.parent or settings.cohort for each in settings.cohorts}
    known = [settings.cohort, *parents]
    if settings.cohort in parents:
        # Told as a name that stands twice; where the tree ends is not known then.
        return
    for number, cohort in enumerate(settings.cohorts):
        parent = parents[cohort.name]
        if parent not in known:
            path = f"cohorts.{number}.parent"
            yield SettingsProblem(path, repr(parent), "is not a cohort", nearest(parent, known), "unknown-cohort")
        way, at = [cohort.name], parent
        while at in parents and at not in way:
            way.append(at)
            at = parents[at]
        # A ring is told once, at the first of its names; one that is called like the root is told as such.
        if at == cohort.name == min(way):
            problem = f"is its own ancestor: {' in '.join([*way, at])}"
            remedy = f"the tree ends at {settings.cohort}"
            yield SettingsProblem(f"cohorts.{number}.parent", repr(cohort.parent), problem, remedy, "cohort-cycle")
    for number, team in enumerate(settings.teams):
        if team.cohort is not None and team.cohort not in known:
            path = f"teams.{number}.cohort"
            yield SettingsProblem(path, repr(team.cohort), "is not a cohort", nearest(team.cohort, known), "unknown-cohort")


def borrowing_has_somebody_to_borrow_from(ground: Ground) -> Iterator[SettingsProblem]:
    """A queue alone in its tree can neither borrow nor be weighed against another."""
    sharing = [number for number, team in enumerate(ground.settings.teams) if team.shares]
    if len(sharing) != 1:
        return
    [number] = sharing
    team = ground.settings.teams[number]
    promised = Counter(team.shares)
    left = any(ground.queue_gpus(pool) > promised[name] for name, pool in ground.queued_pools.items() if name in promised)
    inert = [
        *(["borrowing_limits"] if team.borrowing_limits and not left else []),
        *(["lending_limits"] if team.lending_limits else []),
        *(["weight"] if team.weight != 1 else []),
    ]
    for field in inert:
        problem = f"has no effect: team {team.name} is alone in cohort {team.cohort or ground.settings.cohort}"
        remedy = "give each team a queue of its own in the cohort, or leave it out"
        yield SettingsProblem(f"teams.{number}.{field}", "", problem, remedy, "alone-in-cohort", refused=False)


def what_is_stopped_is_a_queue(ground: Ground) -> Iterator[SettingsProblem]:
    """A team without shares has no queue, and its services run on."""
    for number, team in enumerate(ground.settings.teams):
        if team.stop is not Stop.NONE and not team.shares:
            problem = f"has no effect: team {team.name} has no queue"
            remedy = "leave it out; what runs outside of queues is scaled down by its owner"
            yield SettingsProblem(f"teams.{number}.stop", repr(team.stop.value), problem, remedy, "stop-without-queue", refused=False)


CHECKS = (parents_exist_and_end_at_the_root, borrowing_has_somebody_to_borrow_from, what_is_stopped_is_a_queue)
