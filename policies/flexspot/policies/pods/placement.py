"""Pools where pods can run, the taints that repel them, and interruptions of their work when the cloud takes nodes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.accelerators import RESOURCES
from flexspot.capacity.catalog.node_labels import COMPUTE_CLASS_LABEL, GKE_POOL_LABEL, GKE_QUEUED_LABEL
from flexspot.policies.inventory.pod_gpus import REQUIRED_TERMS
from flexspot.policies.inventory.reading.gke import FLEX_START_LABEL, PROVISIONING_LABEL
from flexspot.policies.inventory.views import GpuPool, Inventory, NodeAutoProvisioning, PodSet, Pool
from flexspot.policies.pods.scheduling_options import (
    BY_AFFINITY,
    BY_SELECTOR,
    KEEPS_AWAY,
    SchedulingOption,
    options_of,
    selects_spot,
    tolerates,
)
from flexspot.policies.pools import PoolIndex, index_of
from flexspot.policies.values.field import UNKNOWN, Field, Parts, Tri, Unknown, all_of, any_of, negated

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from decimal import Decimal


@dataclass(frozen=True)
class PoolMatch:
    """A pool that GPU pods may select by one scheduling option."""

    option: SchedulingOption
    pool: GpuPool
    suits: Tri
    """True if the pods select its nodes."""
    away: Tri
    """True if a taint keeps the pods off it."""
    taint: Field | None
    """The first such taint."""

    @property
    def possible(self) -> Tri:
        """True if the pods can run there."""
        return all_of([self.suits, negated(self.away)])


@dataclass(frozen=True)
class Placement:
    """A summary of all pools for the same pods."""

    possible: Tri
    """True if the pods can run on any of the pools."""
    kept_off: PoolMatch | None
    """The first pool that certainly suits the pods and certainly keeps them off."""


def pool_matches(pods: PodSet, inventory: Inventory) -> list[PoolMatch]:
    """Return every option with each pool that may suit the pods. Pods with the same requirements share one list."""
    options = options_of(pods, inventory)
    terms = pods.pod.at(*REQUIRED_TERMS)
    shape = (id(options), repr(terms.value), pods.pod.partial)
    return inventory.once("pool_matches", shape, lambda: list(_pool_matches(options or (), terms.parts(), inventory)))


def placement_of(pods: PodSet, inventory: Inventory) -> Placement:
    """Return the summary of `pool_matches`."""
    found = pool_matches(pods, inventory)

    def sum_up() -> Placement:
        kept_off = (each for each in found if each.suits is True and each.away is True and each.taint)
        return Placement(any_of(each.possible for each in found), next(kept_off, None))

    return inventory.once("placement", id(found), sum_up)


def _pool_matches(options: Iterable[SchedulingOption], terms: Parts, inventory: Inventory) -> Iterator[PoolMatch]:
    index = index_of(GpuPool, inventory)
    for option in options:
        if not option.selector and not terms.fields and terms.complete:
            by_taint = inventory.once("pools by taint", None, lambda: PoolsByTaint(inventory.of(GpuPool)))
            for pool in by_taint.pools_for(option):
                yield PoolMatch(option, pool, _fits(terms, option, pool), *repelling(option, pool))
            continue
        for pool in index.among([*(index.places(key, [value]) for key, value in option.selector.items()), _places_of(terms, index)]):
            suits = _fits(terms, option, pool)
            if suits is not False:
                yield PoolMatch(option, pool, suits, *repelling(option, pool))


class PoolsByTaint:
    """A reduced list of pools for pods that select none. Such pools differ only by their taints, so a few represent all.

    The first of equal pools represents the others. The first pool that certainly keeps the pods off, by a taint that they do not tolerate,
    represents all such pools. Users of pool matches only need to know whether one exists, and the first one.
    """

    def __init__(self, pools: Sequence[GpuPool]) -> None:
        alike: dict[tuple[object, ...], tuple[int, GpuPool]] = {}
        for place, pool in enumerate(pools):
            alike.setdefault(_placement_properties(pool), (place, pool))
        self._pools = [pool for _, pool in alike.values()]
        kept_by = [_repelling_keys(pool) for pool in self._pools]
        times = Counter(key for keys in kept_by for key in keys)
        self._open = [number for number, keys in enumerate(kept_by) if not keys]
        self._by_key: dict[object, list[int]] = {}
        seen: set[tuple[object, ...]] = set()
        for number, (pool, keys) in enumerate(zip(self._pools, kept_by, strict=True)):
            # Pods that do not tolerate the rarest of its keys are kept off, whatever else they tolerate.
            if keys:
                self._by_key.setdefault(min(keys, key=lambda key: (times[key], str(key))), []).append(number)
            # A pool with a taint not seen before stays listed, so that each taint is found.
            for texts in _taint_texts(pool):
                if texts not in seen:
                    seen.add(texts)
                    self._by_key.setdefault(texts[0], []).append(number)

    def pools_for(self, option: SchedulingOption) -> list[GpuPool]:
        """Return the pools to compare with an option, in their order."""
        keys = [each.at("key").text() for each in option.tolerations]
        if not option.complete or any(not isinstance(key, str) or not key for key in keys):
            return self._pools
        left = {*self._open, *(number for key in keys if isinstance(key, str) for number in self._by_key.get(key, ()))}
        other = next((number for number in range(len(self._pools)) if number not in left), None)
        chosen = sorted(left if other is None else {*left, other})
        return [self._pools[number] for number in chosen]


def _repelling_keys(pool: GpuPool) -> set[object]:
    """Return the keys of taints that keep off pods without a toleration. Empty if the keys, or the pool's GPUs, are not certain."""
    keys: set[object] = {taint.at("key").text() for taint in pool.taints.fields if taint.at("effect").equals(*KEEPS_AWAY) is True}
    return set() if UNKNOWN in keys or pool.concerned is not True else keys - {*RESOURCES, GKE_QUEUED_LABEL}


