"""Money and cloud quota against what the plan can use."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from resolved_fixtures import pool, settings_of, told

from capacity.catalog.capacity_type import CapacityType
from capacity.catalog.machines import Cloud
from capacity.catalog.price_book import HOURS_OF_A_MONTH, prices_of
from capacity.plan.build import build_plan
from capacity.plan.checks.shares import budgets_cover_what_is_guaranteed, cloud_quota_covers_the_ceilings

if TYPE_CHECKING:
    from decimal import Decimal


def month_of(machine: str, capacity_type: CapacityType) -> Decimal:
    price = prices_of(Cloud.AWS).find(machine, "us-east-1", capacity_type)
    assert price is not None
    return price.usd_per_hour * HOURS_OF_A_MONTH


TWO_L4 = int(2 * month_of("g6.xlarge", CapacityType.SPOT)) + 1
"""What the share of the one team costs, rounded up."""


@pytest.mark.parametrize("path", ["budget.monthly_usd", "teams.0.monthly_budget_usd"])
def test_a_budget_below_what_is_guaranteed_gets_a_warning(path: str) -> None:
    assert told(budgets_cover_what_is_guaranteed, "local", {path: TWO_L4 - 1}) == [f"warned: budget-below-guarantee at {path}"]
    assert told(budgets_cover_what_is_guaranteed, "local", {path: TWO_L4}) == []


def test_a_budget_covers_the_gpus_of_services_too() -> None:
    services: dict[str, Any] = {
        "pools.1": pool("l4-on-demand", "g6.xlarge", "on-demand", "inference"),
        "teams.0.unqueued": {"l4-on-demand": 1},
    }
    both = TWO_L4 + int(month_of("g6.xlarge", CapacityType.ON_DEMAND)) + 1

    assert told(budgets_cover_what_is_guaranteed, "local", services | {"budget.monthly_usd": TWO_L4}) == [
        "warned: budget-below-guarantee at budget.monthly_usd"
    ]
    assert told(budgets_cover_what_is_guaranteed, "local", services | {"budget.monthly_usd": both}) == []


def test_a_pool_without_a_price_is_named_where_the_budget_is_too_small_without_it() -> None:
    two_pools: dict[str, Any] = {
        "pools.1": pool("a10g-spot", "g5.xlarge", "spot", "training"),
        "teams.0.shares": {"l4-spot": 2, "a10g-spot": 2},
        "budget.monthly_usd": 1,
        "control_plane": {"access": "public_cidrs", "cidrs": ["203.0.113.0/24"]},
    }
    shipped = prices_of(Cloud.AWS)
    book = replace(shipped, prices={key: price for key, price in shipped.prices.items() if price.machine != "g5.xlarge"})

    [warning] = build_plan(settings_of("eks", two_pools), prices=book).warnings

    assert "used around the clock, without a10g-spot, whose price is not known" in warning.text


def test_a_reservation_costs_what_on_demand_costs() -> None:
    reserved: dict[str, Any] = {"pools.0.capacity_type": "reserved", "pools.0.reservation": {"ids": ["cr-0a1b2c3d"]}}
    month = int(2 * month_of("g6.xlarge", CapacityType.ON_DEMAND)) + 1

    assert told(budgets_cover_what_is_guaranteed, "eks", reserved | {"budget.monthly_usd": month - 1}) == [
        "warned: budget-below-guarantee at budget.monthly_usd"
    ]
    assert told(budgets_cover_what_is_guaranteed, "eks", reserved | {"budget.monthly_usd": month}) == []


def test_spot_and_flex_start_use_the_same_quota_of_the_project() -> None:
    both: dict[str, Any] = {"pools.1": pool("l4-flex", "g2-standard-8", "flex-start", "training")}

    assert told(cloud_quota_covers_the_ceilings, "gke", both | {"gpu_quotas": {"nvidia-l4": {"preemptible": 7}}}) == [
        "refused: cloud-quota-too-small at gpu_quotas.nvidia-l4.preemptible"
    ]
    assert told(cloud_quota_covers_the_ceilings, "gke", both | {"gpu_quotas": {"nvidia-l4": {"preemptible": 8}}}) == []


def test_on_demand_has_a_quota_of_its_own() -> None:
    services: dict[str, Any] = {"pools.1": pool("l4-on-demand", "g2-standard-8", "on-demand", "inference")}

    assert told(cloud_quota_covers_the_ceilings, "gke", services | {"gpu_quotas": {"nvidia-l4": {"on_demand": 3}}}) == [
        "refused: cloud-quota-too-small at gpu_quotas.nvidia-l4.on_demand"
    ]
    assert told(cloud_quota_covers_the_ceilings, "gke", services | {"gpu_quotas": {"nvidia-l4": {"on_demand": 4}}}) == []
