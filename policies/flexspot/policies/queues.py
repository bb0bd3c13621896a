"""Which queues share quota, and how many GPUs the jobs of a namespace can hold through them at once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.accelerators import ACCELERATORS, Accelerator
from flexspot.policies.inventory.objects import (
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    KarpenterNodePool,
    KueueConfiguration,
    LocalQueue,
    NodeClass,
    ProvisioningRequestConfig,
    ResourceFlavor,
    ResourceQuota,
    named,
)
from flexspot.policies.inventory.views import GkeNodePool, Inventory, Pool
from flexspot.policies.pods.scheduling_options import flavors_with_gpus
from flexspot.policies.pools import pools_for
from flexspot.policies.values.field import UNKNOWN, Field, Tri, Unknown, all_of, any_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from flexspot.capacity.values.verdict import ObjectIdentity

    _Parents = Mapping[str | Unknown | None, str | Unknown | None]


def cohort_of(queue: ClusterQueue) -> Field:
    """The name of the queue's cohort: cohortName, which was cohort before v1beta2. An empty one is none."""
    name = _first(queue.spec.at("cohortName"), queue.spec.at("cohort"))
    return Field(None) if name.value == "" else name


def parent_of(cohort: Cohort) -> Field:
    """The name of the cohort above a Cohort: parentName, which was parent in v1alpha1. An empty one is none."""
    name = _first(cohort.spec.at("parentName"), cohort.spec.at("parent"))
    return Field(None) if name.value == "" else name


def shares(queue: ClusterQueue, inventory: Inventory) -> Tri:
    """Whether the queue has somebody to share with: another queue under its root, or a cohort there with quota of its own."""
    parents, lenders = inventory.once("lenders by root", None, lambda: _lenders(inventory))
    own = _root(cohort_of(queue).text(), parents)
    if own is None or own is UNKNOWN:
        return UNKNOWN if own is UNKNOWN else False
    # One of them is the queue itself.
    return True if lenders[own] > 1 else (UNKNOWN if lenders[UNKNOWN] else False)


def fair_sharing(inventory: Inventory) -> tuple[Tri, str]:
    """Whether Kueue's configuration turns fair sharing on, and where; UNKNOWN without one, or where two disagree."""
    found = inventory.of(KueueConfiguration)
    answers = {each.fair_sharing for each in found}
    if len(answers) != 1:
        return UNKNOWN, "fairSharing of Kueue's configuration"
    return answers.pop(), f"{found[0].where} of {found[0].identity.described}"


def _lenders(inventory: Inventory) -> tuple[_Parents, Counter[str | Unknown | None]]:
    """The parent of each Cohort that was given; and under each root how many queues, and cohorts with quota of their own, there are."""
    cohorts = inventory.of(Cohort)
    parents = {each.name.text(): parent_of(each).text() for each in cohorts}
    quotas = [(each, each.spec.at("resourceGroups")) for each in cohorts]
    names = [cohort_of(each).text() for each in inventory.of(ClusterQueue)]
    names += [each.name.text() for each, groups in quotas if not groups.known or groups.parts().fields]
    return parents, Counter(_root(name, parents) for name in names)


def _first(field: Field, other: Field) -> Field:
    return other if field.absent else field


def _root(name: str | Unknown | None, parents: _Parents) -> str | Unknown | None:
    """The last cohort on the way up. In a circle, which Kueue takes out of service, it is the first by name."""
    passed: list[str] = []
    while isinstance(name, str) and name not in passed:
        passed.append(name)
        above = parents.get(name)
        if above is None or above == "":
            return name
        name = above
    return min(passed[passed.index(name) :]) if isinstance(name, str) else name


# Slices of GPUs, and devices by class (dynamic resource allocation).
_OF_GPUS = ("requests.nvidia.com/", *(each.quota_key for each in ACCELERATORS))
_OF_DEVICES = ".deviceclass.resource.k8s.io/devices"


@dataclass(frozen=True)
class GpuQuotaBound:
    """What a ResourceQuota says of GPUs: whether it bounds them in some form, and how many whole ones of each kind (None: it says not)."""

    concerns_gpus: Tri
    gpus: Mapping[Accelerator, Decimal | Unknown | None]


