"""The cluster itself: whether the plan's pools can be there, and whether its nodes stay as they are."""

from __future__ import annotations

from resolved_fixtures import told

from capacity.plan.checks.places import images_are_pinned, system_nodes_reach_every_zone


def test_an_image_that_follows_every_release_is_refused_in_production_and_warned_of_elsewhere() -> None:
    latest = {"cluster.ami": "al2023@latest"}

    for environment in ("prod", "production", "prod-eu", "production-eu"):
        assert told(images_are_pinned, "eks", latest | {"environment": environment}) == ["refused: unpinned-ami at cluster.ami"]
    for environment in ("test", "product", "preprod", "pre-prod"):
        assert told(images_are_pinned, "eks", latest | {"environment": environment}) == ["warned: unpinned-ami at cluster.ami"]
    assert told(images_are_pinned, "eks", {"cluster.ami": "bottlerocket@1.40.0", "environment": "prod"}) == []


def test_the_system_pool_has_a_node_for_each_zone_of_gke() -> None:
    one_node = {"cluster.system_pool": {"machine": "e2-standard-4", "min_nodes": 1, "max_nodes": 1}}

    assert told(system_nodes_reach_every_zone, "gke", one_node) == ["refused: system-pool-below-zones at cluster.system_pool.max_nodes"]
    assert told(system_nodes_reach_every_zone, "gke", one_node | {"zones": ["us-central1-a"]}) == []
    assert told(system_nodes_reach_every_zone, "gke", one_node | {"cluster.existing": "shared"}) == [], "it has nodes of its own"
    assert told(system_nodes_reach_every_zone, "gke", one_node | {"cluster.mode": "autopilot"}) == [], "its nodes are GKE's"
    assert (
        told(system_nodes_reach_every_zone, "eks", {"cluster.system_pool": {"machine": "m6i.large", "min_nodes": 1, "max_nodes": 1}}) == []
    )
