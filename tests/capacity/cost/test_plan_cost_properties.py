"""What holds of the cost of any plan: parts sum to totals, more is never cheaper, nothing differs from itself, money is never a float."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from decimal import Decimal
from typing import Any, cast

import pytest
from costed_plans import plan, pool, round_prices
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.cost.costed_plan import shipped_use
from capacity.cost.figures import Figures, Section, divided, total
from capacity.cost.plan_comparison import compared
from capacity.cost.plan_cost import plan_cost

few = settings(max_examples=60)
TEAMS = ("red", "green", "blue")
USE = shipped_use().model_copy(update={"bucket_gib": 7, "nat_gib": 3, "load_balancers": 1})
PRICES = round_prices(cluster="0.1", gp3_storage="0.0833", bucket_storage="0.023", nat_traffic="0.045")


@st.composite
def plans(draw: st.DrawFn, more_nodes: int = 0) -> Any:
    """A plan of one to three pools, and the same with so many nodes more in the first."""
    kinds = draw(st.lists(st.sampled_from(["spot", "on-demand", "reserved", "flex-start"]), min_size=1, max_size=3))
    pools: list[dict[str, Any]] = []
    shares: list[tuple[str, str, int]] = []
    for number, kind in enumerate(kinds):
        most = draw(st.integers(1, 50))
        least = draw(st.integers(0, most))
        machines = draw(st.sampled_from([["g6.xlarge"], ["g6.2xlarge", "g6.xlarge"], ["g6.4xlarge", "g6.xlarge"], ["g6.8xlarge"]]))
        serves = draw(st.sets(st.sampled_from(["training", "interactive", "own"]), min_size=1))
        pools.append(pool(f"p{number}", kind, most, *sorted(serves), min_nodes=least, machines=machines))
        left = most
        for team in TEAMS:
            gpus = draw(st.integers(0, left))
            left -= gpus
            shares.append((team, f"p{number}", gpus))
    common: dict[str, Any] = {
        "teams": dict.fromkeys(TEAMS),
        "shares": shares,
        "disks": [{"pool": "p0", "charges": [{"item": "gp3-storage", "amount": draw(st.integers(1, 500))}]}],
        "services": [{"name": "control plane", "item": "cluster", "least": 1, "most": 1}],
        "system_nodes": {"machine": "g6.xlarge", "min_nodes": 1, "max_nodes": draw(st.integers(1, 9)), "charges": []},
    }
    first = pools[0]
    grown = {**first, "max_nodes": first["max_nodes"] + more_nodes, "ceiling": {"gpus": first["max_nodes"] + more_nodes}}
    return plan(*pools, **common), plan(grown, *pools[1:], **common)


@pytest.mark.slow
@few
@given(plans())
def test_parts_sum_to_totals_whichever_way_they_are_cut(drawn: Any) -> None:
    cost = plan_cost(drawn[0], PRICES, USE)

    assert total(each.figures for each in cost.lines) == cost.total
    assert total([*(each.figures for each in cost.teams), cost.unallocated, cost.platform]) == cost.total
    assert total(each.figures for each in cost.lines if each.section.of_pools) == cost.total - cost.platform


@pytest.mark.slow
@few
@given(plans())
def test_idle_is_never_dearer_than_expected_nor_that_than_the_worst_case(drawn: Any) -> None:
    for line in plan_cost(drawn[0], PRICES, USE).lines:
        if line.figures is not None:
            figures = line.figures
            assert 0 <= figures.floor_usd <= figures.expected_usd <= figures.expected_at_most_usd <= figures.worst_usd, line
            assert line.unknown or figures.expected_at_most_usd == figures.expected_usd


@pytest.mark.slow
@few
@given(plans(more_nodes=2))
def test_the_differences_of_the_lines_sum_to_the_difference_of_the_plans(drawn: Any) -> None:
    before, after = (plan_cost(each, PRICES, USE) for each in drawn)

    found = compared(before, after)

    assert total(each.difference for each in found.lines) == found.difference
    assert {each.line.section for each in found.lines} <= {Section.POOL, Section.DISK}


@pytest.mark.slow
@few
@given(plans())
def test_no_amount_of_money_is_a_float_and_each_is_in_whole_cents(drawn: Any) -> None:
    amounts = list(values(plan_cost(drawn[0], PRICES, USE)))

    assert not [each for each in amounts if isinstance(each, float)]
    figures = [each for each in amounts if isinstance(each, Figures)]
    assert figures
    assert all(usd == usd.quantize(Decimal("0.01")) for each in figures for usd in vars(each).values())


@few
@given(st.integers(0, 10**12), st.lists(st.integers(0, 1000), min_size=1, max_size=30).filter(any))
def test_money_that_is_divided_is_all_there_and_each_part_is_within_a_cent_of_its_share(in_cents: int, weights: list[int]) -> None:
    whole = Decimal(in_cents) / 100

    parts = [each.worst_usd for each in divided(Figures(whole, whole, whole, whole), weights)]

    assert sum(parts) == whole
    assert all(abs(part - whole * weight / sum(weights)) <= Decimal("0.01") for part, weight in zip(parts, weights, strict=True))


def values(found: Any) -> Any:
    """Everything in a tree of dataclasses and tuples."""
    yield found
    if is_dataclass(found):
        for each in fields(found):
            yield from values(getattr(found, each.name))
    elif isinstance(found, tuple):
        for each in cast("tuple[Any, ...]", found):
            yield from values(each)
