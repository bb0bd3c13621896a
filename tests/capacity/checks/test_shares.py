"""Checks of shares, cohorts and budgets of teams, and of cloud quota."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from resolved_fixtures import pool, reports, settings_of

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.machines import Vendor
from flexspot.capacity.catalog.price_book import HOURS_OF_A_MONTH, prices_of
from flexspot.capacity.plan.build import build_plan
from flexspot.capacity.plan.checks.shares import (
    budgets_cover_guaranteed_shares,
    cloud_quota_covers_the_ceilings,
    every_queued_pool_has_an_owner_or_a_borrower,
    limits_need_another_queue,
    parents_exist_and_end_at_the_root,
    pools_of_a_flavor_have_nodes_of_one_size,
    shares_are_of_queued_pools,
    shares_are_whole_nodes,
    shares_fit_into_their_pool,
    shares_hold_on_whole_nodes_only,
    stopped_teams_have_a_queue,
    unqueued_gpus_are_of_unqueued_pools,
)

if TYPE_CHECKING:
    from decimal import Decimal


SERVICES: dict[str, Any] = {"pools.1": pool("l4-on-demand", "g6.xlarge", "on-demand", "inference")}
"""A pool that only unqueued classes use."""


def test_a_cohorts_share_must_be_of_a_queued_pool() -> None:
    group: dict[str, Any] = {"cohorts": [{"name": "research", "shares": {"t4-spot": 1}}]}

    assert reports(shares_are_of_queued_pools, "local", group) == ["refused: share-of-no-queued-pool at cohorts.0.shares.t4-spot"]
    assert reports(shares_are_of_queued_pools, "local", {"cohorts": [{"name": "research", "shares": {"l4-spot": 1}}]}) == []


def test_shares_of_teams_and_cohorts_above_their_pool_are_refused() -> None:
    whole: dict[str, Any] = {"teams.1": {"name": "blue", "shares": {"l4-spot": 2}}}

    assert reports(shares_fit_into_their_pool, "local", whole | {"cohorts": [{"name": "research", "shares": {"l4-spot": 1}}]}) == [
        "refused: quota-above-ceiling at teams"
    ]
    assert reports(shares_fit_into_their_pool, "local", whole) == []


LARGE: dict[str, Any] = {"pools.0.machine": "p5.48xlarge", "teams.1": {"name": "blue", "shares": {"l4-spot": 8}}}
"""A pool of machines with eight GPUs, which two teams share."""


def test_shares_and_limits_of_parts_of_nodes_that_teams_share_are_refused() -> None:
    parts: dict[str, Any] = {"teams.0.shares": {"l4-spot": 12}, "teams.0.borrowing_limits": {"l4-spot": 4}}

    assert reports(shares_are_whole_nodes, "local", LARGE | parts) == [
        "refused: part-of-a-node at teams.0.shares.l4-spot",
        "refused: part-of-a-node at teams.0.borrowing_limits.l4-spot",
    ]
    assert reports(shares_are_whole_nodes, "local", LARGE | {"teams.0.shares": {"l4-spot": 16}}) == []
    assert reports(shares_are_whole_nodes, "local", LARGE | parts | {"pools.0.node_sharing": True}) == []
    assert reports(shares_are_whole_nodes, "local", {"pools.0.machine": "p5.48xlarge"} | parts) == [], "one team has all of it"


def test_nodes_of_teams_that_pods_share_get_a_warning() -> None:
    assert reports(shares_hold_on_whole_nodes_only, "local", LARGE | {"pools.0.node_sharing": True}) == [
        "warned: guarantee-not-held at pools.0.node_sharing"
    ]
    assert reports(shares_hold_on_whole_nodes_only, "local", LARGE) == []


def test_nodes_of_different_sizes_behind_one_flavor_are_refused_if_pods_use_one_of_them_as_a_whole() -> None:
    climbing: dict[str, Any] = {"classes.training": {"fallback": "stock-out", "capacity": ["spot", "on-demand"]}}
    small = climbing | {"pools.1": pool("l4-small", "g6.xlarge", "on-demand", "training"), "pools.0.machine": "g6.12xlarge"}
    shared = small | {"teams.1": {"name": "blue", "shares": {"l4-spot": 4}}}

    assert reports(pools_of_a_flavor_have_nodes_of_one_size, "local", shared) == ["refused: nodes-of-different-sizes at pools.0"]
    assert reports(pools_of_a_flavor_have_nodes_of_one_size, "local", shared | {"pools.0.node_sharing": True}) == []
    assert reports(pools_of_a_flavor_have_nodes_of_one_size, "local", shared | {"pools.1.machine": "g6.12xlarge"}) == []
    assert reports(pools_of_a_flavor_have_nodes_of_one_size, "local", small) == []


def test_gpus_of_unqueued_classes_count_against_the_ceiling() -> None:
    mixed: dict[str, Any] = {"pools.0.serves": ["training", "inference"], "classes.inference": {"capacity": ["spot"], "fallback": "quota"}}

    assert reports(shares_fit_into_their_pool, "local", mixed | {"teams.0.unqueued": {"l4-spot": 3}}) == [
        "refused: quota-above-ceiling at teams"
    ]
    assert reports(shares_fit_into_their_pool, "local", mixed | {"teams.0.unqueued": {"l4-spot": 2}}) == []


def test_more_unqueued_gpus_than_the_pools_ceiling_get_a_warning() -> None:
    assert reports(unqueued_gpus_are_of_unqueued_pools, "local", SERVICES | {"teams.0.unqueued": {"l4-on-demand": 5}}) == [
        "warned: unqueued-gpus-above-ceiling at teams"
    ]
    assert reports(unqueued_gpus_are_of_unqueued_pools, "local", SERVICES | {"teams.0.unqueued": {"l4-on-demand": 4}}) == []


def test_an_unqueued_pool_that_no_team_may_use_gets_a_warning() -> None:
    assert reports(unqueued_gpus_are_of_unqueued_pools, "local", SERVICES) == ["warned: pool-that-nobody-may-use at teams"]
    assert reports(unqueued_gpus_are_of_unqueued_pools, "local", SERVICES | {"teams.0.unqueued": {"l4-on-demand": 1}}) == []


def test_a_queued_pool_that_no_team_may_use_gets_a_warning() -> None:
    assert reports(every_queued_pool_has_an_owner_or_a_borrower, "local", {"teams.0.shares": {}}) == [
        "warned: pool-that-nobody-may-use at teams"
    ]
    assert reports(every_queued_pool_has_an_owner_or_a_borrower, "local", {"teams.0.shares": {"l4-spot": 0}}) == []


@pytest.mark.parametrize("names", ["abc", "bca", "cba"])
def test_a_cycle_of_cohorts_is_reported_once(names: str) -> None:
    cycle: dict[str, str] = dict(zip("abc", "bca", strict=True))
    cohorts = [{"name": "inside", "parent": "c"}, *({"name": each, "parent": cycle[each]} for each in names)]

    assert reports(parents_exist_and_end_at_the_root, "local", {"cohorts": cohorts}) == [
        f"refused: cohort-cycle at cohorts.{1 + names.index('a')}.parent"
    ]


def test_two_cycles_are_two_problems() -> None:
    cycles = [{"name": name, "parent": parent} for name, parent in ("ab", "ba", "cd", "dc")]

    assert reports(parents_exist_and_end_at_the_root, "local", {"cohorts": cycles}) == [
        "refused: cohort-cycle at cohorts.0.parent",
        "refused: cohort-cycle at cohorts.2.parent",
    ]


@pytest.mark.parametrize("field,written", [("weight", 2), ("lending_limits", {"l4-spot": 1}), ("borrowing_limits", {"l4-spot": 1})])
def test_limits_and_weights_of_a_team_alone_in_its_tree_get_a_warning(field: str, written: object) -> None:
    alone: dict[str, Any] = {"teams.0.shares": {"l4-spot": 4}, f"teams.0.{field}": written}

    assert reports(limits_need_another_queue, "local", alone) == [f"warned: alone-in-cohort at teams.0.{field}"]
    with_another = alone | {"teams.1": {"name": "blue", "shares": {"l4-spot": 0}}}
    assert reports(limits_need_another_queue, "local", with_another) == []


def test_a_team_alone_may_borrow_unowned_gpus() -> None:
    assert reports(limits_need_another_queue, "local", {"teams.0.borrowing_limits": {"l4-spot": 1}}) == []


def test_stopping_a_team_without_a_queue_gets_a_warning() -> None:
    assert reports(stopped_teams_have_a_queue, "local", {"teams.0.stop": "drain"}) == []
    assert reports(stopped_teams_have_a_queue, "local", {"teams.0.shares": {}}) == []
    assert reports(stopped_teams_have_a_queue, "local", {"teams.0.stop": "drain", "teams.0.shares": {}}) == [
        "warned: stop-without-queue at teams.0.stop"
    ]


def month_of(machine: str, capacity_type: CapacityType) -> Decimal:
    price = prices_of(Vendor.AWS).find(machine, "us-east-1", capacity_type)
    assert price is not None
    return price.usd_per_hour * HOURS_OF_A_MONTH


TWO_L4 = int(2 * month_of("g6.xlarge", CapacityType.SPOT)) + 1
"""Cost of the team's share, rounded up."""


