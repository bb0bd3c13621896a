"""Outside us-east-1 the worst case is a bound or is reported as not being one, and no service is omitted silently."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from functools import cache
from pathlib import Path

import pytest

from flexspot.capacity.catalog.machines import Vendor
from flexspot.capacity.catalog.price_book import ServiceItem, prices_of
from flexspot.capacity.cost.costed_plan import CostedPlan, costed, shipped_use
from flexspot.capacity.cost.plan_cost import PlanCost, plan_cost
from flexspot.capacity.plan.build import plan_of_stack_file

STACKS = Path(__file__).resolve().parents[3] / "stacks"

# Name, vCPU, GiB, US dollars an hour.
SIZES = (
    ("c2d-highcpu-112", 112, "224", "4.197872"),
    ("c3-highmem-88", 88, "704", "5.821552"),
    ("c4-highcpu-2", 2, "4", "0.085052"),
    ("e2-highmem-16", 16, "128", "0.723197"),
    ("h3-standard-88", 88, "352", "4.9236"),
    ("m2-ultramem-416", 416, "11776", "84.22"),
    ("m3-ultramem-128", 128, "3904", "24.3648"),
    ("n1-highcpu-96", 96, "86.4", "3.400733"),
    ("n2-highmem-128", 128, "864", "7.706976"),
    ("n4-highmem-80", 80, "640", "4.97552"),
    ("t2a-standard-48", 48, "192", "1.848"),
    ("z3-highmem-88", 88, "704", "9.054804"),
)


@cache
def plan_of(stack: str) -> CostedPlan:
    return costed(plan_of_stack_file(STACKS / f"Pulumi.{stack}.yaml").plan)


def cost_of(stack: str, region: str, room: tuple[int, int] | None = None) -> PlanCost:
    """Return the cost of a shipped stack in another region, with another room for other work (vCPU and GiB)."""
    plan = plan_of(stack)
    spending = plan.spending
    if room is not None and spending.other_work is not None:
        spending = replace(spending, other_work=replace(spending.other_work, max_vcpu=room[0], max_memory_gib=room[1]))
    cloud = Vendor.AWS if plan.cloud == "eks" else Vendor.GCP
    return plan_cost(plan.model_copy(update={"region": region, "spending": spending}), prices_of(cloud), shipped_use())


def other_work_usd(cost: PlanCost) -> Decimal:
    [line] = [each for each in cost.lines if each.section == "other-work"]
    assert line.figures is not None
    return line.figures.worst_usd


@pytest.mark.parametrize("size", SIZES, ids=lambda each: each[0])
def test_no_size_that_pods_may_select_on_gke_costs_more_where_it_fills_the_room(size: tuple[str, int, str, str]) -> None:
    _, vcpu, memory, usd = size
    nodes = 4
    room = vcpu * nodes, int(Decimal(memory)) * nodes + nodes

    assert Decimal(usd) * nodes * 744 <= other_work_usd(cost_of("dev-gke", "us-central1", room))


@pytest.mark.parametrize("region", sorted({region for _, region, _ in prices_of(Vendor.GCP).prices}))
def test_in_every_region_of_gke_other_work_is_bounded_or_the_worst_case_says_that_it_is_not(region: str) -> None:
    """Families without GPUs have prices in fewer regions than machines with them; elsewhere the sum is "at least"."""
    cost = cost_of("dev-gke", region)
    missing = [each for each in cost.unbounded if "families" in each]

    assert bool(missing) is (region not in prices_of(Vendor.GCP).family_regions)
    assert missing or other_work_usd(cost) > 0


@pytest.mark.parametrize("region", sorted({region for _, region, _ in prices_of(Vendor.AWS).prices}))
def test_in_every_region_of_eks_the_worst_case_is_a_bound_or_says_that_it_is_not(region: str) -> None:
    """The families that Karpenter may use have prices in one region; elsewhere the sum is "at least"."""
    missing = [each for each in cost_of("dev-eks", region).unbounded if "families of machines without GPUs" in each]

    assert bool(missing) is (region != "us-east-1")


EKS_STACKS = ("dev-eks", "prod-eks")
BOOK = prices_of(Vendor.AWS)
NOWHERE = "nowhere-1"


def items_of(plan: CostedPlan) -> set[ServiceItem]:
    """Return all billed items other than machines, from the plan itself."""
    spending = plan.spending
    charges = [charge for disks in spending.disks for charge in disks.charges]
    charges += [] if spending.system_nodes is None else spending.system_nodes.charges
    charges += [] if spending.other_work is None else spending.other_work.charges
    return {each.item for each in charges if each.amount} | {each.item for each in spending.services}


def test_a_published_estimate_of_a_platform_in_ireland_is_that_of_the_book() -> None:
    """A public repository's estimate for eu-west-1 of 2026-09-14, from AWS's price lists by SKU, for 730 hours."""
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
@pytest.mark.parametrize("region", ["us-east-1", "eu-west-1", "eu-north-1", "sa-east-1", "ap-northeast-2", NOWHERE])
def test_no_service_of_a_shipped_stack_lacks_a_price_in_silence(stack: str, region: str) -> None:
    cost = cost_of(stack, region)
    lacking = {item for item in items_of(plan_of(stack)) if BOOK.find_service(item, region) is None}

    reported = {item for item in ServiceItem if f"price of {item} in {region}" in cost.unknown}
    assert lacking == reported
    assert not (lacking and cost.complete)
    if region == NOWHERE:
        assert {ServiceItem.NAT_GATEWAY, ServiceItem.GP3_STORAGE} <= reported, "or the test could not fail"


def test_the_guide_counts_the_regions_that_there_are() -> None:
    items = ("nat-gateway", "application-load-balancer", "bucket-storage", "gp3-storage", "interface-endpoint", "nat-traffic")
    known = {
        item: len({region for each, region in BOOK.services if each is item and region is not None}) for item in map(ServiceItem, items)
    }
    assert list(known.values()) == [23, 23, 23, 13, 9, 9]
    guide = " ".join((STACKS.parent / "docs/guides/costs.md").read_text().split())
    assert "application load balancers and S3 have prices in 23 regions; gp3 disks in 13" in guide
