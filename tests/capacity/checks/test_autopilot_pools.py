"""Capacity types and options of pools that GKE Autopilot has, and those that only a node pool has."""

from __future__ import annotations

from typing import Any

import pytest
from resolved_fixtures import CLASS, found, plan_of, pool, told

from capacity.catalog.capacity_type import CapacityType, facts_of
from capacity.plan.checks.autopilot import capacity_types_are_ones_that_autopilot_gives, options_are_ones_that_autopilot_has

AUTOPILOT: dict[str, Any] = {"cluster.mode": "autopilot"}
MOVES_ON: dict[str, Any] = {
    "classes.inference.capacity": ["flex-start", "spot", "on-demand"],
    "pools.0.serves": ["inference"],
    "teams.0.shares": {},
    "teams.0.unqueued": {"l4-spot": 1},
}
SERVICE: dict[str, Any] = {
    "classes.rendering": CLASS | {"queued": False},
    "pools.0.serves": ["rendering"],
    "teams.0.shares": {},
    "teams.0.unqueued": {"l4-spot": 1},
}


@pytest.mark.parametrize("capacity_type", CapacityType)
def test_every_capacity_type_but_queued_can_be_had(capacity_type: CapacityType) -> None:
    own = pool("own", "a2-highgpu-1g", capacity_type.value, "own")
    if capacity_type is CapacityType.RESERVED:
        own["reservation"] = {"name": "bought"}
    changes = AUTOPILOT | {
        "pools.0": own,
        "classes.own": CLASS | {"capacity": [capacity_type.value], "priority_class": "gpu-own"},
        "teams.0.shares": {"own": 1},
    }

    expected = ["refused: capacity-type-not-on-autopilot at pools.0.capacity_type"] if capacity_type is CapacityType.QUEUED else []
    assert told(capacity_types_are_ones_that_autopilot_gives, "gke", changes) == expected
    assert (facts_of("gke")[capacity_type].autopilot is None) == bool(expected)
    if not expected:
        assert plan_of("gke", changes).pools[0].pool_label is None


def test_a_reservation_is_named() -> None:
    anything = {"pools.0.capacity_type": "reserved", "pools.0.reservation": {"use": "any"}}

    assert told(capacity_types_are_ones_that_autopilot_gives, "gke", AUTOPILOT | anything) == [
        "refused: any-reservation-on-autopilot at pools.0.reservation.use"
    ]
    assert told(capacity_types_are_ones_that_autopilot_gives, "gke", anything) == []


OF_NODE_POOLS: dict[str, Any] = {
    "min_nodes": 1,
    "shutdown_grace_seconds": 120,
    "compact_placement": True,
    "topology": True,
    "local_ssd_disks": 1,
    "secondary_boot_disk_images": ["projects/acme-ai/global/images/weights"],
    "gpu_driver": "disabled",
}


@pytest.mark.parametrize("option", OF_NODE_POOLS)
@pytest.mark.parametrize("served", [{}, MOVES_ON], ids=["by labels", "by a compute class"])
def test_an_option_of_node_pools_alone_is_refused_and_not_left_out(option: str, served: dict[str, Any]) -> None:
    changes = served | {f"pools.0.{option}": OF_NODE_POOLS[option]}

    (problem,) = found(options_are_ones_that_autopilot_has, "gke", AUTOPILOT | changes)

    assert (problem.rule, problem.path) == ("option-not-on-autopilot", f"pools.0.{option}")
    assert problem.problem
    assert problem.allowed
    assert told(options_are_ones_that_autopilot_has, "gke", changes) == [], "a node pool has it"


FLEX: dict[str, Any] = {"pools.0.capacity_type": "flex-start"}


@pytest.mark.parametrize(
    "option,written",
    [("max_run_hours", 24), ("boot_disk_gib", 100), ("zones", ["us-central1-a", "us-central1-b"])],
)
def test_what_a_compute_class_can_ask_for_and_a_pod_cannot_is_refused_where_pods_ask(option: str, written: object) -> None:
    changes = AUTOPILOT | FLEX | {f"pools.0.{option}": written}

    (problem,) = found(options_are_ones_that_autopilot_has, "gke", changes)

    assert (problem.rule, problem.path) == ("option-not-on-autopilot", f"pools.0.{option}")
    assert "fallback: stock-out" in problem.allowed
    assert told(options_are_ones_that_autopilot_has, "gke", changes | MOVES_ON) == []


@pytest.mark.parametrize(
    "option,written", [("gpu_sharing", {"strategy": "time-sharing", "clients_per_gpu": 4}), ("mig_partition", "1g.5gb")]
)
def test_what_a_pod_can_ask_for_and_a_compute_class_cannot_is_refused_there(option: str, written: object) -> None:
    changes = AUTOPILOT | {"pools.0.machine": "a2-highgpu-1g", f"pools.0.{option}": written}

    assert told(options_are_ones_that_autopilot_has, "gke", changes | SERVICE) == []
    assert told(options_are_ones_that_autopilot_has, "gke", changes | MOVES_ON) == [f"refused: option-not-on-autopilot at pools.0.{option}"]


def test_gpus_are_shared_by_turns_and_not_by_mps() -> None:
    mps = SERVICE | {"pools.0.gpu_sharing": {"strategy": "mps", "clients_per_gpu": 4}}

    assert told(options_are_ones_that_autopilot_has, "gke", AUTOPILOT | mps) == [
        "refused: option-not-on-autopilot at pools.0.gpu_sharing.strategy"
    ]
    assert told(options_are_ones_that_autopilot_has, "gke", mps) == []


@pytest.mark.parametrize(
    "changes", [{"pools.0.gpu_driver": "latest"}, {"pools.0.zones": ["us-central1-a"]}, {"pools.0.boot_disk_gib": 200}]
)
def test_what_autopilot_has_too_and_what_is_the_default_anyway_is_fine(changes: dict[str, Any]) -> None:
    assert told(options_are_ones_that_autopilot_has, "gke", AUTOPILOT | changes) == []
