"""A pool with topology is refused where Kueue would never let a job into it."""

from __future__ import annotations

from typing import Any

import pytest
from resolved_fixtures import CLASS, pool, told

from capacity.plan.checks.pool_options import (
    a_class_is_placed_everywhere_or_nowhere,
    placed_nodes_say_where_they_are,
    placed_pods_come_from_a_queue,
    placed_pods_find_nodes,
)

BOUGHT: dict[str, Any] = {"reservation": {"name": "bought"}}


def pools(*written: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"pools": list(written), "teams.0.shares": {}, **more}


def placed(name: str, machine: str, capacity_type: str, *serves: str, **others: Any) -> dict[str, Any]:
    return pool(name, machine, capacity_type, *serves, topology=True, **others)


@pytest.mark.parametrize("machine", ["a3-highgpu-8g", "a3-megagpu-8g", "a3-ultragpu-8g"])
def test_machines_of_large_training_say_where_they_are(machine: str) -> None:
    reserved = pools(placed("p", machine, "reserved", "training", **BOUGHT))

    assert told(placed_nodes_say_where_they_are, "gke", reserved) == []


def test_spot_nodes_say_it_with_compact_placement_alone() -> None:
    spot = placed("p", "a3-highgpu-8g", "spot", "training")

    assert told(placed_nodes_say_where_they_are, "gke", pools(spot)) == ["refused: topology-without-labels at pools.0.topology"]
    assert told(placed_nodes_say_where_they_are, "gke", pools(spot | {"compact_placement": True, "zones": ["us-central1-a"]})) == []


@pytest.mark.parametrize("nodes,found", [(0, 1), (3, 1), (4, 0)])
def test_all_nodes_are_always_there(nodes: int, found: int) -> None:
    reserved = placed("p", "a3-highgpu-8g", "reserved", "training", min_nodes=nodes, **BOUGHT)

    assert told(placed_pods_find_nodes, "gke", pools(reserved)) == ["refused: topology-without-nodes at pools.0.topology"] * found


def test_or_come_before_the_place_is_looked_for() -> None:
    assert told(placed_pods_find_nodes, "gke", pools(placed("p", "a3-highgpu-8g", "queued", "training"))) == []
    assert len(told(placed_pods_find_nodes, "gke", pools(placed("p", "a3-highgpu-8g", "flex-start", "training")))) == 1


def test_services_and_compute_classes_are_not_placed() -> None:
    service = placed("p", "a3-highgpu-8g", "reserved", "inference", **BOUGHT)
    compute_class = {"classes": {"climb": CLASS | {"fallback": "stock-out"}}}
    refused = ["refused: topology-without-queue at pools.0.topology"]

    assert told(placed_pods_come_from_a_queue, "gke", pools(service)) == refused
    assert told(placed_pods_come_from_a_queue, "gke", pools(placed("p", "a3-highgpu-8g", "spot", "climb"), **compute_class)) == refused
    assert told(placed_pods_come_from_a_queue, "gke", pools(placed("p", "a3-highgpu-8g", "spot", "training"))) == []


def test_pools_without_it_and_other_platforms_are_not_asked() -> None:
    checks = (
        placed_nodes_say_where_they_are,
        placed_pods_find_nodes,
        placed_pods_come_from_a_queue,
        a_class_is_placed_everywhere_or_nowhere,
    )

    assert [told(check, cloud) for check in checks for cloud in ("local", "gke", "eks")] == [[]] * 12
