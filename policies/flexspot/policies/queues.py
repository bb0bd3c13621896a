"""Queues that share quota, and the GPUs that jobs of a namespace can use through them at once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.accelerators import ACCELERATORS, Accelerator
from flexspot.policies.inventory.objects import (
    ClusterQueue,
    Cohort,
    KueueConfiguration,
    LocalQueue,
)
from flexspot.policies.values.field import UNKNOWN, Field, Tri, Unknown, any_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from flexspot.policies.inventory.views import Inventory

    _Parents = Mapping[str | Unknown | None, str | Unknown | None]


def cohort_of(member: ClusterQueue | Cohort) -> Field:
    """Return the name of the cohort that contains a queue, or of the parent of a Cohort.

    Old versions have shorter keys. An empty name is treated as missing.
    """
    key = "cohort" if isinstance(member, ClusterQueue) else "parent"
    name = member.spec.at(f"{key}Name")
    name = member.spec.at(key) if name.absent else name
    return Field(None) if name.value == "" else name


def shares(queue: ClusterQueue, inventory: Inventory) -> Tri:
    """Return whether the queue can share: another queue is under its root, or a cohort there has its own quota."""
    parents, lenders = inventory.once("lenders by root", None, lambda: _lenders(inventory))
    own = _root(cohort_of(queue).text(), parents)
    if own is None or own is UNKNOWN:
        return UNKNOWN if own is UNKNOWN else False
    # One of them is the queue itself.
    return True if lenders[own] > 1 else (UNKNOWN if lenders[UNKNOWN] else False)


def fair_sharing(inventory: Inventory) -> tuple[Tri, str]:
    """Return whether Kueue's configuration turns fair sharing on, and where. UNKNOWN without a configuration, or where two disagree."""
    found = inventory.of(KueueConfiguration)
    answers = {each.fair_sharing for each in found}
    if len(answers) != 1:
        return UNKNOWN, "fairSharing of Kueue's configuration"
    return answers.pop(), f"{found[0].where} of {found[0].identity.described}"


def _lenders(inventory: Inventory) -> tuple[_Parents, Counter[str | Unknown | None]]:
    """Return the parent of each Cohort, and per root the number of queues and of cohorts with their own quota."""
    cohorts = inventory.of(Cohort)
    parents = {each.name.text(): cohort_of(each).text() for each in cohorts}
    quotas = [(each, each.spec.at("resourceGroups")) for each in cohorts]
    names = [cohort_of(each).text() for each in inventory.of(ClusterQueue)]
    names += [each.name.text() for each, groups in quotas if not groups.known or groups.parts().fields]
    return parents, Counter(_root(name, parents) for name in names)


def _root(name: str | Unknown | None, parents: _Parents) -> str | Unknown | None:
    """Return the root cohort. In a cycle, which Kueue takes out of service, it is the first by name."""
    passed: list[str] = []
    while isinstance(name, str) and name not in passed:
        passed.append(name)
        above = parents.get(name)
        if above is None or above == "":
            return name
        name = above
    return min(passed[passed.index(name) :]) if isinstance(name, str) else name


@dataclass(frozen=True, slots=True)
class Share:
    """A number of GPUs."""

    least: Decimal = Decimal(0)
    """Lower bound, whatever the unknown values turn out to be."""
    complete: bool = True
    """True if the bound is the exact number."""

    def __add__(self, other: Share) -> Share:
        return Share(self.least + other.least, self.complete and other.complete)

    def capped(self, limit: Share | None) -> Share:
        """Return at most `limit`. None means no limit."""
        if limit is None:
            return self
        return Share(min(self.least, limit.least), self.complete and limit.complete)


NOTHING = Share()
_UNKNOWN_SHARE = Share(complete=False)
"""A number of which nothing is known."""


@dataclass(frozen=True, slots=True)
class _Quota:
    """Quota of one flavor. None means no limit."""

    nominal: Share = NOTHING
    borrowing: Share | None = None
    lending: Share | None = None


@dataclass(frozen=True)
class _Member:
    """A ClusterQueue or a Cohort."""

    name: tuple[str, str]
    quotas: Mapping[str, _Quota]
    """Quotas by flavor."""
    cohort: str
    """Name of the cohort that contains it, or an empty text."""
    cohort_known: bool

    def quota(self, flavor: str) -> _Quota:
        return self.quotas.get(flavor, _Quota())


def local_queues_of(namespace: str, inventory: Inventory) -> list[LocalQueue]:
    """Return the LocalQueues that are certainly in a namespace."""
    return inventory.by("namespace", LocalQueue, lambda each: each.namespace).get(namespace, [])


def share_of(namespace: str, inventory: Inventory, kind: Accelerator) -> Share:
    """Return the GPUs of a kind that a namespace has through all its queues, counting each ClusterQueue once."""
    tree = _tree(inventory, kind)
    return _sum(tree.share(str(name)) if name is not UNKNOWN else _UNKNOWN_SHARE for name in _cluster_queue_names(namespace, inventory))


