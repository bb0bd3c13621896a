"""Whether the cloud may take the nodes under a job, how long its pods then have, and flex-start, whose nodes end after seven days."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity.catalog.node_labels import GKE_QUEUED_LABEL
from policies.inventory.gke_nodes import FLEX_START_LABEL, PROVISIONING_LABEL
from policies.inventory.views import GpuPool, Pool
from policies.pods.placement import may_be_provisioned, pool_matches
from policies.pods.scheduling_options import options_of
from policies.values.unknown import UNKNOWN, Tri, all_of, any_of, negated

if TYPE_CHECKING:
    from decimal import Decimal

    from policies.inventory.views import Inventory, PodSet
    from policies.pods.placement import PoolMatch
    from policies.pods.scheduling_options import SchedulingOption
    from policies.values.field import Field
    from policies.values.unknown import Unknown


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
    options = options_of(pods, inventory)
    if options is None:
        return Interruption(UNKNOWN, (), "its queue, or what that leads to, is not among what was given")
    found = pool_matches(pods, inventory)
    return inventory.once("interruption", (id(options), id(found)), lambda: _interruption(options, found, inventory))


def _interruption(options: list[SchedulingOption], found: list[PoolMatch], inventory: Inventory) -> Interruption:
    answers: list[Tri] = [option.names_spot for option in options]
    by = next((f"{option.via or 'its nodeSelector'} names Spot nodes" for option in options if option.names_spot is True), "")
    pools: list[GpuPool] = []
    for pool_match in found:
        if pool_match.possible is False:
            continue
        if pool_match.pool.spot is True and pool_match.possible is True:
            pools.append(pool_match.pool)
        answers.append(False if pool_match.pool.spot is False else (pool_match.pool.spot if pool_match.possible is True else UNKNOWN))
    answers += [UNKNOWN for option in options if may_be_provisioned(option, inventory)]
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


LONGEST_SECONDS = 604_800
"""Seven days: the longest run that flex-start gives a node, which it also gives where nobody says less.

Source: GoogleCloudPlatform/cluster-autoscaler (2026-08).
"""


NAMES_FLEX = "{via} names flex-start nodes"
ON_FLEX = "it may run on {pool}, which is flex-start"


def flex_start_of(pods: PodSet, inventory: Inventory) -> tuple[Tri, str]:
    """Whether pods that ask for GPUs may run there, and where it shows. A selector that names such nodes is enough."""
    options = options_of(pods, inventory)
    if options is None:
        return UNKNOWN, "its queue, or what that leads to, is not among what was given"
    found = pool_matches(pods, inventory)
    return inventory.once("flex-start", (id(options), id(found)), lambda: _flex_start(options, found, inventory))


def _flex_start(options: list[SchedulingOption], found: list[PoolMatch], inventory: Inventory) -> tuple[Tri, str]:
    answers: list[tuple[Tri, str]] = [(_names_flex(option), NAMES_FLEX.format(via=option.via or "its nodeSelector")) for option in options]
    answers += [(all_of([each.possible, is_flex_start(each.pool)]), ON_FLEX.format(pool=each.pool.identity.described)) for each in found]
    elsewhere = [option for option in options if option.names_spot is not True]
    unknown = [option for option in elsewhere if may_be_provisioned(option, inventory)] if inventory.tells(Pool) else elsewhere
    answers += [(UNKNOWN, "where it runs is not known") for _ in unknown]
    possible = any_of(answer for answer, _ in answers)
    return possible, next((by for answer, by in answers if answer is possible), "")


def is_flex_start(pool: Pool) -> Tri:
    """Whether a pool's nodes are of flex-start; those that come by request alone, behind the taint of queued capacity, are."""
    marked = pool.offer.fixed.get(FLEX_START_LABEL)
    return any_of([marked.equals("true") if marked else False, *(taint.key.equals(GKE_QUEUED_LABEL) for taint in pool.taints)])


def _names_flex(option: SchedulingOption) -> Tri:
    named = [
        option.selector[key].equals(value)
        for key, value in ((FLEX_START_LABEL, "true"), (PROVISIONING_LABEL, "flex-start"))
        if key in option.selector
    ]
    return all_of([any_of(named), negated(option.names_spot)])
