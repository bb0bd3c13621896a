"""Shares: what teams and cohorts are promised, against what their pools can ever have."""

from __future__ import annotations

from typing import Any

import pytest
from resolved_fixtures import pool, told

from capacity.plan.checks.shares import (
    every_queued_pool_has_an_owner_or_a_borrower,
    limits_are_of_shares,
    shares_are_of_queued_pools,
    shares_fit_into_their_pool,
    unqueued_gpus_are_of_unqueued_pools,
)

SERVICES: dict[str, Any] = {"pools.1": pool("l4-on-demand", "g6.xlarge", "on-demand", "inference")}
"""A pool that no queue gives away."""


@pytest.mark.parametrize("name", ["l4-spott", "l4-on-demand"])
def test_a_share_is_of_a_pool_that_serves_a_queue(name: str) -> None:
    assert told(shares_are_of_queued_pools, "local", SERVICES | {"teams.0.shares": {name: 1}}) == [
        f"refused: share-of-no-queued-pool at teams.0.shares.{name}"
    ]
    assert told(shares_are_of_queued_pools, "local", SERVICES | {"teams.0.shares": {"l4-spot": 1}}) == []


def test_a_cohorts_share_is_of_a_pool_that_serves_a_queue() -> None:
    group: dict[str, Any] = {"cohorts": [{"name": "research", "shares": {"t4-spot": 1}}]}

    assert told(shares_are_of_queued_pools, "local", group) == ["refused: share-of-no-queued-pool at cohorts.0.shares.t4-spot"]
    assert told(shares_are_of_queued_pools, "local", {"cohorts": [{"name": "research", "shares": {"l4-spot": 1}}]}) == []


@pytest.mark.parametrize("field", ["borrowing_limits", "lending_limits"])
def test_a_limit_stands_beside_a_share(field: str) -> None:
    limit: dict[str, Any] = {"teams.1": {"name": "blue", field: {"l4-spot": 0}}}

    assert told(limits_are_of_shares, "local", limit) == [f"refused: limit-without-share at teams.1.{field}.l4-spot"]
    assert told(limits_are_of_shares, "local", limit | {"teams.1.shares": {"l4-spot": 0}}) == []


def test_nobody_lends_more_than_it_owns() -> None:
    assert told(limits_are_of_shares, "local", {"teams.0.lending_limits": {"l4-spot": 3}}) == [
        "refused: lending-more-than-owned at teams.0.lending_limits.l4-spot"
    ]
    assert told(limits_are_of_shares, "local", {"teams.0.lending_limits": {"l4-spot": 2}}) == []


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


def test_unqueued_gpus_are_of_a_pool_that_serves_an_unqueued_class() -> None:
    named: dict[str, Any] = SERVICES | {"teams.0.unqueued": {"l4-on-demand": 1}}

    assert told(unqueued_gpus_are_of_unqueued_pools, "local", named | {"teams.0.unqueued.l4-spot": 1}) == [
        "refused: unqueued-gpus-of-no-such-pool at teams.0.unqueued.l4-spot"
    ]
    assert told(unqueued_gpus_are_of_unqueued_pools, "local", named) == []


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