def read_quota(quota: ResourceQuota) -> GpuQuotaBound:
    """What one ResourceQuota says, whichever pods it is for."""
    hard = quota.spec.at("hard").parts()
    found = any(key.startswith(_OF_GPUS) or key.endswith(_OF_DEVICES) for key, _ in hard.named)
    amounts = {kind: quota.spec.at("hard", kind.quota_key).number() for kind in ACCELERATORS}
    return GpuQuotaBound(found or (False if hard.complete else UNKNOWN), amounts)


def is_of_some_pods(quota: ResourceQuota) -> bool:
    """Whether it is, or may be, for some pods of its namespace alone."""
    return not (quota.spec.at("scopes").absent and quota.spec.at("scopeSelector").absent)


def gpu_quotas_of(namespace: str, inventory: Inventory) -> list[GpuQuotaBound]:
    """Those that are in a namespace for certain."""
    return [read_quota(each) for each in _quotas_by_namespace(inventory).get(namespace, ())]


def quotas_somewhere(inventory: Inventory) -> bool:
    """Whether there are ResourceQuotas of which nobody knows yet in which namespace they are."""
    return UNKNOWN in _quotas_by_namespace(inventory)


def _quotas_by_namespace(inventory: Inventory) -> Mapping[object, list[ResourceQuota]]:
    return inventory.by("namespace", ResourceQuota, lambda each: each.namespace)


@dataclass(frozen=True, slots=True)
class Share:
    """GPUs: `least` whatever the values not known yet turn out to be, and just so many if it is `complete`."""

    least: Decimal = Decimal(0)
    complete: bool = True

    def __add__(self, other: Share) -> Share:
        return Share(self.least + other.least, self.complete and other.complete)

    def capped(self, limit: Share | None) -> Share:
        """At most `limit`; None is no limit."""
        if limit is None:
            return self
        return Share(min(self.least, limit.least), self.complete and limit.complete)


NOTHING = Share()
_NOT_TOLD = Share(complete=False)


@dataclass(frozen=True, slots=True)
class _Quota:
    """Quota of one flavor: what is nominal, and how much may be borrowed and lent; None for no limit."""

    nominal: Share = NOTHING
    borrowing: Share | None = None
    lending: Share | None = None


@dataclass(frozen=True)
class _Member:
    """A ClusterQueue or a Cohort: its quotas by flavor, and the cohort that it is in, empty for none."""

    name: tuple[str, str]
    quotas: Mapping[str, _Quota]
    cohort: str
    cohort_known: bool

    def quota(self, flavor: str) -> _Quota:
        return self.quotas.get(flavor, _Quota())


def local_queues_of(namespace: str, inventory: Inventory) -> list[LocalQueue]:
    """The LocalQueues that are in a namespace for certain."""
    return inventory.by("namespace", LocalQueue, lambda each: each.namespace).get(namespace, [])


def share_of(namespace: str, inventory: Inventory, kind: Accelerator) -> Share:
    """The GPUs of a kind that a namespace has through all its queues, each ClusterQueue counted once."""
    tree = _tree(inventory, kind)
    return _sum(tree.share(str(name)) if name is not UNKNOWN else _NOT_TOLD for name in _led_to(namespace, inventory))


def gives_gpus(namespace: str, inventory: Inventory, kinds: Iterable[Accelerator] = ACCELERATORS) -> Tri:
    """Whether a queue of the namespace leads to GPUs of one of these kinds."""
    trees = [_tree(inventory, kind) for kind in kinds]
    names = _led_to(namespace, inventory)
    return any_of(tree.gives_gpus(str(name)) if name is not UNKNOWN else UNKNOWN for tree in trees for name in names)


def _led_to(namespace: str, inventory: Inventory) -> set[str | Unknown | None]:
    return {queue.spec.at("clusterQueue").text() for queue in local_queues_of(namespace, inventory)}


