"""What only a GKE plan has: its compute classes and the limits of the whole cluster."""

from __future__ import annotations

from plan_settings import gke, plan_of, pool

from capacity.plan.model import Taint


def test_the_limits_of_the_cluster_leave_room_for_every_pool_and_the_system_nodes() -> None:
    system = {"system_pool": {"machine": "e2-standard-4", "min_nodes": 1, "max_nodes": 3}}
    small = plan_of(gke(pool("p", "g2-standard-8", "spot", 1, "training"), cluster=system)).limits
    large = plan_of(gke(pool("p", "g2-standard-8", "spot", 11, "training"), cluster=system)).limits

    assert small is not None
    assert large is not None
    assert (large.vcpu - small.vcpu, large.memory_gib - small.memory_gib) == (10 * 8, 10 * 32)
    assert small.vcpu >= 8 + 3 * 4
    assert small.memory_gib >= 32 + 3 * 16


def test_arm_nodes_keep_off_what_gke_keeps_off_and_let_in_what_their_queue_admits() -> None:
    """GKE taints them by itself; a pod that waits in a queue gets its place, and its toleration, when it is admitted."""
    reserved = pool("gb200", "a4x-highgpu-4g", "reserved", 1, "training", reservation={"name": "bought"})
    plan = plan_of(gke(reserved, pool("l4", "g2-standard-8", "spot", 1, "training")))

    arm = Taint("kubernetes.io/arch", "arm64")
    assert {each.name for each in plan.pools if arm in each.taints} == {"gb200"}
    assert {each.name for each in plan.flavors if arm in each.tolerated} == {"gb200"}
    assert {each.rule for each in plan.warnings} >= {"arm64-not-tried"}
