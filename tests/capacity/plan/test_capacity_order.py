"""One order of capacity types out of several."""

from __future__ import annotations

import pytest

from capacity.catalog.capacity_type import CapacityType, OrderConflictError, merged_order

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


def test_what_the_orders_leave_open_is_as_capacity_types_are_listed() -> None:
    assert merged_order([(ON_DEMAND,), (SPOT,), (RESERVED,), (QUEUED,), (FLEX,)]) == tuple(CapacityType)


def test_orders_that_contradict_each_other_are_named() -> None:
    with pytest.raises(OrderConflictError) as conflict:
        merged_order([(RESERVED, SPOT), (SPOT, ON_DEMAND), (ON_DEMAND, RESERVED)])

    first, second, third = conflict.value.capacity_types
    assert {first, second, third} == {RESERVED, SPOT, ON_DEMAND}
    assert (first, second) in {(RESERVED, SPOT), (SPOT, ON_DEMAND), (ON_DEMAND, RESERVED)}, "each would come before the next"
