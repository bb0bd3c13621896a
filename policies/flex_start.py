"""Whether pods may run on flex-start capacity of GKE, whose nodes end seven days after they begin at the latest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.catalog.node_labels import GKE_QUEUED_LABEL
from policies.inventory import Pool
from policies.placement import landings, may_be_provisioned
from policies.reading.gke_nodes import FLEX_START_LABEL, PROVISIONING_LABEL
from policies.unknown import UNKNOWN, Tri, all_of, any_of, negated
from policies.ways import ways_of

if TYPE_CHECKING:
    from policies.inventory import Inventory, PodSet
    from policies.placement import Landing
    from policies.ways import Way

LONGEST_SECONDS = 604_800
"""Seven days: the longest run that flex-start gives a node, which it also gives where nobody says less.

Source: GoogleCloudPlatform/cluster-autoscaler (2026-08).
"""


NAMES_FLEX = "{via} names flex-start nodes"
ON_FLEX = "it may run on {pool}, which is flex-start"


def flex_start_of(pods: PodSet, inventory: Inventory) -> tuple[Tri, str]:
    """Whether pods that ask for GPUs may run there, and where it shows. A selector that names such nodes is enough."""
    ways = ways_of(pods, inventory)
    if ways is None:
        return UNKNOWN, "its queue, or what that leads to, is not among what was given"
    found = landings(pods, inventory)
    return inventory.once("flex-start", (id(ways), id(found)), lambda: _flex_start(ways, found, inventory))


def _flex_start(ways: list[Way], found: list[Landing], inventory: Inventory) -> tuple[Tri, str]:
    answers: list[tuple[Tri, str]] = [(_names_flex(way), NAMES_FLEX.format(via=way.via or "its nodeSelector")) for way in ways]
    answers += [(all_of([each.possible, is_flex_start(each.pool)]), ON_FLEX.format(pool=each.pool.identity.described)) for each in found]
    elsewhere = [way for way in ways if way.names_spot is not True]
    unknown = [way for way in elsewhere if may_be_provisioned(way, inventory)] if inventory.tells(Pool) else elsewhere
    answers += [(UNKNOWN, "where it runs is not known") for _ in unknown]
    possible = any_of(answer for answer, _ in answers)
    return possible, next((by for answer, by in answers if answer is possible), "")


def is_flex_start(pool: Pool) -> Tri:
    """Whether a pool's nodes are of flex-start; those that come by request alone, behind the taint of queued capacity, are."""
    marked = pool.offer.fixed.get(FLEX_START_LABEL)
    return any_of([marked.equals("true") if marked else False, *(taint.key.equals(GKE_QUEUED_LABEL) for taint in pool.taints)])


def _names_flex(way: Way) -> Tri:
    named = [
        way.selector[key].equals(value)
        for key, value in ((FLEX_START_LABEL, "true"), (PROVISIONING_LABEL, "flex-start"))
        if key in way.selector
    ]
    return all_of([any_of(named), negated(way.names_spot)])
