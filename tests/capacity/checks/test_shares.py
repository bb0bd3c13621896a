"""Shares, cohorts and budgets of teams, and the cloud's quota."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from resolved_fixtures import pool, settings_of, told

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.machines import Vendor
from flexspot.capacity.catalog.price_book import HOURS_OF_A_MONTH, prices_of
from flexspot.capacity.plan.build import build_plan
from flexspot.capacity.plan.checks.shares import (
    borrowing_has_somebody_to_borrow_from,
    budgets_cover_what_is_guaranteed,
    cloud_quota_covers_the_ceilings,
    every_queued_pool_has_an_owner_or_a_borrower,
    parents_exist_and_end_at_the_root,
    shares_are_of_queued_pools,
    shares_fit_into_their_pool,
    unqueued_gpus_are_of_unqueued_pools,
    what_is_stopped_is_a_queue,
)

if TYPE_CHECKING:
    from decimal import Decimal


SERVICES: dict[str, Any] = {"pools.1": pool("l4-on-demand", "g6.xlarge", "on-demand", "inference")}
"""A pool that no queue gives away."""


def test_a_cohorts_share_is_of_a_pool_that_serves_a_queue() -> None:
    group: dict[str, Any] = {"cohorts": [{"name": "research", "shares": {"t4-spot": 1}}]}

    assert told(shares_are_of_queued_pools, "local", group) == ["refused: share-of-no-queued-pool at cohorts.0.shares.t4-spot"]
    assert told(shares_are_of_queued_pools, "local", {"cohorts": [{"name": "research", "shares": {"l4-spot": 1}}]}) == []


def test_the_shares_of_teams_and_cohorts_are_no_more_than_their_pool() -> None:
    whole: dict[str, Any] = {"teams.1": {"name": "blue", "shares": {"l4-spot": 2}}}

    assert told(shares_fit_into_their_pool, "local", whole | {"cohorts": [{"name": "research", "shares": {"l4-spot": 1}}]}) == [
        "refused: quota-above-ceiling at teams"
    ]
    assert told(shares_fit_into_their_pool, "local", whole) == []


def test_the_gpus_of_unqueued_classes_are_not_shared_out_too() -> None:
    mixed: dict[str, Any] = {"pools.0.serves": ["training", "inference"], "classes.inference": {"capacity": ["spot"], "fallback": "quota"}}

    assert told(shares_fit_into_their_pool, "local", mixed | {"teams.0.unqueued": {"l4-spot": 3}}) == [
        "refused: quota-above-ceiling at teams"
    ]
    assert told(shares_fit_into_their_pool, "local", mixed | {"teams.0.unqueued": {"l4-spot": 2}}) == []


def test_more_unqueued_gpus_than_a_pool_can_have_get_a_warning() -> None:
    assert told(unqueued_gpus_are_of_unqueued_pools, "local", SERVICES | {"teams.0.unqueued": {"l4-on-demand": 5}}) == [
        "warned: unqueued-gpus-above-ceiling at teams"
    ]
    assert told(unqueued_gpus_are_of_unqueued_pools, "local", SERVICES | {"teams.0.unqueued": {"l4-on-demand": 4}}) == []


def test_an_unqueued_pool_that_nobody_may_use_gets_a_warning() -> None:
    assert told(unqueued_gpus_are_of_unqueued_pools, "local", SERVICES) == ["warned: pool-that-nobody-may-use at teams"]
    assert told(unqueued_gpus_are_of_unqueued_pools, "local", SERVICES | {"teams.0.unqueued": {"l4-on-demand": 1}}) == []


def test_a_queued_pool_that_nobody_may_use_gets_a_warning() -> None:
    assert told(every_queued_pool_has_an_owner_or_a_borrower, "local", {"teams.0.shares": {}}) == [
        "warned: pool-that-nobody-may-use at teams"
    ]
    assert told(every_queued_pool_has_an_owner_or_a_borrower, "local", {"teams.0.shares": {"l4-spot": 0}}) == []


@pytest.mark.parametrize("names", ["abc", "bca", "cba"])
def test_a_ring_of_cohorts_is_told_once_wherever_it_is_written_and_whoever_is_inside(names: str) -> None:
    ring: dict[str, str] = dict(zip("abc", "bca", strict=True))
    cohorts = [{"name": "inside", "parent": "c"}, *({"name": each, "parent": ring[each]} for each in names)]

    assert told(parents_exist_and_end_at_the_root, "local", {"cohorts": cohorts}) == [
        f"refused: cohort-cycle at cohorts.{1 + names.index('a')}.parent"
    ]


def test_two_rings_are_two_mistakes() -> None:
    rings = [{"name": name, "parent": parent} for name, parent in ("ab", "ba", "cd", "dc")]

    assert told(parents_exist_and_end_at_the_root, "local", {"cohorts": rings}) == [
        "refused: cohort-cycle at cohorts.0.parent",
        "refused: cohort-cycle at cohorts.2.parent",
    ]


@pytest.mark.parametrize("field,written", [("weight", 2), ("lending_limits", {"l4-spot": 1}), ("borrowing_limits", {"l4-spot": 1})])
def test_a_team_alone_in_its_tree_has_nobody_to_share_with(field: str, written: object) -> None:
    alone: dict[str, Any] = {"teams.0.shares": {"l4-spot": 4}, f"teams.0.{field}": written}

    assert told(borrowing_has_somebody_to_borrow_from, "local", alone) == [f"warned: alone-in-cohort at teams.0.{field}"]
    with_another = alone | {"teams.1": {"name": "blue", "shares": {"l4-spot": 0}}}
    assert told(borrowing_has_somebody_to_borrow_from, "local", with_another) == []


def test_a_team_alone_may_borrow_what_nobody_owns() -> None:
    assert told(borrowing_has_somebody_to_borrow_from, "local", {"teams.0.borrowing_limits": {"l4-spot": 1}}) == []


def test_only_a_team_with_a_queue_is_stopped() -> None:
    assert told(what_is_stopped_is_a_queue, "local", {"teams.0.stop": "drain"}) == []
    assert told(what_is_stopped_is_a_queue, "local", {"teams.0.shares": {}}) == []
    assert told(what_is_stopped_is_a_queue, "local", {"teams.0.stop": "drain", "teams.0.shares": {}}) == [
        "warned: stop-without-queue at teams.0.stop"
    ]


def month_of(machine: str, capacity_type: CapacityType) -> Decimal:
    price = prices_of(Vendor.AWS).find(machine, "us-east-1", capacity_type)
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
    shipped = prices_of(Vendor.AWS)
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
