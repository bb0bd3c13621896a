"""Small settings for the tests of plans, to which a test adds only the fields that it is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from flexspot.capacity.plan.build import build_plan
from flexspot.capacity.settings.stack_file import parse_settings
from flexspot.capacity.values.errors import SettingsError, SettingsProblem

if TYPE_CHECKING:
    from flexspot.capacity.plan.model import FlavorPlan, Plan, PoolPlan, QueuePlan, RoutePlan, TeamPlan

Settings = dict[str, Any]
"""Settings as in a stack file."""


def pool(name: str, machine: str, capacity_type: str, max_nodes: int, *serves: str, **more: Any) -> Settings:
    """Return a pool. One of reserved capacity also needs its `reservation`."""
    return {"name": name, "machine": machine, "capacity_type": capacity_type, "max_nodes": max_nodes, "serves": list(serves), **more}


def team(name: str, **more: Any) -> Settings:
    return {"name": name, **more}


def own_class(name: str, **fields: Any) -> Settings:
    """Return a complete user-defined class: by default queued Spot work without a checkpoint."""
    return {
        "description": f"Work of {name}.",
        "priority_class": f"own-{name}",
        "priority": 500,
        "preempts": False,
        "queued": True,
        "fallback": "quota",
        "capacity": ["spot"],
        "disruption": {"remove": "empty", "idle_seconds": 120},
        "run_limit_hours": 10,
        "grace_seconds": 60,
        "checkpoint": False,
        "disruption_budget": False,
        **fields,
    }


def local(*pools: Settings, **more: Any) -> Settings:
    return {"cloud": "local", "environment": "test", "owner": "ann", "pools": list(pools), "teams": [team("red")], **more}


def eks(*pools: Settings, **more: Any) -> Settings:
    place = {
        "account": "111122223333",
        "region": "us-east-1",
        "zones": ["us-east-1a", "us-east-1b"],
        "cluster": {"version": "1.35", "ami": "al2023@v20260903"},
    }
    return local(*pools, **{"cloud": "eks", **place, **more})


def gke(*pools: Settings, **more: Any) -> Settings:
    place = {"project": "acme-ai", "region": "us-central1", "zones": ["us-central1-a", "us-central1-b"]}
    return local(*pools, **{"cloud": "gke", **place, **more})


def plan_of(settings: Settings) -> Plan:
    return build_plan(parse_settings(settings, "test"))


def refusals(settings: Settings) -> tuple[SettingsProblem, ...]:
    """Return all problems that invalidate the settings."""
    with pytest.raises(SettingsError) as refused:
        plan_of(settings)
    return refused.value.problems


def pool_of(plan: Plan, name: str) -> PoolPlan:
    return {each.name: each for each in plan.pools}[name]


def flavor_of(plan: Plan, name: str) -> FlavorPlan:
    return {each.name: each for each in plan.flavors}[name]


def queue_of(plan: Plan, name: str) -> QueuePlan:
    return {each.cluster_queue: each for each in plan.queues}[name]


def team_of(plan: Plan, name: str) -> TeamPlan:
    return {each.name: each for each in plan.teams}[name]


def route_of(plan: Plan, name: str) -> RoutePlan:
    return {each.workload_class: each for each in plan.routes}[name]
