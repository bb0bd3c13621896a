"""Checks of GKE Autopilot and its pools."""

from __future__ import annotations

from typing import Any

import pytest
from resolved_fixtures import CLASS, found, plan_of, pool, reports

from flexspot.capacity.catalog.capacity_type import CapacityType, facts_of
from flexspot.capacity.plan.checks.managed_nodes import (
    autopilot_supports_the_capacity_types,
    autopilot_supports_the_options,
    classes_request_only_their_own_pools,
    missing_ceilings_are_reported,
    pools_are_distinguishable,
)

AUTOPILOT: dict[str, Any] = {"cluster.mode": "autopilot"}
FLEX_CLASS: dict[str, Any] = {"classes.tuning": CLASS | {"priority_class": "gpu-tuning", "capacity": ["flex-start"]}}
ON_DEMAND_CLASS: dict[str, Any] = {"classes.steady": CLASS | {"priority_class": "gpu-steady", "capacity": ["on-demand", "reserved"]}}
MOVES_ON: dict[str, Any] = {"classes.inference.capacity": ["reserved", "spot", "on-demand"]}


def test_autopilot_gets_one_warning_about_missing_ceilings() -> None:
    plan = plan_of("gke", AUTOPILOT)

    assert [(each.rule, each.path) for each in plan.warnings] == [("autopilot-without-ceilings", "cluster.mode")]
    assert "only Kueue, ResourceQuota and project quota limit the cost" in plan.warnings[0].text
    assert reports(missing_ceilings_are_reported, "gke", {}) == []


def with_second_pool(other: dict[str, Any]) -> dict[str, Any]:
    """Return settings with a second pool next to the one of L4 on Spot for training."""
    return AUTOPILOT | FLEX_CLASS | ON_DEMAND_CLASS | {"pools.1": other}


@pytest.mark.parametrize(
    "other",
    [
        pool("b", "g2-standard-8", "spot", "training"),
        pool("b", "g2-standard-16", "spot", "training"),
        pool("b", "g2-standard-8", "spot", "training", zones=["us-central1-a"]),
        pool("b", "g2-standard-8", "spot", "training", gpu_driver="latest"),
        pool("b", "g2-standard-8", "spot", "interactive"),
    ],
)
def test_pools_that_pods_request_by_the_same_labels_are_refused(other: dict[str, Any]) -> None:
    (problem,) = found(pools_are_distinguishable, "gke", with_second_pool(other))

    assert (problem.rule, problem.path, problem.refused) == ("pools-not-told-apart", "pools.1", True)
    assert "pool l4-spot" in problem.problem
    assert "make them differ" in problem.allowed
    assert "or merge them" in problem.allowed
    assert "gke-accelerator: nvidia-l4" in problem.value


BOUGHT = {"reservation": {"name": "bought"}}
STEADY = {"pools.0": pool("l4-spot", "g2-standard-8", "on-demand", "steady")}
OF_A_CLASS: dict[str, Any] = AUTOPILOT | MOVES_ON | {"pools.0.serves": ["inference"], "teams.0.shares": {}}


@pytest.mark.parametrize(
    "changes,apart",
    [
        (with_second_pool(pool("b", "g2-standard-24", "spot", "training")), True),
        (with_second_pool(pool("b", "a2-highgpu-1g", "spot", "training")), True),
        (with_second_pool(pool("b", "g2-standard-8", "flex-start", "tuning")), True),
        (with_second_pool(pool("b", "g2-standard-8", "on-demand", "steady")), True),
        (with_second_pool(pool("b", "g2-standard-8", "reserved", "steady", **BOUGHT)), True),
        # No taint keeps on-demand pods off these nodes.
        (with_second_pool(pool("b", "g2-standard-8", "flex-start", "tuning")) | STEADY, False),
        (with_second_pool(pool("b", "g2-standard-8", "reserved", "steady", **BOUGHT)) | STEADY, False),
        # GKE distinguishes priorities of a compute class by the nodes to create, and other pools by the taint of the class.
        (OF_A_CLASS | {"pools.1": pool("b", "g2-standard-12", "spot", "inference")}, True),
        (OF_A_CLASS | {"pools.1": pool("b", "g2-standard-8", "spot", "inference", zones=["us-central1-a", "us-central1-b"])}, True),
        (OF_A_CLASS | {"pools.1": pool("b", "g2-standard-8", "spot", "inference", boot_disk_gib=100)}, True),
        (OF_A_CLASS | {"pools.1": pool("b", "g2-standard-8", "reserved", "inference", **BOUGHT)}, True),
        (OF_A_CLASS | {"pools.1": pool("b", "g2-standard-8", "spot", "inference")}, False),
        (AUTOPILOT | MOVES_ON | {"pools.1": pool("b", "g2-standard-8", "spot", "inference")}, True),
        # On Standard clusters pods select pools by name.
        ({"pools.1": pool("b", "g2-standard-8", "spot", "training")}, True),
    ],
)
def test_pools_are_distinguished_by_the_labels_that_pods_request(changes: dict[str, Any], apart: object) -> None:
    assert reports(pools_are_distinguishable, "gke", changes) == ([] if apart else ["refused: pools-not-told-apart at pools.1"])


def test_a_class_that_reaches_pools_of_other_classes_is_refused() -> None:
    changes = AUTOPILOT | {
        "pools.1": pool("a100-spot", "a2-highgpu-1g", "spot", "training"),
        "pools.2": pool("t4-spot", "n1-standard-8", "spot", "interactive"),
    }

    (problem,) = found(classes_request_only_their_own_pools, "gke", changes)

    assert (problem.rule, problem.path, problem.value) == ("class-reaches-other-pools", "classes.training", "l4-spot, a100-spot")
    assert problem.problem == (
        "its pools have only gke-accelerator-count: 1, gke-spot: true in common, so a queue would also give its jobs nodes of t4-spot"
    )
    assert problem.allowed == "let t4-spot serve training as well, or split the class into one for each kind of node"


