"""The number of machines to reserve."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexspot.capacity.chargeback.commitment_advice import NodeUse, advise_reservation, read_use
from flexspot.capacity.values.errors import ExplainedError

if TYPE_CHECKING:
    from pathlib import Path

RESERVED, ON_DEMAND = Decimal(6), Decimal(10)


def test_the_floor_is_reserved_and_the_burst_is_not() -> None:
    """Four nodes are always used, six more a quarter of the time: 0.25 is below the required 0.6."""
    advice = advise_reservation([4] * 75 + [10] * 25, RESERVED, ON_DEMAND)

    assert advice.break_even_share == Decimal("0.6")
    assert (advice.best.nodes, advice.best.usd, advice.best.used_share) == (4, 4 * 6 * 100 + 6 * 10 * 25, 1)
    assert advice.none.usd == 10 * (4 * 75 + 10 * 25)
    assert (advice.peak.nodes, advice.peak.usd) == (10, 6000)


def test_a_use_just_above_the_break_even_is_reserved() -> None:
    used, unused = (
        advise_reservation([1] * 61 + [0] * 39, RESERVED, ON_DEMAND),
        advise_reservation([1] * 59 + [0] * 41, RESERVED, ON_DEMAND),
    )

    assert (used.best.nodes, unused.best.nodes) == (1, 0)


def test_of_equal_levels_the_one_that_binds_least_is_advised() -> None:
    assert advise_reservation([1] * 60 + [0] * 40, RESERVED, ON_DEMAND).best.nodes == 0


def test_a_reservation_at_the_list_price_saves_nothing() -> None:
    """An on-demand capacity reservation: the same price, used or not."""
    advice = advise_reservation([3] * 99 + [2], ON_DEMAND, ON_DEMAND)

    assert advice.best.usd == advice.none.usd
    assert advice.best.nodes == 0


PARTS = st.lists(st.fractions(0, 9, max_denominator=60), min_size=1, max_size=40)


@given(PARTS, st.fractions(Fraction(1, 100), Fraction(3, 2), max_denominator=100))
def test_of_nodes_with_parts_the_number_is_that_which_costs_least_of_all_numbers(used: list[Fraction], price: Fraction) -> None:
    """Each hour is paid separately: the committed nodes at `price`, and those above them at 1."""
    tried = range(math.ceil(max(used)) + 2)
    costs = [sum((price * nodes + max(Fraction(0), each - nodes) for each in used), Fraction(0)) for nodes in tried]

    assert NodeUse(used).worth_reserving(price) == costs.index(min(costs))


@given(PARTS)
def test_utilisation_and_coverage_are_those_of_each_hour_summed_up(used: list[Fraction]) -> None:
    use = NodeUse(used)

    for nodes in range(1, use.peak + 2):
        within = sum((min(each, Fraction(nodes)) for each in used), Fraction(0))
        assert use.used_share(nodes) == within / (nodes * len(used))
        assert use.covered_share(nodes) == (within / sum(used) if any(used) else 1)
    assert (use.used_share(0), use.covered_share(0)) == (1, 0 if any(used) else 1)
    assert list(use.shares) == sorted(use.shares, reverse=True)


def test_four_nodes_for_a_quarter_of_an_hour_are_one_node_of_that_hour() -> None:
    """The example of AWS' whitepaper: one reserved m4.xlarge pays for four of them that ran 15 minutes each within the hour."""
    use = NodeUse([4 * Fraction(15, 60)])

    assert (use.peak, use.used_share(1), use.covered_share(1)) == (1, 1, 1)
    assert use.usd(1, Decimal("0.1"), Decimal("0.2"), 1) == Decimal("0.1")


def test_without_hours_there_is_no_advice() -> None:
    with pytest.raises(ValueError, match="no hours of use"):
        advise_reservation([], RESERVED, ON_DEMAND)


def test_use_is_read_from_a_line_for_each_hour(tmp_path: Path) -> None:
    (tmp_path / "use.txt").write_text("3\n\n 4 \n0\n")

    assert read_use(tmp_path / "use.txt") == [3, 4, 0]


@pytest.mark.parametrize(
    "text,problem", [("3\n2.5\n", "line 2: '2.5' is not a number of nodes"), ("-1\n", "line 1: '-1'"), ("\n", "has no hours in it")]
)
def test_a_use_that_cannot_be_read_is_reported_by_its_line(text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "use.txt").write_text(text)

    with pytest.raises(ExplainedError, match=problem):
        read_use(tmp_path / "use.txt")
