"""Shares: what teams and cohorts are promised, against what their pools can ever have."""

from __future__ import annotations

from typing import Any

from resolved_fixtures import pool, told

from capacity.plan.checks.shares import (
    every_queued_pool_has_an_owner_or_a_borrower,
    shares_are_of_queued_pools,
    shares_fit_into_their_pool,
    unqueued_gpus_are_of_unqueued_pools,
)

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
