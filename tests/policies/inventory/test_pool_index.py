"""The index of pools and the shared answers change no verdict and no message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inventories import Resource, labels, runs

from flexspot.policies.core import judge_all, read_source
from flexspot.policies.inventory.reading.source import from_pulumi
from flexspot.policies.inventory.views import GpuPool, Inventory, Pool
from flexspot.policies.judging import DEFAULTS
from flexspot.policies.pods import placement
from flexspot.policies.pools import PoolIndex, pools_for
from flexspot.policies.rules import all_rules
from flexspot.policies.values.field import Field, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from flexspot.policies.core import Reading

pytestmark = pytest.mark.slow


def read(run: list[Resource]) -> list[Reading]:
    return [read_source(from_pulumi(*each)) for each in run]


def findings_of(readings: Sequence[Reading], *, closed: bool) -> list[list[tuple[str, ...]]]:
    judged = judge_all([each.source for each in readings], [each for each in all_rules() if each.among], DEFAULTS, closed=closed)
    return [[(each.rule, each.verdict, str(each.object), each.message, each.remediation) for each in findings] for findings in judged]


def without_index(patch: pytest.MonkeyPatch) -> None:
    """Replace the index: every answer is calculated again, for every pool, and no pool represents others."""

    def answered_anew(_self: Inventory, _question: str, _about: object, answer: Callable[[], Any]) -> Any:
        return answer()

    def all_of_them(self: PoolIndex[Pool], _several: object) -> list[Pool]:
        return list(vars(self)["_pools"])

    class All:
        def __init__(self, pools: tuple[GpuPool, ...]) -> None:
            self._pools = pools

        def pools_for(self, _option: object) -> tuple[GpuPool, ...]:
            return self._pools

    patch.setattr(Inventory, "once", answered_anew)
    patch.setattr(PoolIndex, "among", all_of_them)
    patch.setattr(placement, "PoolsByTaint", All)


@settings(max_examples=50)
@given(runs(), st.booleans())
def test_every_rule_finds_the_same_with_and_without_the_index(run: list[Resource], closed: bool) -> None:  # noqa: FBT001 -- drawn
    readings = read(run)
    with pytest.MonkeyPatch.context() as patch:
        without_index(patch)
        expected = findings_of(readings, closed=closed)

    found = findings_of(readings, closed=closed)

    assert found == expected
    assert "the rule itself is broken" not in str(found)


@settings(max_examples=50)
@given(runs(), labels(most=3))
def test_a_pool_that_the_index_leaves_out_cannot_carry_the_labels(run: list[Resource], wanted: Any) -> None:
    inventory = Inventory(tuple(view for reading in read(run) for view in reading.views))
    selector = dict(Field(plain(wanted)).parts().named)

    left = pools_for(Pool, selector, inventory)

    assert [pool.identity for pool in inventory.of(Pool) if pool.offer.carries(selector) is not False and pool not in left] == []
    assert [pool for pool in inventory.of(Pool) if pool in left] == left, "in their order"
