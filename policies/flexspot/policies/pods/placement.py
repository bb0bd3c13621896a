"""Where pods can run, which taints keep them away, and what ends their work: the cloud, that takes their nodes."""

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
    """A pool that GPU pods select by one option: whether it `suits` them, and whether a taint, the first such, keeps them `away`."""

    option: SchedulingOption
    pool: GpuPool
    suits: Tri
    away: Tri
    taint: Field | None

    @property
    def possible(self) -> Tri:
        """Whether the pods can run there."""
        return all_of([self.suits, negated(self.away)])


@dataclass(frozen=True)
class Placement:
    """Whether pods can run on any of the pools; and a pool that surely suits them and surely keeps them away, the first such."""

    possible: Tri
    kept_off: PoolMatch | None


def pool_matches(pods: PodSet, inventory: Inventory) -> list[PoolMatch]:
    """Every option with each pool that may suit the pods. Pods that ask for the same get the same list."""
    options = options_of(pods, inventory)
    terms = pods.pod.at(*REQUIRED_TERMS)
    shape = (id(options), repr(terms.value), pods.pod.partial)
    return inventory.once("pool_matches", shape, lambda: list(_pool_matches(options or (), terms.parts(), inventory)))


def placement_of(pods: PodSet, inventory: Inventory) -> Placement:
    """What `pool_matches` come to."""
    found = pool_matches(pods, inventory)

    def sum_up() -> Placement:
        kept_off = (each for each in found if each.suits is True and each.away is True and each.taint)
        return Placement(any_of(each.possible for each in found), next(kept_off, None))

    return inventory.once("placement", id(found), sum_up)


def _pool_matches(options: Iterable[SchedulingOption], terms: Parts, inventory: Inventory) -> Iterator[PoolMatch]:
    index = index_of(GpuPool, inventory)
    for option in options:
        if not option.selector and not terms.fields and terms.complete:
            told_apart = inventory.once("pools by taint", None, lambda: PoolsByTaint(inventory.of(GpuPool)))
            for pool in told_apart.those_for(option):
                yield PoolMatch(option, pool, _fits(terms, option, pool), *repelling(option, pool))
            continue
        for pool in index.among([*(index.places(key, [value]) for key, value in option.selector.items()), _places_of(terms, index)]):
            suits = _fits(terms, option, pool)
            if suits is not False:
                yield PoolMatch(option, pool, suits, *repelling(option, pool))


class PoolsByTaint:
    """Pools for pods that select none: they differ by their taints alone, so that a few of them stand for all.

    Of pools that are alike the first stands for the others; and of those that surely keep pods off, by a taint that these do not tolerate,
    the first for all of those. What is asked of pool matches is whether there is one, and the first that there is.
    """

    def __init__(self, pools: Sequence[GpuPool]) -> None:
        alike: dict[tuple[object, ...], tuple[int, GpuPool]] = {}
        for place, pool in enumerate(pools):
            alike.setdefault(_looks(pool), (place, pool))
        self._pools = [pool for _, pool in alike.values()]
        kept_by = [_keeping(pool) for pool in self._pools]
        times = Counter(key for keys in kept_by for key in keys)
        self._open = [number for number, keys in enumerate(kept_by) if not keys]
        self._by_key: dict[object, list[int]] = {}
        seen: set[tuple[object, ...]] = set()
        for number, (pool, keys) in enumerate(zip(self._pools, kept_by, strict=True)):
            # Who does not tolerate the rarest of its keys is kept off, whatever else he tolerates.
            if keys:
                self._by_key.setdefault(min(keys, key=lambda key: (times[key], str(key))), []).append(number)
            # Each taint once, for who asks whether there is one.
            for looks in _looks_of_taints(pool):
                if looks not in seen:
                    seen.add(looks)
                    self._by_key.setdefault(looks[0], []).append(number)

    def those_for(self, option: SchedulingOption) -> list[GpuPool]:
        """The pools that an option has to be held against, in their order."""
        keys = [each.at("key").text() for each in option.tolerations]
        if not option.complete or any(not isinstance(key, str) or not key for key in keys):
            return self._pools
        left = {*self._open, *(number for key in keys if isinstance(key, str) for number in self._by_key.get(key, ()))}
        other = next((number for number in range(len(self._pools)) if number not in left), None)
        chosen = sorted(left if other is None else {*left, other})
        return [self._pools[number] for number in chosen]


