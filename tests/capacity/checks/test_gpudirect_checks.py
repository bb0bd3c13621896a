"""Checks of GPUDirect pools: machines, zones, clusters and ranges."""

from __future__ import annotations

from typing import Any

import pytest
from gpudirect_stack import ZONE, gpudirect_pool, gpudirect_settings
from plan_settings import plan_of, refusals

from flexspot.capacity.catalog.gke_accelerators import gpudirect


def reports(settings: dict[str, Any]) -> list[tuple[str, str]]:
    """Return rule and path of every refusal."""
    return [(problem.rule, problem.path) for problem in refusals(settings)]


@pytest.mark.parametrize("machine", [name for each in gpudirect().machines for name in each.names])
def test_machines_with_rdma_cards_are_accepted(machine: str) -> None:
    plan = plan_of(gpudirect_settings(gpudirect_pool("fast", machine)))

    assert {pool.name: pool.rdma_networks for pool in plan.pools if pool.rdma_networks} == {"fast": 8}


@pytest.mark.parametrize(
    "machine,words",
    [
        ("a3-megagpu-8g", "needs a daemon with NET_ADMIN"),
        ("a3-highgpu-8g", "needs a daemon with NET_ADMIN"),
        ("a2-highgpu-8g", "has no RDMA network cards"),
        ("a3-highgpu-4g", "has no RDMA network cards"),
    ],
)
def test_machines_without_rdma_cards_are_refused_with_a_reason_and_alternatives(machine: str, words: str) -> None:
    spot = {"capacity_type": "spot", "reservation": None}
    pool = {key: value for key, value in gpudirect_pool("fast", machine, **spot).items() if value is not None}

    [problem] = [each for each in refusals(gpudirect_settings(pool)) if each.rule == "gpudirect-without-cards"]
    assert problem.path.endswith(".network")
    assert words in problem.problem
    assert f"machine {machine}" in problem.problem
    assert "leave it out for the ordinary network, or use a machine that has it: a3-ultragpu-8g, " in str(problem)


def test_a_pool_in_several_zones_and_pools_of_two_zones_are_refused() -> None:
    over = gpudirect_pool("fast", "a4-highgpu-8g", zones=["us-central1-a", ZONE])
    elsewhere = gpudirect_pool("there", "a3-ultragpu-8g", zones=["us-central1-a"])
    fast = gpudirect_pool("fast", "a4-highgpu-8g")

    assert [rule for rule, path in reports(gpudirect_settings(over)) if path.endswith(".network")] == ["gpudirect-over-zones"]
    assert [rule for rule, path in reports(gpudirect_settings(fast, elsewhere)) if path.endswith(".zones")] == ["gpudirect-over-zones"]


def test_existing_clusters_and_autopilot_are_refused() -> None:
    there = gpudirect_settings(gpudirect_pool("fast", "a4-highgpu-8g"))
    there["cluster"] = {"existing": "theirs"}
    autopilot = gpudirect_settings(gpudirect_pool("fast", "a4-highgpu-8g"))
    autopilot["cluster"] = {"mode": "autopilot"}

    assert "gpudirect-on-existing-cluster" in {rule for rule, _ in reports(there)}
    assert "option-not-on-autopilot" in {rule for rule, path in reports(autopilot) if path.endswith(".network")}


def test_the_range_needs_room_for_every_node_and_no_overlap() -> None:
    small = gpudirect_settings(gpudirect_pool("fast", "a4-highgpu-8g", max_nodes=12))
    # A sixteenth is a /28: 16 addresses less the 4 that Google keeps, for 12 nodes and the one of an upgrade.
    small["network"] = {**small.get("network", {}), "gpudirect_cidr": "192.168.0.0/20"}
    enough = gpudirect_settings(gpudirect_pool("fast", "a4-highgpu-8g", max_nodes=11))
    enough["network"] = small["network"]
    overlapping = gpudirect_settings(gpudirect_pool("fast", "a4-highgpu-8g"))
    overlapping["network"] = {**overlapping.get("network", {}), "gpudirect_cidr": "10.0.0.0/8"}

    sixteenth = {**small["network"], "gpudirect_cidr": "192.168.0.0/24"}
    assert [path for rule, path in reports({**small, "network": sixteenth})] == ["network.gpudirect_cidr"]
    assert ("ranges-overlap", "network.gpudirect_cidr") in reports(overlapping)


@pytest.mark.parametrize("placed", [{"compact_placement": True}, {}])
def test_nodes_that_may_be_far_apart_get_a_warning(placed: dict[str, Any]) -> None:
    spot = {key: value for key, value in gpudirect_pool("fast", "a4-highgpu-8g", capacity_type="spot").items() if key != "reservation"}

    warned = [str(each) for each in plan_of(gpudirect_settings({**spot, **placed})).warnings if "gpudirect-not-placed" in str(each)]
    assert len(warned) == (0 if placed else 1)