def gives_gpus(namespace: str, inventory: Inventory, kinds: Iterable[Accelerator] = ACCELERATORS) -> Tri:
    """Return whether a queue of the namespace leads to GPUs of one of these kinds."""
    trees = [_tree(inventory, kind) for kind in kinds]
    names = _cluster_queue_names(namespace, inventory)
    return any_of(tree.gives_gpus(str(name)) if name is not UNKNOWN else UNKNOWN for tree in trees for name in names)


def _cluster_queue_names(namespace: str, inventory: Inventory) -> set[str | Unknown | None]:
    return {queue.spec.at("clusterQueue").text() for queue in local_queues_of(namespace, inventory)}


def _tree(inventory: Inventory, kind: Accelerator) -> _Tree:
    return inventory.once("shares of queues", kind, lambda: _Tree(inventory, kind))


class _Tree:
    """The queues and cohorts of the input. Source of the arithmetic: Kueue's documentation, "Cohort", hierarchical cohorts."""

    def __init__(self, inventory: Inventory, kind: Accelerator) -> None:
        listed = [_member(each, kind) for each in (*inventory.of(ClusterQueue), *inventory.of(Cohort))]
        self._members = {each.name: each for each in listed}
        self._in_cohort: dict[str, list[_Member]] = {}
        for each in listed:
            self._in_cohort.setdefault(each.cohort, []).append(each)
        self._pools: dict[tuple[str, str], Share] = {}
        # A member whose cohort is unknown may belong to any cohort.
        self._all_cohorts_known = all(each.cohort_known for each in listed)

    def gives_gpus(self, queue: str) -> Tri:
        """Return whether a ClusterQueue has a flavor with GPUs. UNKNOWN if the queue is not in the input."""
        member = self._members.get(("queue", queue))
        return UNKNOWN if member is None else bool(member.quotas)

    def share(self, queue: str) -> Share:
        """Return the nominal quota of a ClusterQueue plus the quota that it can borrow, over all flavors."""
        member = self._members.get(("queue", queue))
        if member is None:
            return _UNKNOWN_SHARE
        return _sum(member.quota(flavor).nominal + self._borrowed(member, flavor) for flavor in member.quotas)

    def _borrowed(self, member: _Member, flavor: str) -> Share:
        """Return the quota that a member can borrow: the rest of its cohort's pool, and what the parent cohorts lend."""
        if not member.cohort_known:
            return _UNKNOWN_SHARE
        if not member.cohort or self._in_cycle(member.cohort):
            return NOTHING
        pool, own = self._pool(member.cohort, flavor), self._lent(member, flavor)
        found = Share(pool.least - own.least, pool.complete)
        above = self._members.get(("cohort", member.cohort))
        if above:
            found += self._borrowed(above, flavor)
        return found.capped(member.quota(flavor).borrowing)

    def _in_cycle(self, cohort: str) -> bool:
        """Return whether a cohort is its own ancestor, or below one that is. Kueue takes such cohorts out of service."""
        passed: set[str] = set()
        while cohort and cohort not in passed:
            passed.add(cohort)
            above = self._members.get(("cohort", cohort))
            cohort = above.cohort if above else ""
        return bool(cohort)

    def _pool(self, cohort: str, flavor: str) -> Share:
        """Return a cohort's own quota plus the quota that its members lend."""
        if (cohort, flavor) not in self._pools:
            lent = _sum(self._lent(each, flavor) for each in self._in_cohort.get(cohort, ()))
            own = self._members.get(("cohort", cohort))
            whole = lent + (own.quota(flavor).nominal if own else NOTHING)
            self._pools[cohort, flavor] = Share(whole.least, whole.complete and self._all_cohorts_known)
        return self._pools[cohort, flavor]

    def _lent(self, member: _Member, flavor: str) -> Share:
        quota = member.quota(flavor)
        has = quota.nominal if member.name[0] == "queue" else self._pool(member.name[1], flavor)
        return has.capped(quota.lending)


def _member(each: ClusterQueue | Cohort, kind: Accelerator) -> _Member:
    sort, cohort = "queue" if isinstance(each, ClusterQueue) else "cohort", cohort_of(each)
    name = cohort.text()
    return _Member((sort, str(each.name.text())), dict(_quotas(each.spec, kind)), name if isinstance(name, str) else "", cohort.known)


def _quotas(spec: Field, kind: Accelerator) -> Iterator[tuple[str, _Quota]]:
    for group in spec.at("resourceGroups").parts().fields:
        for flavor in group.at("flavors").parts().fields:
            for resource in flavor.at("resources").parts().fields:
                if resource.at("name").text() == kind.resource:
                    limits = {name: _limit(resource.at(f"{name}Limit")) for name in ("borrowing", "lending")}
                    yield str(flavor.at("name").text()), _Quota(_limit(resource.at("nominalQuota")) or NOTHING, **limits)


def _limit(field: Field) -> Share | None:
    number = field.number()
    return _UNKNOWN_SHARE if number is UNKNOWN else (None if number is None else Share(number))


def _sum(shares: Iterable[Share]) -> Share:
    total = NOTHING
    for each in shares:
        total += each
    return total
