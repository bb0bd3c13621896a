"""Nodes of pools: labels before boot, taints, order, removal, and the limits of a GKE cluster."""

from __future__ import annotations

import pytest
from plan_settings import Settings, eks, gke, local, own_class, plan_of, pool, pool_of

from flexspot.capacity.catalog.workload_classes import Removal
from flexspot.capacity.plan.model import Taint

GPU = Taint("nvidia.com/gpu", "present")
RESERVED_ON_GKE = {"reservation": {"name": "bought"}}
RESERVED_ON_EKS = {"reservation": {"tags": {"purpose": "gpu"}}}


def taints(settings: Settings, name: str) -> set[Taint]:
    return set(pool_of(plan_of(settings), name).taints)


def test_only_a_pool_that_serves_one_class_has_its_taint() -> None:
    settings = local(
        pool("shared", "g6.xlarge", "spot", 2, "training", "interactive"),
        pool("own", "g5.xlarge", "spot", 2, "interactive"),
    )

    spot = Taint("flexspot.dev/capacity-type", "spot")
    assert taints(settings, "shared") == {GPU, spot}, "classes that share a pool would exclude each other"
    assert taints(settings, "own") == {GPU, spot, Taint("flexspot.dev/class", "interactive")}


def test_only_capacity_that_may_end_under_its_work_is_tainted() -> None:
    own = {name: own_class(name, capacity=["reserved", "flex-start", "queued", "spot", "on-demand"]) for name in ("one", "two")}
    kinds = {"reserved": RESERVED_ON_GKE, "flex-start": {}, "queued": {}, "spot": {}, "on-demand": {}}
    settings = gke(*(pool(kind, "g2-standard-8", kind, 1, "one", "two", **more) for kind, more in kinds.items()), classes=own)

    assert {kind: taints(settings, kind) - {GPU} for kind in kinds} == {
        "reserved": set(),
        "flex-start": {Taint("flexspot.dev/capacity-type", "flex-start")},
        "queued": {Taint("cloud.google.com/gke-queued", "true")},
        "spot": {Taint("cloud.google.com/gke-spot", "true")},
        "on-demand": set(),
    }


@pytest.mark.parametrize(
    "settings,seconds",
    [
        (gke(pool("p", "g2-standard-8", "spot", 1, "training")), 15),
        (gke(pool("p", "g2-standard-8", "spot", 1, "training", shutdown_grace_seconds=120)), 105),
        (gke(pool("p", "g2-standard-8", "flex-start", 1, "training")), None),
        (eks(pool("p", "g6.xlarge", "spot", 1, "training")), 90),
        (eks(pool("p", "g6.xlarge", "reserved", 1, "training", **RESERVED_ON_EKS)), None),
        (local(pool("p", "g6.xlarge", "spot", 1, "training")), 90),
    ],
    ids=["gke-spot", "gke-spot-of-120-s", "gke-flex-start", "eks-spot", "eks-reserved", "local-spot"],
)
def test_pods_get_the_notice_of_their_capacity_type(settings: Settings, seconds: int | None) -> None:
    assert pool_of(plan_of(settings), "p").notice_seconds == seconds


@pytest.mark.parametrize("more,seconds", [({}, 7 * 24 * 3600), ({"max_run_hours": 24}, 24 * 3600)])
def test_flex_start_nodes_end_after_seven_days_or_the_pools_limit(more: Settings, seconds: int) -> None:
    assert pool_of(plan_of(gke(pool("p", "g2-standard-8", "flex-start", 1, "training", **more))), "p").max_run_seconds == seconds


def test_classes_that_share_a_pool_share_the_strictest_disruption_rule() -> None:
    busy = own_class("busy", disruption={"remove": "underutilized", "idle_seconds": 900})
    quiet = own_class("quiet", disruption={"remove": "empty", "idle_seconds": 30})
    settings = local(
        pool("shared", "g6.xlarge", "spot", 1, "busy", "quiet"),
        pool("alone", "g5.xlarge", "spot", 1, "busy"),
        classes={"busy": busy, "quiet": quiet},
    )

    shared, alone = pool_of(plan_of(settings), "shared"), pool_of(plan_of(settings), "alone")

    assert (shared.removal, shared.idle_seconds) == (Removal.EMPTY, 900), "a node stays as long as any of them needs it"
    assert (alone.removal, alone.idle_seconds) == (Removal.UNDERUTILIZED, 900)


def test_the_limits_of_the_cluster_leave_room_for_every_pool_and_the_system_nodes() -> None:
    system = {"system_pool": {"machine": "e2-standard-4", "min_nodes": 1, "max_nodes": 3}}
    small = plan_of(gke(pool("p", "g2-standard-8", "spot", 1, "training"), cluster=system)).limits
    large = plan_of(gke(pool("p", "g2-standard-8", "spot", 11, "training"), cluster=system)).limits

    assert small is not None
    assert large is not None
    assert (large.vcpu - small.vcpu, large.memory_gib - small.memory_gib) == (10 * 8, 10 * 32)
    assert small.vcpu >= 8 + 3 * 4
    assert small.memory_gib >= 32 + 3 * 16


def test_arm_nodes_have_gkes_taint_and_their_flavor_tolerates_it() -> None:
    """GKE taints these nodes by itself. A pod that waits in a queue gets its place and its toleration when it is admitted."""
    reserved = pool("gb200", "a4x-highgpu-4g", "reserved", 1, "training", reservation={"name": "bought"})
    plan = plan_of(gke(reserved, pool("l4", "g2-standard-8", "spot", 1, "training")))

    arm = Taint("kubernetes.io/arch", "arm64")
    assert {each.name for each in plan.pools if arm in each.taints} == {"gb200"}
    assert {each.name for each in plan.flavors if arm in each.tolerated} == {"gb200"}
    assert {each.rule for each in plan.warnings} >= {"arm64-not-tried"}
