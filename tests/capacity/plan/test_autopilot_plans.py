"""Plans for GKE Autopilot: a pool is a shape that pods ask for by labels, and nothing of ours is on a node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from autopilot_settings import autopilot_settings
from plan_settings import flavor_of, gke, own_class, plan_of, pool, pool_of, route_of, team
from snapshot_fixtures import assert_snapshot

from capacity.catalog.capacity_type import CapacityType
from capacity.catalog.machines import Architecture, Cloud, machines_of
from capacity.plan.model import Plan, Taint, plan_yaml

SNAPSHOT = Path(__file__).parent / "snapshots" / "autopilot.plan.yaml"

GPU = Taint("nvidia.com/gpu", "present")
SPOT = Taint("cloud.google.com/gke-spot", "true")
L4 = {"cloud.google.com/gke-accelerator": "nvidia-l4", "cloud.google.com/gke-accelerator-count": "1"}


def autopilot(*pools: dict[str, Any], unqueued: str = "inference", **more: Any) -> Plan:
    """The plan of some pools, in each of which a team has a part unless it serves the `unqueued` class."""
    shares = {each["name"]: 1 for each in pools if unqueued not in each["serves"]}
    return plan_of(gke(*pools, cluster={"mode": "autopilot"}, teams=[team("red", shares=shares)], **more))


def test_the_plan_of_the_development_stack_on_autopilot_is_its_snapshot() -> None:
    assert_snapshot(plan_yaml(plan_of(autopilot_settings())), SNAPSHOT)


OWN = {"own": own_class("own", capacity=[each.value for each in CapacityType])}


@pytest.mark.parametrize(
    "asked,labels,taints",
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
def test_flavor_and_route_ask_for_what_the_pool_is_and_tolerate_what_gke_sets(
    asked: dict[str, Any], labels: dict[str, str], taints: tuple[Taint, ...]
) -> None:
    plan = autopilot(asked, classes=OWN)

    found, flavor, route = pool_of(plan, "p"), flavor_of(plan, "p"), route_of(plan, "own")
    assert found.labels == found.selector == flavor.node_labels == route.node_selector == L4 | labels
    assert found.taints == taints
    assert set(flavor.tolerated) == set(route.tolerations) == set(taints)
    assert (found.pool_label, flavor.node_taints, route.node_affinity) == (None, (), None)


def test_the_count_of_gpus_tells_shapes_of_one_gpu_apart() -> None:
    plan = autopilot(pool("one", "g2-standard-8", "spot", 1, "training"), pool("two", "g2-standard-24", "spot", 1, "training"))

    counts = {name: flavor_of(plan, name).node_labels["cloud.google.com/gke-accelerator-count"] for name in ("one", "two")}
    assert counts == {"one": "1", "two": "2"}


def test_a_route_asks_for_what_its_pools_have_in_common_and_the_queue_adds_the_rest() -> None:
    plan = autopilot(pool("l4", "g2-standard-8", "spot", 1, "training"), pool("t4", "n1-standard-8", "spot", 1, "training"))

    route = route_of(plan, "training")

    assert route.node_selector == {"cloud.google.com/gke-accelerator-count": "1", "cloud.google.com/gke-spot": "true"}
    assert all(route.node_selector.items() <= flavor.node_labels.items() for flavor in plan.flavors)


def test_shared_and_partitioned_gpus_are_asked_for_by_labels() -> None:
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


def test_a_class_that_moves_on_at_a_stock_out_selects_its_compute_class_and_nothing_else() -> None:
    plan = autopilot(
        pool("bought", "g2-standard-8", "reserved", 1, "inference", reservation={"name": "bought"}),
        pool("paid", "g2-standard-8", "on-demand", 1, "inference"),
    )

    [compute_class], route = plan.compute_classes, route_of(plan, "inference")
    assert compute_class.pools == ("bought", "paid")
    assert (route.node_selector, route.node_affinity) == ({"cloud.google.com/compute-class": "inference"}, None)
    assert route.tolerations == (Taint("cloud.google.com/compute-class", "inference"), GPU)
    assert {each.taints for each in plan.pools} == {(GPU, Taint("cloud.google.com/compute-class", "inference"))}


def test_a_queue_gives_a_compute_class_away_under_the_compute_class_alone() -> None:
    moving = {"own": own_class("own", fallback="stock-out", capacity=["spot", "on-demand"])}

    plan = autopilot(pool("a", "g2-standard-8", "spot", 1, "own"), pool("b", "g2-standard-8", "on-demand", 2, "own"), classes=moving)

    [flavor] = plan.flavors
    assert (flavor.name, flavor.pools) == ("any-own", ("a", "b"))
    assert flavor.node_labels == {"cloud.google.com/compute-class": "own"}
    assert flavor.ceiling.gpus == 3


def test_quotas_are_those_of_the_pools_and_the_cluster_has_no_limits() -> None:
    settings = gke(pool("p", "g2-standard-8", "spot", 4, "training"), teams=[team("red", shares={"p": 3})])
    standard, plan = plan_of(settings), plan_of(settings | {"cluster": {"mode": "autopilot"}})

    assert plan.limits is None
    assert standard.limits is not None
    assert (plan.accelerators, plan.queues, plan.cohorts, plan.teams) == (
        standard.accelerators,
        standard.queues,
        standard.cohorts,
        standard.teams,
    )


def test_a_spot_pod_gets_gkes_own_notice() -> None:
    plan = autopilot(pool("p", "g2-standard-8", "spot", 1, "training"))

    assert (pool_of(plan, "p").notice_seconds, route_of(plan, "training").grace_seconds) == (15, 15)


# https://docs.cloud.google.com/kubernetes-engine/docs/how-to/autopilot-gpus, "Supported GPU quantities", as of 2026-04-10.
ON_AUTOPILOT = {
    "nvidia-b200": {8},
    "nvidia-h200-141gb": {8},
    "nvidia-h100-mega-80gb": {8},
    "nvidia-h100-80gb": {1, 2, 4, 8},
    "nvidia-a100-80gb": {1, 2, 4, 8},
    "nvidia-tesla-a100": {1, 2, 4, 8, 16},
    "nvidia-rtx-pro-6000": {1, 2, 4, 8},
    "nvidia-l4": {1, 2, 4, 8},
    "nvidia-tesla-t4": {1, 2, 4},
}


def test_autopilot_takes_every_gpu_of_the_catalog_in_every_number_so_that_no_check_is_needed() -> None:
    # Machines of Arm and those with TPUs are refused there by checks of their own.
    machines = [each for each in machines_of(Cloud.GCP).values() if each.architecture is Architecture.AMD64 and not each.tpu_topology]
    shapes = {(machine.gpu.name, count) for machine in machines if machine.gpu for count in machine.gpu.counts}

    assert {(name, count) for name, count in shapes if count not in ON_AUTOPILOT.get(name, ())} == set()
