"""Monthly cost of a plan, by hand (744 hours at worst, else 730; prices of one, two and four dollars) and for any plan."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from decimal import Decimal
from typing import Any, cast

import pytest
from costed_plans import CLOUD_STACKS, line, plan, pool, round_prices, shipped, usd
from hypothesis import given, settings
from hypothesis import strategies as st

from flexspot.capacity.catalog.platform import VOCABULARIES
from flexspot.capacity.catalog.price_book import prices_of
from flexspot.capacity.cost.costed_plan import shipped_use
from flexspot.capacity.cost.figures import Figures, Section, divided, total
from flexspot.capacity.cost.plan_comparison import compared
from flexspot.capacity.cost.plan_cost import plan_cost

USE = shipped_use()


def test_at_worst_every_ceiling_is_reached_all_month_and_idle_only_the_least_nodes_are_paid() -> None:
    cost = plan_cost(plan(pool("l4", max_nodes=4, min_nodes=1)), round_prices(), USE)

    # 4 nodes at a dollar for 744 hours, 4 * 60 % and 1 for 730.
    assert usd(cost, "l4") == ("2976.00", "1752.00", "730.00")


def test_nodes_are_of_the_dearest_machine_at_worst_the_cheapest_when_idle_and_the_requested_one_as_expected() -> None:
    either = pool("l4", max_nodes=2, min_nodes=1, machines=["g6.2xlarge", "g6.xlarge"])

    cost = plan_cost(plan(either), round_prices(), USE)

    # 2 * 4 * 744; 1.2 * 4 * 730; 1 * 1 * 730.
    assert usd(cost, "l4") == ("5952.00", "3504.00", "730.00")


def test_a_reservation_is_billed_at_the_list_price_used_or_not_and_its_disks_only_while_nodes_run() -> None:
    disks = [{"pool": "l4", "charges": [{"item": "gp3-storage", "amount": 100}]}]

    cost = plan_cost(plan(pool("l4", "reserved", max_nodes=2), disks=disks), round_prices(gp3_storage="0.1"), USE)

    nodes, disk = (each.figures for each in cost.lines)
    assert nodes is not None
    assert disk is not None
    assert (nodes.worst_usd, nodes.expected_usd, nodes.floor_usd) == (Decimal("2976.00"), Decimal("2920.00"), Decimal("2920.00"))
    # Ten dollars a disk, on two nodes, on 60 % of them, on none.
    assert (disk.worst_usd, disk.expected_usd, disk.floor_usd) == (Decimal("20.00"), Decimal("12.00"), Decimal("0.00"))


def test_a_class_uses_the_first_pools_of_its_route_more_than_those_for_peaks() -> None:
    cost = plan_cost(plan(pool("first", max_nodes=10), pool("later", "on-demand", max_nodes=10)), round_prices(), USE)

    # Training: 60 % of ten nodes at a dollar; 40 % of ten at two.
    assert usd(cost, "first")[1] == "4380.00"
    assert usd(cost, "later")[1] == "5840.00"


def test_classes_that_share_a_pool_have_equal_parts_of_it_each_for_its_own_hours() -> None:
    cost = plan_cost(plan(pool("shared", "spot", 10, "training", "interactive")), round_prices(), USE)

    # Five nodes at 60 % of 730 h, five at 50 % of 220 h.
    assert usd(cost, "shared")[1] == str(Decimal("2190.00") + Decimal("550.00"))


def test_pools_without_a_known_price_are_named_and_cost_on_demand_at_worst() -> None:
    cost = plan_cost(plan(pool("a-known"), pool("flex", "flex-start")), round_prices(), USE)

    # Four at two dollars for 744 hours. As expected at most 40 % of them for 730, because they are second in the route.
    assert usd(cost, "flex") == ("5952.00", "0.00", "0.00")
    assert not line(cost, "flex").priced
    assert cost.unknown == ("flex-start price of g6.xlarge in us-east-1",)
    assert cost.unbounded == ()
    assert cost.total.worst_usd == Decimal("2976.00") + Decimal("5952.00")
    assert (cost.total.expected_usd, cost.total.expected_at_most_usd) == (Decimal("1752.00"), Decimal("1752.00") + Decimal("2336.00"))


def test_pools_without_an_on_demand_price_are_in_no_sum() -> None:
    cost = plan_cost(plan(pool("a-known"), pool("dark", machines=["g6.16xlarge"])), round_prices(), USE)

    assert line(cost, "dark").figures is None
    assert cost.unknown == cost.unbounded == ("spot price of g6.16xlarge in us-east-1",)
    assert cost.total.worst_usd == Decimal("2976.00")


def test_a_pool_with_one_machine_without_a_price_is_counted_at_the_others_and_reported() -> None:
    cost = plan_cost(plan(pool("l4", machines=["g6.4xlarge", "g6.xlarge"])), round_prices(), USE)

    assert usd(cost, "l4")[0] == "2976.00"
    assert line(cost, "l4").unknown == line(cost, "l4").unbounded == ("spot price of g6.4xlarge in us-east-1",)


def test_other_work_is_filled_with_the_machine_with_which_it_costs_most_and_without_any_price_it_is_unknown() -> None:
    room: dict[str, Any] = {"max_vcpu": 64, "max_memory_gib": 256, "charges": []}

    real = plan_cost(plan(other_work=room), prices_of(VOCABULARIES[shipped("dev-eks").cloud].catalog), USE)
    without = plan_cost(plan(other_work=room), round_prices(), USE)

    # A third of the vCPU is r8a (8 GiB each, 0.07988), two thirds c8a (2 GiB, 0.05389): both ceilings are reached, and no other mix costs
    # more. As expected a tenth of 64 m8a (4 GiB, 0.06086), the machine that is most expensive alone.
    assert usd(real, "other work") == ("2978.54", "284.34", "0.00")
    assert "such as 64 of the smallest m8a" in line(real, "other work").quantity
    assert without.unknown == ("on-demand price of any machine without GPUs in us-east-1",)


def test_services_are_billed_by_their_measure_and_usage_only_where_it_is_given() -> None:
    services = [
        {"name": "control plane", "item": "cluster", "least": 1, "most": 1},
        {"name": "key", "item": "kms-key", "least": 1, "most": 1},
        {"name": "extended support", "item": "extended-support", "least": 0, "most": 1},
    ]
    use = USE.model_copy(update={"bucket_gib": 1000, "internet_gib": 10})
    prices = round_prices(cluster="0.1", kms_key="1", extended_support="0.5", bucket_storage="0.02", internet_traffic="0.09")

    cost = plan_cost(plan(services=services), prices, use)

    assert usd(cost, "control plane") == ("74.40", "73.00", "73.00")
    assert usd(cost, "key") == ("1.00", "1.00", "1.00")
    assert usd(cost, "extended support") == ("372.00", "365.00", "0.00")
    assert usd(cost, "data in buckets") == ("20.00", "20.00", "20.00")
    assert usd(cost, "data to the internet") == ("0.90", "0.90", "0.00")
    assert {each.name for each in cost.lines if each.section is Section.USAGE} == {"data in buckets", "data to the internet"}


def test_a_team_has_its_part_of_a_pool_and_the_rest_is_listed_separately() -> None:
    made = plan(pool("l4", max_nodes=8), teams={"red": 100, "blue": None}, shares=[("red", "l4", 2), ("blue", "l4", 5)])

    cost = plan_cost(made, round_prices(), USE)

    assert {each.name: (each.gpus, str(each.figures.worst_usd), each.budget) for each in cost.teams} == {
        "red": (2, "1488.00", 100),
        "blue": (5, "3720.00", None),
    }
    assert str(cost.unallocated.worst_usd) == "744.00"


def test_a_team_is_shown_the_missing_prices_of_its_own_pools_alone() -> None:
    made = plan(*(pool("a"), pool("b", "queued")), teams={"red": None, "blue": None}, shares=[("red", "a", 1), ("blue", "b", 1)])

    cost = plan_cost(made, round_prices(), USE)

    assert {each.name: each.unknown for each in cost.teams} == {"red": (), "blue": ("queued price of g6.xlarge in us-east-1",)}


# By hand, at the shipped prices: 73 for the control plane, 1 for the key, 32.85 and 3.65 for the NAT, no interface endpoints; two
# m6i.xlarge at 0.192 for 730 h, and their disks of 50 GiB at 0.08.
EKS_FLOOR = Decimal("73.00") + Decimal("1.00") + Decimal("32.85") + Decimal("3.65") + Decimal("280.32") + Decimal("8.00")


def test_the_idle_cost_of_the_shipped_development_stack_on_eks_is_the_sum_of_its_parts() -> None:
    cost = plan_cost(shipped("dev-eks"), prices_of(VOCABULARIES[shipped("dev-eks").cloud].catalog), USE)

    assert cost.total.floor_usd == EKS_FLOOR
    assert cost.unknown == ()


@pytest.mark.parametrize("stack", CLOUD_STACKS)
def test_every_price_of_a_shipped_stack_has_a_source_with_a_date_or_is_reported_as_missing(stack: str) -> None:
    cost = plan_cost(shipped(stack), prices_of(VOCABULARIES[shipped(stack).cloud].catalog), USE)

    assert [each.name for each in cost.lines if not each.prices and not each.unknown] == []
    assert [each for each in cost.lines if each.figures is None and not each.unknown] == []
    assert all(price.source and price.as_of.year >= 2025 for each in cost.lines for price in each.prices)


few = settings(max_examples=60)
TEAMS = ("red", "green", "blue")
OWN_USE = shipped_use().model_copy(update={"bucket_gib": 7, "nat_gib": 3, "load_balancers": 1})
PRICES = round_prices(cluster="0.1", gp3_storage="0.0833", bucket_storage="0.023", nat_traffic="0.045")


@st.composite
def plans(draw: st.DrawFn, more_nodes: int = 0) -> Any:
    """Draw a plan of one to three pools, and the same with more nodes in the first."""
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
    cost = plan_cost(drawn[0], PRICES, OWN_USE)

    assert total(each.figures for each in cost.lines) == cost.total
    assert total([*(each.figures for each in cost.teams), cost.unallocated, cost.platform]) == cost.total
    assert total(each.figures for each in cost.lines if each.section.of_pools) == cost.total - cost.platform


@pytest.mark.slow
@few
@given(plans())
def test_the_floor_is_at_most_the_expected_cost_and_that_at_most_the_worst_case(drawn: Any) -> None:
    for each in plan_cost(drawn[0], PRICES, OWN_USE).lines:
        if each.figures is not None:
            figures = each.figures
            assert 0 <= figures.floor_usd <= figures.expected_usd <= figures.expected_at_most_usd <= figures.worst_usd, each
            assert each.unknown or figures.expected_at_most_usd == figures.expected_usd


@pytest.mark.slow
@few
@given(plans(more_nodes=2))
def test_the_differences_of_the_lines_sum_to_the_difference_of_the_plans(drawn: Any) -> None:
    before, after = (plan_cost(each, PRICES, OWN_USE) for each in drawn)

    found = compared(before, after)

    assert total(each.difference for each in found.lines) == found.difference
    assert {each.line.section for each in found.lines} <= {Section.POOL, Section.DISK}


@pytest.mark.slow
@few
@given(plans())
def test_no_amount_of_money_is_a_float_and_each_is_in_whole_cents(drawn: Any) -> None:
    amounts = list(values(plan_cost(drawn[0], PRICES, OWN_USE)))

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
    """Yield every value in a tree of dataclasses and tuples."""
    yield found
    if is_dataclass(found):
        for each in fields(found):
            yield from values(getattr(found, each.name))
    elif isinstance(found, tuple):
        for each in cast("tuple[Any, ...]", found):
            yield from values(each)