def _tree(inventory: Inventory, kind: Accelerator) -> _Tree:
    return inventory.once("shares of queues", kind, lambda: _Tree(inventory, kind))


class _Tree:
    """The queues and cohorts that were given. Source of the arithmetic: Kueue's documentation, "Cohort", hierarchical cohorts."""

    def __init__(self, inventory: Inventory, kind: Accelerator) -> None:
        listed = [_member("queue", each, cohort_of(each), kind) for each in inventory.of(ClusterQueue)]
        listed += [_member("cohort", each, parent_of(each), kind) for each in inventory.of(Cohort)]
        self._members = {each.name: each for each in listed}
        self._in_cohort: dict[str, list[_Member]] = {}
        for each in listed:
            self._in_cohort.setdefault(each.cohort, []).append(each)
        self._pools: dict[tuple[str, str], Share] = {}
        # A member of which nobody knows yet where it belongs may belong anywhere.
        self._settled = all(each.cohort_known for each in listed)

    def gives_gpus(self, queue: str) -> Tri:
        """Whether a ClusterQueue has a flavor with GPUs; UNKNOWN for one that is not among what was given."""
        member = self._members.get(("queue", queue))
        return UNKNOWN if member is None else bool(member.quotas)

    def share(self, queue: str) -> Share:
        """What a ClusterQueue promises and can borrow, over all flavors."""
        member = self._members.get(("queue", queue))
        if member is None:
            return _NOT_TOLD
        return _sum(member.quota(flavor).nominal + self._borrowed(member, flavor) for flavor in member.quotas)

    def _borrowed(self, member: _Member, flavor: str) -> Share:
        """What a member gets of its cohort beyond its own: what is in the pool there without it, and what comes from above."""
        if not member.cohort_known:
            return _NOT_TOLD
        if not member.cohort or self._in_a_circle(member.cohort):
            return NOTHING
        pool, own = self._pool(member.cohort, flavor), self._lent(member, flavor)
        found = Share(pool.least - own.least, pool.complete)
        above = self._members.get(("cohort", member.cohort))
        if above:
            found += self._borrowed(above, flavor)
        return found.capped(member.quota(flavor).borrowing)

    def _in_a_circle(self, cohort: str) -> bool:
        """Whether a cohort is above itself, or below one that is: Kueue takes such out of service."""
        passed: set[str] = set()
        while cohort and cohort not in passed:
            passed.add(cohort)
            above = self._members.get(("cohort", cohort))
            cohort = above.cohort if above else ""
        return bool(cohort)

    def _pool(self, cohort: str, flavor: str) -> Share:
        """A cohort's own quota and what its members lend it."""
        if (cohort, flavor) not in self._pools:
            lent = _sum(self._lent(each, flavor) for each in self._in_cohort.get(cohort, ()))
            own = self._members.get(("cohort", cohort))
            whole = lent + (own.quota(flavor).nominal if own else NOTHING)
            self._pools[cohort, flavor] = Share(whole.least, whole.complete and self._settled)
        return self._pools[cohort, flavor]

    def _lent(self, member: _Member, flavor: str) -> Share:
        quota = member.quota(flavor)
        has = quota.nominal if member.name[0] == "queue" else self._pool(member.name[1], flavor)
        return has.capped(quota.lending)


def _member(sort: str, each: ClusterQueue | Cohort, cohort: Field, kind: Accelerator) -> _Member:
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
    return _NOT_TOLD if number is UNKNOWN else (None if number is None else Share(number))


def _sum(shares: Iterable[Share]) -> Share:
    total = NOTHING
    for each in shares:
        total += each
    return total


CONTROLLER = "kueue.x-k8s.io/provisioning-request"
GKE_CLASS = "queued-provisioning.gke.io"
"""The class of ProvisioningRequest that GKE serves, and nobody else. Others are the Cluster Autoscaler's own, on any cloud."""

_OF_AWS = ("karpenter.k8s.aws", "eks.amazonaws.com")


