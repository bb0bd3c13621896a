"""The nodes of a report by machine: they sum to the report, to the cent, and hold what a bill has in lines of its own apart."""

from __future__ import annotations

from decimal import Decimal

import hypothesis.strategies as st
from chargeback_months import HOUR, Month
from hypothesis import given, settings

from capacity.catalog.price_book import prices_of
from capacity.chargeback.charging import charge
from capacity.chargeback.node_costs import PriceTimes, cost_nodes
from capacity.chargeback.report import IdlePolicy


def test_nodes_are_told_apart_by_machine_and_how_they_were_bought() -> None:
    month = Month()
    month.node("a", 0, 10 * HOUR)
    month.node("b", 0, 5 * HOUR)
    month.node("c", 0, HOUR, labels={"karpenter.sh/capacity-type": "on-demand"})
    month.node("d", 0, HOUR, labels={"node.kubernetes.io/instance-type": "x9.metal"})
    found = {(each.machine, each.capacity_type): each for each in month.report(IdlePolicy.CENTRAL).nodes}

    spot, unknown = found["p4d.24xlarge", "spot"], found["x9.metal", "spot"]
    assert (spot.cloud, spot.region, spot.nodes, spot.node_seconds, spot.unpriced_seconds) == ("aws", "us-east-1", 2, 15 * HOUR, 0)
    # 7.6435 and 21.957642 USD an hour.
    assert (spot.usd, found["p4d.24xlarge", "on-demand"].usd) == (Decimal("114.65"), Decimal("21.96"))
    assert (unknown.usd, unknown.unpriced_seconds) == (0, HOUR)


def test_the_fee_of_auto_mode_is_apart() -> None:
    month = Month()
    month.node("auto", 0, 10 * HOUR, labels={"flexspot.dev/environment": "auto"})
    books = month.books()
    report = charge(books, cost_nodes(books, PriceTimes(prices_of), auto_mode={"auto"}), idle=IdlePolicy.CENTRAL, asked=books.period)

    # 76.435 of the machine, and 4.8 % of the 219.57642 that it costs on demand.
    assert {each.capacity_type: (each.usd, each.node_seconds) for each in report.nodes} == {
        "spot": (Decimal("76.43"), 10 * HOUR),
        "eks-auto-mode": (Decimal("10.54"), 10 * HOUR),
    }
    assert report.node_usd == Decimal("86.97")


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(1, 500), st.sampled_from(["spot", "on-demand", "reserved"])), min_size=1, max_size=6))
def test_they_sum_to_the_report_to_the_cent(nodes: list[tuple[int, str]]) -> None:
    month = Month(hours=9)
    for number, (minutes, bought) in enumerate(nodes):
        month.node(f"n{number}", 0, minutes * 60, labels={"karpenter.sh/capacity-type": bought})
    report = month.report(IdlePolicy.OWNER)

    assert sum((each.usd for each in report.nodes), Decimal(0)) == report.node_usd
    assert sum(each.node_seconds for each in report.nodes) == report.node_seconds
