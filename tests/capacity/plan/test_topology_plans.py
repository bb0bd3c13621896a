"""Flavors whose pods Kueue places by the network, and the annotations of their jobs."""

from __future__ import annotations

import pytest
from plan_settings import Settings, gke, own_class, plan_of, pool, route_of, team

from flexspot.capacity.catalog.node_labels import GKE_TOPOLOGY_LABELS
from flexspot.capacity.plan.model import FlavorPlan, TopologyPlan

ANNOTATION = "kueue.x-k8s.io/podset-preferred-topology"


def queued(**more: object) -> Settings:
    return pool("h100", "a3-highgpu-8g", "queued", 4, "training", **more)


def the_flavor(settings: Settings) -> FlavorPlan:
    [flavor] = plan_of(settings).flavors
    return flavor


def test_a_pool_with_topology_has_a_flavor_with_the_platforms_topology() -> None:
    plan = plan_of(gke(queued(topology=True), teams=[team("red", shares={"h100": 8})]))

    assert plan.topologies == (TopologyPlan("gke-network", GKE_TOPOLOGY_LABELS),)
    [flavor] = plan.flavors
    assert (flavor.topology, flavor.provisioned) == ("gke-network", True)
    assert [quota.flavor for queue in plan.queues for quota in queue.quotas] == [flavor.name]
    assert [route_pool.flavor for route_pool in route_of(plan, "training").pools] == [flavor.name]


def test_jobs_of_its_class_request_close_placement_from_one_host_upwards() -> None:
    assert route_of(plan_of(gke(queued(topology=True))), "training").pod_annotations[ANNOTATION] == "kubernetes.io/hostname"


def test_a_reserved_pool_whose_nodes_always_exist_may_have_a_topology() -> None:
    reserved = pool("h100", "a3-highgpu-8g", "reserved", 4, "training", min_nodes=4, reservation={"name": "bought"}, topology=True)

    assert the_flavor(gke(reserved)).topology == "gke-network"


@pytest.mark.parametrize("serves,same", [(["training"], True), (["training", "own"], False)])
def test_a_changed_taint_creates_another_flavor(serves: list[str], *, same: bool) -> None:
    # With a second class the pool loses the taint of the first.
    classes = {"own": own_class("own", capacity=["queued"], checkpoint=True)} if "own" in serves else {}
    before = the_flavor(gke(queued(topology=True)))
    after = the_flavor(gke({**queued(topology=True), "serves": serves}, classes=classes))

    assert (before.name == after.name) == (before.node_taints == after.node_taints) == same
    assert before.name.startswith("h100-")


def test_a_higher_ceiling_keeps_the_flavors_name() -> None:
    assert the_flavor(gke(queued(topology=True))).name == the_flavor(gke({**queued(topology=True), "max_nodes": 9})).name
