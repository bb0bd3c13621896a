"""Where pods can run, which taints keep them away, and what their priority does to them and to others."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.accelerators import RESOURCES
from flexspot.capacity.catalog.node_labels import COMPUTE_CLASS_LABEL, GKE_POOL_LABEL, GKE_QUEUED_LABEL
from flexspot.policies.inventory.objects import ComputeClassView, KarpenterControllerView, KarpenterNodePool, PriorityClass
from flexspot.policies.inventory.pod_gpus import REQUIRED_TERMS
from flexspot.policies.inventory.reading.gke import FLEX_START_LABEL
from flexspot.policies.inventory.views import GpuPool, Inventory, NodeAutoProvisioning, PodSet, Pool
from flexspot.policies.pods.scheduling_options import KEEPS_AWAY, SchedulingOption, options_of, tolerates
from flexspot.policies.pools import PoolIndex, index_of
from flexspot.policies.values.field import UNKNOWN, Field, Parts, Tri, Unknown, all_of, any_of, negated

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


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


SCALE_UP_CUT_OFF = -10
"""Below it the cluster autoscaler makes no node; flexspot.capacity.catalog.workload_classes has it too, in models that lint never loads."""


def is_of_pods(priority: PriorityClass) -> bool:
    """Whether it is Kubernetes' own PriorityClass, and none of Kubernetes' system classes."""
    return priority.group == "scheduling.k8s.io" and not priority.identity.name.startswith("system-")


def value_of(priority: PriorityClass) -> Decimal | Unknown:
    """The priority that it gives; 0 where none is written."""
    value = priority.fields.at("value")
    number = value.number()
    return Decimal(0) if number is None else number


def below_scale_up(priority: PriorityClass, inventory: Inventory) -> Tri:
    """Whether no autoscaler makes a node for its pods. Karpenter knows no such line, and a run that has no pools does not say who does."""
    value = value_of(priority)
    if value is UNKNOWN:
        return UNKNOWN
    others = [
        pool for pool in inventory.of(Pool) if pool.identity.kind != "NodePool" or not pool.identity.api_version.startswith("karpenter.sh")
    ]
    if value >= SCALE_UP_CUT_OFF or others or inventory.of(ComputeClassView):
        return value < SCALE_UP_CUT_OFF
    karpenter = inventory.of(KarpenterNodePool) or inventory.of(KarpenterControllerView)
    return False if karpenter else inventory.closed or UNKNOWN


def defaults(inventory: Inventory) -> tuple[PriorityClass, ...]:
    """The classes that pods without one get."""

    def found() -> tuple[PriorityClass, ...]:
        classes = (each for each in inventory.of(PriorityClass) if is_of_pods(each))
        return tuple(each for each in classes if each.fields.at("globalDefault").equals("true") is True)

    return inventory.once("default priority classes", None, found)


def users_of(priority: PriorityClass, inventory: Inventory) -> list[PodSet]:
    """The pod sets that name the class."""
    by_class = inventory.by("priority class", PodSet, lambda each: each.pod.at("priorityClassName").text())
    return by_class.get(priority.name.text(), [])