def _taint_texts(pool: GpuPool) -> tuple[tuple[object, ...], ...]:
    return tuple(tuple(taint.at(field).text() for field in ("key", "value", "effect")) for taint in pool.taints.fields)


def _placement_properties(pool: GpuPool) -> tuple[object, ...]:
    """Return every property of a pool, except its labels, that placement depends on."""
    return (
        pool.concerned,
        _taint_texts(pool),
        pool.taints.complete,
        pool.spot,
        pool.notice_seconds,
        repr(pool.offer.fixed.get(FLEX_START_LABEL)),
    )


def _places_of(terms: Parts, index: PoolIndex[GpuPool]) -> list[list[int]] | None:
    """Return the places in the index of the pools that the terms allow, by one expression of each. None if a term may allow any pool."""
    found: list[list[int]] = []
    for term in terms.fields:
        expressions = [each for each in term.at("matchExpressions").parts().fields if each.at("operator").text() == "In"]
        bounds = (
            index.places(str(key), values.fields)
            for each in expressions
            if (values := each.at("values").parts()).complete and (key := each.at("key").text()) is not UNKNOWN
        )
        shortest = min((places for places in bounds if places is not None), key=lambda places: sum(map(len, places)), default=None)
        if shortest is None:
            return None
        found += shortest
    return found if terms.fields and terms.complete else None


def fits(pods: PodSet, option: SchedulingOption, pool: GpuPool) -> Tri:
    """Return whether the pods select the pool's nodes. Gt and Lt of an affinity count as met."""
    return _fits(pods.pod.at(*REQUIRED_TERMS).parts(), option, pool)


def _fits(terms: Parts, option: SchedulingOption, pool: GpuPool) -> Tri:
    answers = [pool.concerned, pool.offer.carries(option.selector), True if option.complete else UNKNOWN]
    if terms.fields:
        answers.append(terms.any(lambda term: _term_fits(term, pool)))
    return all_of(answers)


def _term_fits(term: Field, pool: GpuPool) -> Tri:
    expressions = term.at("matchExpressions").parts()
    return all_of([True, *(pool.offer.meets(each) for each in expressions.fields)]) if expressions.complete else UNKNOWN


def repelling(option: SchedulingOption, pool: GpuPool) -> tuple[Tri, Field | None]:
    """Return whether a taint of the pool keeps GPU pods of this option off it, and the first taint that does.

    Some taints repel none of them, because the cluster adds the toleration: of nvidia.com/gpu and other requested resources (GKE and EKS,
    ExtendedResourceToleration), of a compute class that the pods select, and of gke-queued for a ProvisioningRequest (both GKE).
    """
    given = {*RESOURCES, GKE_QUEUED_LABEL} | ({COMPUTE_CLASS_LABEL} & option.selector.keys())
    answers: list[tuple[Tri, Field | None]] = [] if pool.taints.complete else [(UNKNOWN, None)]
    for taint in pool.taints.fields:
        if taint.at("key").text() in given:
            continue
        tolerated = any_of([*(tolerates(each, taint) for each in option.tolerations), *([] if option.complete else [UNKNOWN])])
        away = all_of([taint.at("effect").equals(*KEEPS_AWAY), UNKNOWN if tolerated is UNKNOWN else not tolerated])
        answers.append((away, taint))
    found = any_of(answer for answer, _ in answers)
    return found, next((taint for answer, taint in answers if answer is found), None)


def described(taint: Field) -> str:
    """Return the taint as messages name it."""
    key, value, effect = (taint.at(field).text() for field in ("key", "value", "effect"))
    return f"{key}={value}:{effect}" if isinstance(value, str) else f"{key}:{effect}"


def may_be_provisioned(option: SchedulingOption, inventory: Inventory) -> bool:
    """Return whether GKE's node auto-provisioning may create a node for the pods. Nothing is known about such a node."""
    return bool(inventory.of(NodeAutoProvisioning)) and GKE_POOL_LABEL not in option.selector


@dataclass(frozen=True)
class SpotExposure:
    """The Spot nodes on which pods may run."""

    possible: Tri
    """True if they may run on Spot nodes."""
    pools: tuple[GpuPool, ...]
    """Spot pools on which they can certainly run."""
    by: str
    """Clause with the evidence."""
    notices: tuple[Decimal | Unknown | None, ...] = ()
    """Seconds of warning on these pools, each number once."""


