"""EKS Auto Mode's fee for running nodes: a part of each machine's on-demand price, whatever the machine itself costs."""

from __future__ import annotations

from decimal import Decimal

import pytest
from auto_mode_settings import auto_mode_settings

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.machines import Vendor, machines_of
from flexspot.capacity.catalog.price_book import PriceFile, prices_of
from flexspot.capacity.cost.costed_plan import costed, shipped_use
from flexspot.capacity.cost.plan_cost import PlanCost, Section, plan_cost
from flexspot.capacity.plan.build import build_plan
from flexspot.capacity.settings.stack_file import parse_settings

BOOK = prices_of(Vendor.AWS)


def cost(mode: str) -> PlanCost:
    settings = auto_mode_settings()
    if mode == "standard":
        del settings["cluster"]["mode"]
        settings["cluster"]["ami"] = "al2023@v20260903"
        settings["budget"] = {"monthly_usd": 90_000}
    plan = build_plan(parse_settings(settings, "test"), "test")
    return plan_cost(costed(plan), BOOK, shipped_use())


@pytest.mark.parametrize(
    "machine,percent",
    [
        # Lines of AWS's list as public repositories record them. The last one includes the deduction for GPUs.
        ("c6g.large", Decimal("0.00924") / Decimal("0.077")),
        ("m7i.large", Decimal("0.01562") / Decimal("0.1302")),
        ("g6.xlarge", Decimal("0.09104") / Decimal("1.1672")),
        ("gr6.4xlarge", Decimal("0.12") * Decimal("0.65")),
        ("p5.48xlarge", Decimal("0.12") * Decimal("0.40")),
        ("trn1.2xlarge", Decimal("0.12") * Decimal("0.40")),
    ],
)
def test_the_fee_agrees_with_records_of_awss_list(machine: str, percent: Decimal) -> None:
    fee = next(each for each in BOOK.node_fees if each.is_of(machine))

    assert abs(fee.percent / 100 - percent) < Decimal("0.0001")
    assert not BOOK.source_of(fee).verified, "it was never checked against AWS's own list"


def test_every_node_of_auto_mode_costs_its_machine_and_the_fee_and_no_other_cluster_has_one() -> None:
    auto, standard = cost("auto"), cost("standard")
    fees = {each.name: each.figures for each in auto.lines if each.section is Section.FEE}

    assert not any("fee" in each.name or each.section is Section.FEE for each in standard.lines)
    assert fees.keys() == {"l4-spot", "t4-spot", "l40s-reserved", "l40s-on-demand"}
    # Spot nodes pay the fee of the on-demand price. At worst all eight are of the most expensive of the three machines.
    dearest = max(_on_demand(each) for each in ("g6.xlarge", "g6.2xlarge", "g6.4xlarge"))
    spot = fees["l4-spot"]
    assert spot is not None
    assert spot.worst_usd == (8 * dearest * Decimal("0.078") * 744).quantize(Decimal("0.01"))
    assert spot.floor_usd == 0, "no node, no fee"
    reserved = fees["l40s-reserved"]
    assert reserved is not None
    assert reserved.floor_usd == 0, "a reservation that nothing runs on has no node"


def _on_demand(machine: str) -> Decimal:
    price = BOOK.find(machine, "us-east-1", CapacityType.ON_DEMAND)
    assert price is not None
    return price.usd_per_hour


def test_controllers_are_always_on_as_few_nodes_as_they_fit_on_and_these_pay_the_fee_too() -> None:
    lines = {each.name: each.figures for each in cost("auto").lines}
    nodes, fee = lines["system nodes"], lines["Auto Mode's fee on system nodes"]

    assert nodes is not None
    assert fee is not None
    # Two pods of Kueue with 500m, two of metrics-server with 100m, and small ones, on one m6i.xlarge of 3920m.
    assert nodes.floor_usd == (_on_demand("m6i.xlarge") * 730).quantize(Decimal("0.01"))
    assert fee.floor_usd == (_on_demand("m6i.xlarge") * Decimal("0.12") * 730).quantize(Decimal("0.01"))


def test_a_custom_price_file_may_set_another_fee() -> None:
    own = PriceFile.model_validate(
        {
            "cloud": "aws",
            "sources": {"ours": {"citation": "our contract with AWS", "as_of": "2026-11-01", "verified": True}},
            "node_fees": [{"categories": ["g"], "percent": "5", "source": "ours"}],
        }
    )
    book = BOOK.with_rows_of(own, "prices.yaml")

    found = book.node_fee("g6.xlarge", "us-east-1")
    assert found is not None
    assert found[1] == _on_demand("g6.xlarge") * Decimal("0.05")
    assert book.source_of(found[0]).verified
    other = book.node_fee("m6i.xlarge", "us-east-1")
    assert other is not None
    assert other[0].percent == 12


def test_a_machine_without_an_on_demand_price_has_an_unknown_fee_and_none_of_zero() -> None:
    without = [name for name in machines_of(Vendor.AWS) if BOOK.find(name, "us-east-1", CapacityType.ON_DEMAND) is None]

    assert without
    assert {BOOK.node_fee(each, "us-east-1") for each in without} == {None}
