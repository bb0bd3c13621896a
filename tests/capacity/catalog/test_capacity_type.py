"""The shipped facts about capacity types, and the merging of several orders into one."""

from __future__ import annotations

import pytest

from flexspot.capacity.catalog.capacity_type import CapacityType, OrderConflictError, Origin, facts_of, merged_order


def test_another_platform_is_refused_and_the_known_ones_named() -> None:
    with pytest.raises(ValueError, match=r"'local' has no capacity types of its own; those that have: gke, eks"):
        facts_of("local")


@pytest.mark.parametrize("platform", ["gke", "eks"])
def test_only_spot_is_interrupted_without_a_known_end(platform: str) -> None:
    assert [name for name, facts in facts_of(platform).items() if facts.notice_seconds is not None] == [CapacityType.SPOT]


def test_the_queued_label_is_the_only_one_that_a_gke_pool_must_declare_itself() -> None:
    to_declare = {
        name: facts.autoscaler_labels.keys() - facts_of("gke")[name].marks[Origin.NODE_POOL].labels.keys()
        for name, facts in facts_of("gke").items()
    }

    assert {name: keys for name, keys in to_declare.items() if keys} == {CapacityType.QUEUED: {"cloud.google.com/gke-queued"}}


RESERVED, FLEX, QUEUED, SPOT, ON_DEMAND = CapacityType


@pytest.mark.parametrize(
    "orders,merged",
    [
        ([], ()),
        ([(SPOT,)], (SPOT,)),
        ([(SPOT, RESERVED)], (SPOT, RESERVED)),
        ([(RESERVED, SPOT), (SPOT, ON_DEMAND)], (RESERVED, SPOT, ON_DEMAND)),
        ([(SPOT, ON_DEMAND), (RESERVED, SPOT)], (RESERVED, SPOT, ON_DEMAND)),
    ],
)
def test_every_given_order_is_kept(orders: list[tuple[CapacityType, ...]], merged: tuple[CapacityType, ...]) -> None:
    assert merged_order(orders) == merged


def test_the_list_of_capacity_types_decides_what_orders_leave_open() -> None:
    assert merged_order([(ON_DEMAND,), (SPOT,), (RESERVED,), (QUEUED,), (FLEX,)]) == tuple(CapacityType)


def test_orders_that_contradict_each_other_are_named() -> None:
    with pytest.raises(OrderConflictError) as conflict:
        merged_order([(RESERVED, SPOT), (SPOT, ON_DEMAND), (ON_DEMAND, RESERVED)])

    first, second, third = conflict.value.capacity_types
    assert {first, second, third} == {RESERVED, SPOT, ON_DEMAND}
    assert (first, second) in {(RESERVED, SPOT), (SPOT, ON_DEMAND), (ON_DEMAND, RESERVED)}, "each would come before the next"
