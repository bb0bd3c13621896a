"""What AWS bills besides machines outside of us-east-1: by hand, by somebody else's estimate, and never left out in silence."""

from __future__ import annotations

from decimal import Decimal
from functools import cache
from pathlib import Path

import pytest

from capacity.catalog.capacity_type import CapacityType
from capacity.catalog.machines import Cloud, machines_of
from capacity.catalog.price_book import ServiceItem, prices_of
from capacity.cost.costed_plan import CostedPlan, costed, shipped_use
from capacity.cost.figures import Section
from capacity.cost.plan_cost import PlanCost, plan_cost
from capacity.plan.build import plan_of_stack_file

STACKS = Path(__file__).resolve().parents[3] / "stacks"
EKS_STACKS = ("dev-eks", "prod-eks")
BOOK = prices_of(Cloud.AWS)
NOWHERE = "nowhere-1"


@cache
def plan_of(stack: str) -> CostedPlan:
    return costed(plan_of_stack_file(STACKS / f"Pulumi.{stack}.yaml").plan)


def cost_of(stack: str, region: str) -> PlanCost:
    return plan_cost(plan_of(stack).model_copy(update={"region": region}), BOOK, shipped_use())


def regions_with_gpus() -> list[str]:
    """Where the on-demand price of at least two machines with GPUs is known."""
    machines = machines_of(Cloud.AWS)
    priced = [
        region
        for name, region, kind in BOOK.prices
        if kind is CapacityType.ON_DEMAND and name in machines and machines[name].gpu is not None
    ]
    return sorted({each for each in priced if priced.count(each) >= 2})


def items_of(plan: CostedPlan) -> set[ServiceItem]:
    """All that is billed besides machines, read from the plan itself."""
    spending = plan.spending
    charges = [charge for disks in spending.disks for charge in disks.charges]
    charges += [] if spending.system_nodes is None else spending.system_nodes.charges
    charges += [] if spending.other_work is None else spending.other_work.charges
    return {each.item for each in charges if each.amount} | {each.item for each in spending.services}


def test_a_stack_in_frankfurt_costs_what_its_services_come_to_by_hand() -> None:
    """AWS's figures of eu-central-1, typed here: 0.0952 a GiB-month, 0.052 an hour of a NAT gateway, 0.10 of EKS, 0.005 of an address.

    dev-eks has two to three system nodes of 50 GiB (six in an upgrade, 2.5 expected), up to eight nodes with an L4 and four with a T4 of 30
    GiB, one NAT gateway with its address, one key.
    """
    gib, nat, cluster, address = Decimal("0.0952"), Decimal("0.052"), Decimal("0.10"), Decimal("0.005")
    expected = {
        "disks of system nodes": (50 * gib * 2, 50 * gib * 6),
        "control plane": (cluster * 730, cluster * 744),
        "key of the cluster's secrets": (Decimal(1), Decimal(1)),
        "NAT gateways": (nat * 730, nat * 744),
        "addresses of the NAT gateways": (address * 730, address * 744),
    }
    cost = cost_of("dev-eks", "eu-central-1")
    lines = {each.name: each.figures for each in cost.lines if each.section in (Section.SERVICE, Section.SYSTEM)}
    disks = {each.name: each.figures for each in cost.lines if each.section is Section.DISK}

    for name, (idle, worst) in expected.items():
        figures = lines[name]
        assert figures is not None
        assert (figures.floor_usd, figures.worst_usd) == (round(idle, 2), round(worst, 2)), name
    assert {name: each and each.worst_usd for name, each in disks.items()} == {
        "l4-spot": round(30 * gib * 8, 2),
        "t4-spot": round(30 * gib * 4, 2),
    }
    # The two least system nodes at 0.23 an hour, and the above: that is all there is with nothing running.
    assert cost.total.floor_usd == Decimal("335.80") + Decimal("9.52") + Decimal("73.00") + 1 + Decimal("37.96") + Decimal("3.65")


def test_somebody_elses_estimate_of_a_platform_in_ireland_is_that_of_the_book() -> None:
    """A public repository's estimate for eu-west-1 of 2026-09-14, out of AWS's price lists by their SKUs: its lines, for 730 hours."""
    lines = {
        ServiceItem.CLUSTER: (Decimal(2 * 730), "146.00"),
        ServiceItem.NAT_GATEWAY: (Decimal(4 * 730), "140.16"),
        ServiceItem.PUBLIC_ADDRESS: (Decimal(4 * 730), "14.60"),
        ServiceItem.APPLICATION_LOAD_BALANCER: (Decimal(2 * 730), "36.79"),
        ServiceItem.INTERFACE_ENDPOINT: (Decimal(4 * 3 * 730), "96.36"),
        ServiceItem.GP3_STORAGE: (Decimal(9 * 30), "23.76"),
    }
    for item, (amount, usd) in lines.items():
        price = BOOK.find_service(item, "eu-west-1")
        assert price is not None, item
        assert round(price.usd * amount, 2) == Decimal(usd), item


@pytest.mark.parametrize("stack", EKS_STACKS)
@pytest.mark.parametrize("region", [*regions_with_gpus(), "sa-east-1", "ap-northeast-2", NOWHERE])
def test_no_service_of_a_shipped_stack_lacks_a_price_in_silence(stack: str, region: str) -> None:
    cost = cost_of(stack, region)
    lacking = {item for item in items_of(plan_of(stack)) if BOOK.find_service(item, region) is None}

    told = {item for item in ServiceItem if f"price of {item} in {region}" in cost.unknown}
    assert lacking == told
    assert not (lacking and cost.complete)
    if region == NOWHERE:
        assert {ServiceItem.NAT_GATEWAY, ServiceItem.GP3_STORAGE} <= told, "or the test could not fail"


def test_the_guide_counts_the_regions_that_there_are() -> None:
    known = {
        item: len({region for each, region in BOOK.services if each is item and region is not None})
        for item in (
            ServiceItem.NAT_GATEWAY,
            ServiceItem.APPLICATION_LOAD_BALANCER,
            ServiceItem.BUCKET_STORAGE,
            ServiceItem.GP3_STORAGE,
            ServiceItem.INTERFACE_ENDPOINT,
            ServiceItem.NAT_TRAFFIC,
        )
    }
    assert list(known.values()) == [23, 23, 23, 13, 9, 9]
    guide = " ".join((STACKS.parent / "docs/guides/costs.md").read_text().split())
    assert "application load balancers and S3 have prices in 23 regions; gp3 disks in 13" in guide