@pytest.mark.parametrize(
    "third",
    [
        pool("t4-spot", "n1-standard-8", "spot", "interactive", "training"),
        pool("l4-many", "g2-standard-24", "spot", "interactive"),
        pool("l4-service", "g2-standard-8", "on-demand", "inference"),
    ],
)
def test_a_class_that_reaches_only_its_own_pools_is_accepted(third: dict[str, Any]) -> None:
    changes = AUTOPILOT | {"pools.1": pool("a100-spot", "a2-highgpu-1g", "spot", "training"), "pools.2": third}

    assert reports(classes_request_only_their_own_pools, "gke", changes) == []


def test_unqueued_pods_request_one_kind_of_node() -> None:
    services = AUTOPILOT | {
        "classes.rendering": CLASS | {"queued": False},
        "pools.0.serves": ["rendering"],
        "pools.1": pool("t4-spot", "n1-standard-8", "spot", "rendering"),
        "teams.0.shares": {},
    }

    assert reports(classes_request_only_their_own_pools, "gke", services) == ["refused: class-of-several-shapes at classes.rendering"]
    moving_on = services | {"classes.rendering": CLASS | {"queued": False, "fallback": "stock-out"}}
    assert reports(classes_request_only_their_own_pools, "gke", moving_on) == []
    standard = {path: written for path, written in services.items() if path != "cluster.mode"}
    assert reports(classes_request_only_their_own_pools, "gke", standard) == []


CLIMBS: dict[str, Any] = {
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
def test_every_capacity_type_but_queued_is_accepted(capacity_type: CapacityType) -> None:
    own = pool("own", "a2-highgpu-1g", capacity_type.value, "own")
    if capacity_type is CapacityType.RESERVED:
        own["reservation"] = {"name": "bought"}
    changes = AUTOPILOT | {
        "pools.0": own,
        "classes.own": CLASS | {"capacity": [capacity_type.value], "priority_class": "gpu-own"},
        "teams.0.shares": {"own": 1},
    }

    expected = ["refused: capacity-type-not-on-autopilot at pools.0.capacity_type"] if capacity_type is CapacityType.QUEUED else []
    assert reports(autopilot_supports_the_capacity_types, "gke", changes) == expected
    assert (facts_of("gke")[capacity_type].autopilot is None) == bool(expected)
    if not expected:
        assert plan_of("gke", changes).pools[0].pool_label is None


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
@pytest.mark.parametrize("served", [{}, CLIMBS], ids=["by labels", "by a compute class"])
def test_options_of_node_pools_are_refused_and_not_ignored(option: str, served: dict[str, Any]) -> None:
    changes = served | {f"pools.0.{option}": OF_NODE_POOLS[option]}

    (problem,) = found(autopilot_supports_the_options, "gke", AUTOPILOT | changes)

    assert (problem.rule, problem.path) == ("option-not-on-autopilot", f"pools.0.{option}")
    assert problem.problem
    assert problem.allowed
    assert reports(autopilot_supports_the_options, "gke", changes) == [], "a node pool supports it"


FLEX: dict[str, Any] = {"pools.0.capacity_type": "flex-start"}


@pytest.mark.parametrize(
    "option,written",
    [("max_run_hours", 24), ("boot_disk_gib", 100), ("zones", ["us-central1-a", "us-central1-b"])],
)
def test_options_of_compute_classes_are_refused_for_pods(option: str, written: object) -> None:
    changes = AUTOPILOT | FLEX | {f"pools.0.{option}": written}

    (problem,) = found(autopilot_supports_the_options, "gke", changes)

    assert (problem.rule, problem.path) == ("option-not-on-autopilot", f"pools.0.{option}")
    assert "fallback: stock-out" in problem.allowed
    assert reports(autopilot_supports_the_options, "gke", changes | CLIMBS) == []


@pytest.mark.parametrize(
    "option,written", [("gpu_sharing", {"strategy": "time-sharing", "clients_per_gpu": 4}), ("mig_partition", "1g.5gb")]
)
def test_options_of_pods_are_refused_for_compute_classes(option: str, written: object) -> None:
    changes = AUTOPILOT | {"pools.0.machine": "a2-highgpu-1g", f"pools.0.{option}": written}

    assert reports(autopilot_supports_the_options, "gke", changes | SERVICE) == []
    assert reports(autopilot_supports_the_options, "gke", changes | CLIMBS) == [f"refused: option-not-on-autopilot at pools.0.{option}"]


def test_gpus_are_shared_by_time_and_not_by_mps() -> None:
    mps = SERVICE | {"pools.0.gpu_sharing": {"strategy": "mps", "clients_per_gpu": 4}}

    assert reports(autopilot_supports_the_options, "gke", AUTOPILOT | mps) == [
        "refused: option-not-on-autopilot at pools.0.gpu_sharing.strategy"
    ]
    assert reports(autopilot_supports_the_options, "gke", mps) == []


@pytest.mark.parametrize(
    "changes", [{"pools.0.gpu_driver": "latest"}, {"pools.0.zones": ["us-central1-a"]}, {"pools.0.boot_disk_gib": 200}]
)
def test_supported_options_and_defaults_are_accepted(changes: dict[str, Any]) -> None:
    assert reports(autopilot_supports_the_options, "gke", AUTOPILOT | changes) == []