@pytest.mark.parametrize("path", ["budget.monthly_usd", "teams.0.monthly_budget_usd"])
def test_a_budget_below_the_guaranteed_shares_gets_a_warning(path: str) -> None:
    assert reports(budgets_cover_guaranteed_shares, "local", {path: TWO_L4 - 1}) == [f"warned: budget-below-guarantee at {path}"]
    assert reports(budgets_cover_guaranteed_shares, "local", {path: TWO_L4}) == []


def test_a_budget_must_also_cover_the_gpus_of_services() -> None:
    services: dict[str, Any] = {
        "pools.1": pool("l4-on-demand", "g6.xlarge", "on-demand", "inference"),
        "teams.0.unqueued": {"l4-on-demand": 1},
    }
    both = TWO_L4 + int(month_of("g6.xlarge", CapacityType.ON_DEMAND)) + 1

    assert reports(budgets_cover_guaranteed_shares, "local", services | {"budget.monthly_usd": TWO_L4}) == [
        "warned: budget-below-guarantee at budget.monthly_usd"
    ]
    assert reports(budgets_cover_guaranteed_shares, "local", services | {"budget.monthly_usd": both}) == []


def test_the_warning_about_a_budget_names_pools_without_a_price() -> None:
    two_pools: dict[str, Any] = {
        "pools.1": pool("a10g-spot", "g5.xlarge", "spot", "training"),
        "teams.0.shares": {"l4-spot": 2, "a10g-spot": 2},
        "budget.monthly_usd": 1,
        "control_plane": {"access": "public_cidrs", "cidrs": ["203.0.113.0/24"]},
    }
    shipped = prices_of(Vendor.AWS)
    book = replace(shipped, prices={key: price for key, price in shipped.prices.items() if price.machine != "g5.xlarge"})

    [warning] = build_plan(settings_of("eks", two_pools), prices=book).warnings

    assert "cost around the clock, not counting a10g-spot without a known price" in warning.text


