"""Whether the cloud may take the nodes under a job, and how long its pods then have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from policies.inventory import GpuPool, Pool
from policies.placement import landings, may_be_provisioned
from policies.unknown import UNKNOWN, Tri, all_of, any_of
from policies.ways import ways_of

if TYPE_CHECKING:
    from decimal import Decimal

    from policies.field import Field
    from policies.inventory import Inventory, PodSet
    from policies.placement import Landing
    from policies.unknown import Unknown
    from policies.ways import Way


@dataclass(frozen=True)
class Interruption:
    """`possible` is whether pods may run on Spot nodes. `pools` are those of which that is certain; `by` says where it shows.

    `notices` are the seconds that pods have on these pools, each number once.
    """

    possible: Tri
    pools: tuple[GpuPool, ...]
    by: str
    notices: tuple[Decimal | Unknown | None, ...] = ()


def interruption_of(pods: PodSet, inventory: Inventory) -> Interruption:
    """What can be said of pods that ask for GPUs.

    A selector that names Spot nodes is enough. Else the pools must be among what was given: they are Spot or they are not.
    """
    ways = ways_of(pods, inventory)
    if ways is None:
        return Interruption(UNKNOWN, (), "its queue, or what that leads to, is not among what was given")
    found = landings(pods, inventory)
    return inventory.once("interruption", (id(ways), id(found)), lambda: _interruption(ways, found, inventory))


def _interruption(ways: list[Way], found: list[Landing], inventory: Inventory) -> Interruption:
    answers: list[Tri] = [way.names_spot for way in ways]
    by = next((f"{way.via or 'its nodeSelector'} names Spot nodes" for way in ways if way.names_spot is True), "")
    pools: list[GpuPool] = []
    for landing in found:
        if landing.possible is False:
            continue
        if landing.pool.spot is True and landing.possible is True:
            pools.append(landing.pool)
        answers.append(False if landing.pool.spot is False else (landing.pool.spot if landing.possible is True else UNKNOWN))
    answers += [UNKNOWN for way in ways if may_be_provisioned(way, inventory)]
    if not inventory.tells(Pool):
        answers.append(UNKNOWN)
    by = by or next((f"it may run on {pool.identity.described}, which is Spot" for pool in pools), "where it runs is not known")
    return Interruption(any_of(answers), tuple(pools), by, tuple(dict.fromkeys(pool.notice_seconds for pool in pools)))


def ignores_interruptions(job: Field) -> Tri:
    """Whether a Job counts a pod that an interruption ended neither as failed nor as done, so that it goes on with another."""

    def ignores(entry: Field) -> Tri:
        of_disruption = entry.at("onPodConditions").parts().any(lambda each: each.at("type").equals("DisruptionTarget"))
        return all_of([entry.at("action").equals("Ignore"), of_disruption])

    return job.at("podFailurePolicy", "rules").parts().any(ignores)
