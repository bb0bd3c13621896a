"""GPUs that a namespace can use through its queues, within Kueue's limits."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from manifests import Manifest, inventory, kueue

from flexspot.capacity.catalog.accelerators import NVIDIA
from flexspot.policies.queues import Share, share_of
from flexspot.policies.values.field import UNKNOWN


def quotas(**by_flavor: Any) -> list[dict[str, Any]]:
    """Return one resource group. Each flavor is given by its nominal quota or by all its limits."""
    flavors = [
        {"name": flavor, "resources": [{"name": "nvidia.com/gpu", **(quota if isinstance(quota, dict) else {"nominalQuota": quota})}]}
        for flavor, quota in by_flavor.items()
    ]
    return [{"coveredResources": ["nvidia.com/gpu"], "flavors": flavors}]


def queue(name: str, cohort: Any = "", **by_flavor: Any) -> Manifest:
    return kueue("ClusterQueue", name, cohortName=cohort, resourceGroups=quotas(**by_flavor))


def local(cluster_queue: str) -> Manifest:
    return kueue("LocalQueue", f"to-{cluster_queue}", clusterQueue=cluster_queue)


def share(*manifests: Manifest) -> Share:
    return share_of("team-a", inventory(local("a"), *manifests), NVIDIA)


def test_a_share_without_a_cohort_is_the_nominal_quota_of_all_flavors() -> None:
    assert share(queue("a", l4=8, h100="16")) == Share(Decimal(24))


def test_quota_is_borrowed_up_to_the_limits_of_lender_and_borrower() -> None:
    other = queue("b", "all", l4={"nominalQuota": 10, "lendingLimit": 6})

    assert share(queue("a", "all", l4=8), other) == Share(Decimal(14))
    assert share(queue("a", "all", l4={"nominalQuota": 8, "borrowingLimit": 5}), other) == Share(Decimal(13))
    assert share(queue("a", "all", l4={"nominalQuota": 8, "lendingLimit": 0}), other) == Share(Decimal(14))
    assert share(queue("a", "all", h100=8), other) == Share(Decimal(8)), "a queue borrows nothing of a flavor that it lacks"


def test_a_cohort_lends_its_own_quota_and_its_parents_quota_within_its_limits() -> None:
    top = kueue("Cohort", "top", resourceGroups=quotas(l4=100))
    other = kueue("Cohort", "other", parentName="top", resourceGroups=quotas(l4={"nominalQuota": 10, "lendingLimit": 3}))
    below = kueue("Cohort", "all", parentName="top", resourceGroups=quotas(l4={"nominalQuota": 4, "borrowingLimit": 50}))

    assert share(queue("a", "all", l4=8), below, other) == Share(Decimal(8 + 4 + 3))
    assert share(queue("a", "all", l4=8), below, other, top) == Share(Decimal(8 + 4 + 50))


def test_each_queue_counts_once_and_a_missing_one_makes_the_share_a_lower_bound() -> None:
    twice = kueue("LocalQueue", "again", clusterQueue="a")

    assert share(queue("a", l4=8), twice, local("b"), queue("b", t4=2)) == Share(Decimal(10))
    assert share(queue("a", l4=8), local("elsewhere")) == Share(Decimal(8), complete=False)


@pytest.mark.parametrize("unknown", [{"nominalQuota": UNKNOWN}, {"nominalQuota": 3, "lendingLimit": UNKNOWN}])
def test_an_unknown_number_counts_as_zero_and_makes_the_share_a_lower_bound(unknown: dict[str, Any]) -> None:
    assert share(queue("a", "all", l4=8), queue("b", "all", l4=unknown)) == Share(Decimal(8), complete=False)


def test_a_queue_with_an_unknown_cohort_may_be_in_any() -> None:
    floating = queue("b", UNKNOWN, l4=100)

    assert share(queue("a", "all", l4=8), floating) == Share(Decimal(8), complete=False)
    assert share(queue("a", l4=8), floating) == Share(Decimal(8))


NUMBERS = st.integers(0, 20)
MEMBERS = st.lists(
    st.tuples(st.sampled_from(["", "one", "two"]), NUMBERS, st.none() | NUMBERS, st.none() | NUMBERS), min_size=1, max_size=5
)


@given(MEMBERS, st.sampled_from([{}, {"one": "two"}, {"one": "two", "two": "three"}]))
def test_a_share_is_between_the_queues_own_quota_and_the_sum_of_all_quotas(
    members: list[tuple[str, int, int | None, int | None]], parents: dict[str, str]
) -> None:
    def quota(nominal: int, borrowing: int | None, lending: int | None) -> dict[str, int]:
        return {"nominalQuota": nominal, **{f"{k}Limit": v for k, v in (("borrowing", borrowing), ("lending", lending)) if v is not None}}

    queues = [
        queue("abcde"[place], cohort, l4=quota(nominal, borrowing, lending))
        for place, (cohort, nominal, borrowing, lending) in enumerate(members)
    ]
    cohorts = [kueue("Cohort", name, parentName=above) for name, above in parents.items()]
    whole = share(*queues, *cohorts)

    assert members[0][1] <= whole.least <= sum(nominal for _, nominal, _, _ in members)
    assert whole.complete
