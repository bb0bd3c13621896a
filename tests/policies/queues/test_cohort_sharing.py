"""Who shares quota with whom, over the names that the versions of Kueue have had for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policies.inventory.objects import ClusterQueue
from policies.inventory.reading import views_of
from policies.inventory.reading.source import from_manifest
from policies.inventory.views import Inventory
from policies.queues.cohorts import shares

if TYPE_CHECKING:
    from policies.values.field import Tri


def kueue(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, "spec": spec}


def first_shares(*manifests: dict[str, Any]) -> Tri:
    """Whether the first queue of these objects has somebody to share with."""
    inventory = Inventory(tuple(view for each in manifests for view in views_of(from_manifest(each))))
    return shares(inventory.of(ClusterQueue)[0], inventory)


def test_a_queue_outside_a_cohort_shares_with_nobody() -> None:
    assert first_shares(kueue("ClusterQueue", "a"), kueue("ClusterQueue", "b"), kueue("ClusterQueue", "c", cohort="")) is False


def test_the_tree_counts_and_so_does_the_field_of_its_first_version() -> None:
    tree = [kueue("Cohort", "research", parent="acme"), kueue("Cohort", "product", parentName="acme")]

    assert first_shares(kueue("ClusterQueue", "a", cohortName="research"), kueue("ClusterQueue", "b", cohortName="product"), *tree) is True


def test_cohorts_in_a_circle_have_the_same_root_wherever_one_begins() -> None:
    circle = [kueue("Cohort", "a", parentName="b"), kueue("Cohort", "b", parentName="c"), kueue("Cohort", "c", parentName="b")]

    assert first_shares(kueue("ClusterQueue", "x", cohortName="a"), kueue("ClusterQueue", "y", cohortName="c"), *circle) is True