def test_a_reservation_has_the_on_demand_price() -> None:
    reserved: dict[str, Any] = {"pools.0.capacity_type": "reserved", "pools.0.reservation": {"ids": ["cr-0a1b2c3d"]}}
    month = int(2 * month_of("g6.xlarge", CapacityType.ON_DEMAND)) + 1

    assert reports(budgets_cover_guaranteed_shares, "eks", reserved | {"budget.monthly_usd": month - 1}) == [
        "warned: budget-below-guarantee at budget.monthly_usd"
    ]
    assert reports(budgets_cover_guaranteed_shares, "eks", reserved | {"budget.monthly_usd": month}) == []


def test_spot_and_flex_start_use_the_same_quota_of_the_project() -> None:
    both: dict[str, Any] = {"pools.1": pool("l4-flex", "g2-standard-8", "flex-start", "training")}

    assert reports(cloud_quota_covers_the_ceilings, "gke", both | {"gpu_quotas": {"nvidia-l4": {"preemptible": 7}}}) == [
        "refused: cloud-quota-too-small at gpu_quotas.nvidia-l4.preemptible"
    ]
    assert reports(cloud_quota_covers_the_ceilings, "gke", both | {"gpu_quotas": {"nvidia-l4": {"preemptible": 8}}}) == []


def test_on_demand_has_a_separate_quota() -> None:
    services: dict[str, Any] = {"pools.1": pool("l4-on-demand", "g2-standard-8", "on-demand", "inference")}

    assert reports(cloud_quota_covers_the_ceilings, "gke", services | {"gpu_quotas": {"nvidia-l4": {"on_demand": 3}}}) == [
        "refused: cloud-quota-too-small at gpu_quotas.nvidia-l4.on_demand"
    ]
    assert reports(cloud_quota_covers_the_ceilings, "gke", services | {"gpu_quotas": {"nvidia-l4": {"on_demand": 4}}}) == []
