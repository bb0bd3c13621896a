"""Plans for GKE Autopilot: pods request a pool by labels, and the platform sets nothing on nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from autopilot_settings import autopilot_settings
from plan_settings import flavor_of, gke, own_class, plan_of, pool, pool_of, route_of, team
from snapshot_fixtures import assert_snapshot, plan_text

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.plan.model import Plan, Taint

SNAPSHOT = Path(__file__).parent / "snapshots" / "autopilot.plan.yaml"

GPU = Taint("nvidia.com/gpu", "present")
SPOT = Taint("cloud.google.com/gke-spot", "true")
L4 = {"cloud.google.com/gke-accelerator": "nvidia-l4", "cloud.google.com/gke-accelerator-count": "1"}


def autopilot(*pools: dict[str, Any], unqueued: str = "inference", **more: Any) -> Plan:
    """Return the plan of some pools. A team has a share of each pool that does not serve the `unqueued` class."""
    shares = {each["name"]: 1 for each in pools if unqueued not in each["serves"]}
    return plan_of(gke(*pools, cluster={"mode": "autopilot"}, teams=[team("red", shares=shares)], **more))


def test_the_plan_of_the_development_stack_on_autopilot_is_its_snapshot() -> None:
    assert_snapshot(plan_text(plan_of(autopilot_settings())), SNAPSHOT)


OWN = {"own": own_class("own", capacity=[each.value for each in CapacityType])}


@pytest.mark.parametrize(
    "requested,labels,taints",
    [
        (pool("p", "g2-standard-8", "spot", 1, "own"), {"cloud.google.com/gke-spot": "true"}, (GPU, SPOT)),
        (pool("p", "g2-standard-8", "flex-start", 1, "own"), {"cloud.google.com/gke-flex-start": "true"}, (GPU,)),
        (pool("p", "g2-standard-8", "on-demand", 1, "own"), {}, (GPU,)),
        (
            pool("p", "g2-standard-8", "reserved", 1, "own", reservation={"name": "bought"}),
            {"cloud.google.com/reservation-affinity": "specific", "cloud.google.com/reservation-name": "bought"},
            (GPU,),
        ),
        (
            pool("p", "g2-standard-8", "reserved", 1, "own", reservation={"name": "bought", "project": "acme-shared"}),
            {
                "cloud.google.com/reservation-affinity": "specific",
                "cloud.google.com/reservation-name": "bought",
                "cloud.google.com/reservation-project": "acme-shared",
            },
            (GPU,),
        ),
        (
            pool("p", "g2-standard-8", "on-demand", 1, "own", zones=["us-central1-b"], gpu_driver="latest"),
            {"topology.kubernetes.io/zone": "us-central1-b", "cloud.google.com/gke-gpu-driver-version": "latest"},
            (GPU,),
        ),
    ],
    ids=["spot", "flex-start", "on-demand", "reserved", "shared reservation", "zone and driver"],
)
def test_flavor_and_route_request_the_pools_labels_and_tolerate_gkes_taints(
    requested: dict[str, Any], labels: dict[str, str], taints: tuple[Taint, ...]
) -> None:
    plan = autopilot(requested, classes=OWN)

    found, flavor, route = pool_of(plan, "p"), flavor_of(plan, "p"), route_of(plan, "own")
    assert found.labels == found.selector == flavor.node_labels == route.node_selector == L4 | labels
    assert found.taints == taints
    assert set(flavor.tolerated) == set(route.tolerations) == set(taints)
    assert (found.pool_label, flavor.node_taints, route.node_affinity) == (None, (), None)


def test_shared_and_partitioned_gpus_are_requested_by_labels() -> None:
    service = {"own": own_class("own", queued=False)}
    split = {"gpu_sharing": {"strategy": "time-sharing", "clients_per_gpu": 4}, "mig_partition": "1g.5gb"}

    plan = autopilot(pool("p", "a2-highgpu-1g", "spot", 1, "own", **split), classes=service, unqueued="own")

    assert route_of(plan, "own").node_selector == {
        "cloud.google.com/gke-accelerator": "nvidia-tesla-a100",
        "cloud.google.com/gke-accelerator-count": "1",
        "cloud.google.com/gke-gpu-partition-size": "1g.5gb",
        "cloud.google.com/gke-gpu-sharing-strategy": "time-sharing",
        "cloud.google.com/gke-max-shared-clients-per-gpu": "4",
        "cloud.google.com/gke-spot": "true",
    }


def test_a_class_with_stock_out_fallback_selects_only_its_compute_class() -> None:
    plan = autopilot(
        pool("bought", "g2-standard-8", "reserved", 1, "inference", reservation={"name": "bought"}),
        pool("paid", "g2-standard-8", "on-demand", 1, "inference"),
    )

    [compute_class], route = plan.compute_classes, route_of(plan, "inference")
    assert compute_class.pools == ("bought", "paid")
    assert (route.node_selector, route.node_affinity) == ({"cloud.google.com/compute-class": "inference"}, None)
    assert route.tolerations == (Taint("cloud.google.com/compute-class", "inference"), GPU)
    assert {each.taints for each in plan.pools} == {(GPU, Taint("cloud.google.com/compute-class", "inference"))}