def interruption_of(pods: PodSet, inventory: Inventory) -> SpotExposure:
    """Return the exposure to Spot of pods that request GPUs.

    A selector of Spot on the pods themselves is enough, wherever their queue leads. Otherwise the pools in the input decide.
    """
    return inventory.once("interruption of pods", pods, lambda: _interruption_of(pods, inventory))


def _interruption_of(pods: PodSet, inventory: Inventory) -> SpotExposure:
    options = options_of(pods, inventory)
    if options is None:
        selects, field = selects_spot(pods)
        if selects is True:
            return SpotExposure(True, (), f"{field} names Spot nodes")
        return SpotExposure(UNKNOWN, (), "its queue, or what the queue leads to, is not in the input")
    found = pool_matches(pods, inventory)
    shared = inventory.once("interruption", (id(options), id(found)), lambda: _interruption(options, found, inventory))
    if shared.possible is True or selects_spot(pods) != (True, BY_AFFINITY):
        return shared
    return replace(shared, possible=True, by=f"{BY_AFFINITY} names Spot nodes")


def _interruption(options: list[SchedulingOption], found: list[PoolMatch], inventory: Inventory) -> SpotExposure:
    answers: list[Tri] = [option.names_spot for option in options]
    by = next((f"{option.via or BY_SELECTOR} names Spot nodes" for option in options if option.names_spot is True), "")
    pools: list[GpuPool] = []
    for pool_match in found:
        if pool_match.possible is False:
            continue
        if pool_match.pool.spot is True and pool_match.possible is True:
            pools.append(pool_match.pool)
        answers.append(False if pool_match.pool.spot is False else (pool_match.pool.spot if pool_match.possible is True else UNKNOWN))
    answers += [UNKNOWN for option in options if may_be_provisioned(option, inventory)]
    if not inventory.can_judge_missing(Pool):
        answers.append(UNKNOWN)
    by = by or next((f"it may run on {pool.identity.described}, which is Spot" for pool in pools), "where it runs is not known")
    return SpotExposure(any_of(answers), tuple(pools), by, tuple(dict.fromkeys(pool.notice_seconds for pool in pools)))


def ignores_interruptions(job: Field) -> Tri:
    """Return whether a Job ignores a pod that an interruption ended: it counts as neither failed nor done, and is replaced."""

    def ignores(entry: Field) -> Tri:
        of_disruption = entry.at("onPodConditions").parts().any(lambda each: each.at("type").equals("DisruptionTarget"))
        return all_of([entry.at("action").equals("Ignore"), of_disruption])

    return job.at("podFailurePolicy", "rules").parts().any(ignores)


LONGEST_SECONDS = 604_800
"""Seven days: the longest lifetime of a flex-start node, and its default.

Source: GoogleCloudPlatform/cluster-autoscaler (2026-08).
"""


NAMES_FLEX = "{via} names flex-start nodes"
ON_FLEX = "it may run on {pool}, which is flex-start"


def flex_start_of(pods: PodSet, inventory: Inventory) -> tuple[Tri, str]:
    """Return whether pods that request GPUs may run on flex-start nodes, and the evidence. A selector of such nodes is enough."""
    options = options_of(pods, inventory)
    if options is None:
        return UNKNOWN, "its queue, or what the queue leads to, is not in the input"
    found = pool_matches(pods, inventory)
    return inventory.once("flex-start", (id(options), id(found)), lambda: _flex_start(options, found, inventory))


def _flex_start(options: list[SchedulingOption], found: list[PoolMatch], inventory: Inventory) -> tuple[Tri, str]:
    answers: list[tuple[Tri, str]] = [(_names_flex(option), NAMES_FLEX.format(via=option.via or "its nodeSelector")) for option in options]
    answers += [(all_of([each.possible, is_flex_start(each.pool)]), ON_FLEX.format(pool=each.pool.identity.described)) for each in found]
    elsewhere = [option for option in options if option.names_spot is not True]
    unknown = [option for option in elsewhere if may_be_provisioned(option, inventory)] if inventory.can_judge_missing(Pool) else elsewhere
    answers += [(UNKNOWN, "where it runs is not known") for _ in unknown]
    possible = any_of(answer for answer, _ in answers)
    return possible, next((by for answer, by in answers if answer is possible), "")


def is_flex_start(pool: Pool) -> Tri:
    """Return whether a pool's nodes are flex-start. Nodes created only on request, with the taint of queued capacity, are."""
    marked = pool.offer.fixed.get(FLEX_START_LABEL)
    return any_of([marked.equals("true") if marked else False, *(taint.at("key").equals(GKE_QUEUED_LABEL) for taint in pool.taints.fields)])


def _names_flex(option: SchedulingOption) -> Tri:
    named = [
        option.selector[key].equals(value)
        for key, value in ((FLEX_START_LABEL, "true"), (PROVISIONING_LABEL, "flex-start"))
        if key in option.selector
    ]
    return all_of([any_of(named), negated(option.names_spot)])