def configs_of(check: AdmissionCheck, inventory: Inventory) -> list[ProvisioningRequestConfig]:
    """Those that were given and may be the one that the check names."""
    name = check.spec.at("parameters", "name").text()
    if name is UNKNOWN:
        return list(inventory.of(ProvisioningRequestConfig))
    return list(named(ProvisioningRequestConfig, name or "", inventory))


def asks_gke(check: AdmissionCheck, inventory: Inventory) -> Tri:
    """Whether the check asks for GKE's queued capacity; UNKNOWN where its configuration is not among what was given."""
    ours = check.spec.at("controllerName").equals(CONTROLLER)
    configs = configs_of(check, inventory)
    sure = len(configs) == 1 and check.spec.at("parameters", "name").known and configs[0].name.known
    return all_of([ours, configs[0].spec.at("provisioningClassName").equals(GKE_CLASS) if sure else UNKNOWN])


def on_eks_alone(inventory: Inventory) -> bool:
    """Whether capacity of EKS was given, and none of GKE."""
    return inventory.once("on EKS alone", None, lambda: _on_eks_alone(inventory))


def _on_eks_alone(inventory: Inventory) -> bool:
    if inventory.of(GkeNodePool):
        return False
    references = [each.spec.at("template", "spec", "nodeClassRef", "group").text() for each in inventory.of(KarpenterNodePool)]
    classes = [each.group for each in inventory.of(NodeClass)]
    groups = any(pool.identity.api_version.startswith("aws:eks") for pool in inventory.of(Pool))
    return groups or any(group in _OF_AWS for group in (*references, *classes))


def asked_for(queue: ClusterQueue, inventory: Inventory) -> Iterator[tuple[Tri, str, str | Unknown | None]]:
    """Of each check and flavor with GPUs of the queue: whether the check asks GKE for queued capacity, its name, and the flavor's."""
    known = inventory.by("name", AdmissionCheck, lambda each: each.name.text())
    for name, only in _checks_of(queue):
        checks = known.get(name.text()) if name.known else None
        asks = asks_gke(checks[-1], inventory) if checks else UNKNOWN
        for flavor in flavors_with_gpus(queue.spec) if asks is not False else ():
            listed = UNKNOWN if flavor is UNKNOWN else only.parts().any(partial(_is, str(flavor)))
            yield all_of([asks, True if only.absent else listed]), str(name.text()), flavor


def _is(wanted: str, name: Field) -> Tri:
    return name.equals(wanted)


def _checks_of(queue: ClusterQueue) -> Iterator[tuple[Field, Field]]:
    """The name of each check of the queue, and the flavors that it is for; absent for all. v1beta1 has names alone as well."""
    for rule in queue.spec.at("admissionChecksStrategy", "admissionChecks").parts().fields:
        yield rule.at("name"), rule.at("onFlavors")
    for name in queue.spec.at("admissionChecks").parts().fields:
        yield name, name.at("onFlavors")


def queued(flavor: ResourceFlavor, inventory: Inventory) -> tuple[Tri, str]:
    """Whether a pool that may serve the flavor is of queued capacity, and the first that serves it. Where none does, it is UNKNOWN."""
    labels = flavor.spec.at("nodeLabels").parts()
    wanted = dict(labels.named)
    serving = [(pool.offer.carries(wanted), pool) for pool in pools_for(Pool, wanted, inventory)]
    first = next((pool.identity.described for carries, pool in serving if carries is True), "")
    queues = inventory.once("queued pools", None, lambda: _queues(inventory))
    answers = [all_of([carries, queues.get((pool.identity, _where(pool)), False)]) for carries, pool in serving]
    return (any_of(answers) if first and labels.complete else UNKNOWN), first


def _queues(inventory: Inventory) -> dict[tuple[ObjectIdentity, str], Tri]:
    """Whether a GKE node pool is of queued capacity, by its object and the path to it there."""
    return {(each.identity, each.where): each.pool.at("queuedProvisioning", "enabled").equals("true") for each in inventory.of(GkeNodePool)}


def _where(pool: Pool) -> str:
    """The path to a GKE node pool, by which those of one cluster are told apart."""
    return pool.taints_field.removesuffix("nodeConfig.taints")