def _keeping(pool: GpuPool) -> set[object]:
    """The keys of taints that keep pods off which do not tolerate them; none where that is not known of the pool."""
    keys: set[object] = {taint.at("key").text() for taint in pool.taints.fields if taint.at("effect").equals(*KEEPS_AWAY) is True}
    return set() if UNKNOWN in keys or pool.concerned is not True else keys - {*RESOURCES, GKE_QUEUED_LABEL}


def _looks_of_taints(pool: GpuPool) -> tuple[tuple[object, ...], ...]:
    return tuple(tuple(taint.at(field).text() for field in ("key", "value", "effect")) for taint in pool.taints.fields)


def _looks(pool: GpuPool) -> tuple[object, ...]:
    """All of a pool that is asked of it where its labels are not."""
    return (
        pool.concerned,
        _looks_of_taints(pool),
        pool.taints.complete,
        pool.spot,
        pool.notice_seconds,
        repr(pool.offer.fixed.get(FLEX_START_LABEL)),
    )


def _places_of(terms: Parts, index: PoolIndex[GpuPool]) -> list[list[int]] | None:
    """Where the pools are that the terms leave, by one expression of each; None where one of them may leave any pool."""
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
    """Whether the pool's nodes are of those that the pods select. All but Gt and Lt of an affinity is held against it."""
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
    """Whether a taint of the pool keeps GPU pods of this option off it, and the first that does.

    The taint on nvidia.com/gpu, or on what else pods ask for, keeps none of them away: GKE and EKS add its toleration
    (ExtendedResourceToleration), as GKE adds those of a compute class to the pods that select it and of gke-queued to those of a
    ProvisioningRequest.
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
    """The taint as messages name it."""
    key, value, effect = (taint.at(field).text() for field in ("key", "value", "effect"))
    return f"{key}={value}:{effect}" if isinstance(value, str) else f"{key}:{effect}"


def may_be_provisioned(option: SchedulingOption, inventory: Inventory) -> bool:
    """Whether GKE's node auto-provisioning may make a node for the pods, of which nothing is known here."""
    return bool(inventory.of(NodeAutoProvisioning)) and GKE_POOL_LABEL not in option.selector


@dataclass(frozen=True)
class SpotExposure:
    """`possible` is whether pods may run on Spot nodes. `pools` are those of which that is certain; `by` says where it shows.

    `notices` are the seconds that pods have on these pools, each number once.
    """

    possible: Tri
    pools: tuple[GpuPool, ...]
    by: str
    notices: tuple[Decimal | Unknown | None, ...] = ()


def interruption_of(pods: PodSet, inventory: Inventory) -> SpotExposure:
    """What can be said of pods that ask for GPUs.

    What the pods themselves select is enough, wherever a queue leads them besides. Else the pools must be among what was given: they are
    Spot or they are not.
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
    if not inventory.tells(Pool):
        answers.append(UNKNOWN)
    by = by or next((f"it may run on {pool.identity.described}, which is Spot" for pool in pools), "where it runs is not known")
    return SpotExposure(any_of(answers), tuple(pools), by, tuple(dict.fromkeys(pool.notice_seconds for pool in pools)))


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
        return UNKNOWN, "its queue, or what the queue leads to, is not in the input"
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
    return any_of([marked.equals("true") if marked else False, *(taint.at("key").equals(GKE_QUEUED_LABEL) for taint in pool.taints.fields)])


def _names_flex(option: SchedulingOption) -> Tri:
    named = [
        option.selector[key].equals(value)
        for key, value in ((FLEX_START_LABEL, "true"), (PROVISIONING_LABEL, "flex-start"))
        if key in option.selector
    ]
    return all_of([any_of(named), negated(option.names_spot)])
