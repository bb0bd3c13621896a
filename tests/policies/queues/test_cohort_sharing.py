"""Queues that share quota, under the keys of all versions of Kueue."""

from __future__ import annotations

import pytest
from manifests import Manifest, inventory, kueue

from flexspot.policies.inventory.objects import ClusterQueue
from flexspot.policies.queues import shares

TREE = [kueue("Cohort", "research", parent="acme"), kueue("Cohort", "product", parentName="acme")]
CIRCLE = [kueue("Cohort", "a", parentName="b"), kueue("Cohort", "b", parentName="c"), kueue("Cohort", "c", parentName="b")]


@pytest.mark.parametrize(
    "first,other,cohorts,answer",
    [
        ({}, {}, [kueue("ClusterQueue", "c", cohort="")], False),
        ({"cohortName": "research"}, {"cohortName": "product"}, TREE, True),
        ({"cohortName": "a"}, {"cohortName": "c"}, CIRCLE, True),
    ],
    ids=["outside of a cohort", "in one tree", "in a circle"],
)
def test_a_queue_shares_with_those_of_the_same_root(first: Manifest, other: Manifest, cohorts: list[Manifest], *, answer: bool) -> None:
    everything = inventory(kueue("ClusterQueue", "a", **first), kueue("ClusterQueue", "b", **other), *cohorts)

    assert shares(everything.of(ClusterQueue)[0], everything) is answer
