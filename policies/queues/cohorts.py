"""Which queues share quota, those of one cohort and of all cohorts under the same root; and whether they share by weight."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from policies.inventory.objects import ClusterQueue, Cohort, KueueConfiguration
from policies.values.field import Field
from policies.values.unknown import UNKNOWN, Tri

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.inventory.views import Inventory
    from policies.values.unknown import Unknown

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
