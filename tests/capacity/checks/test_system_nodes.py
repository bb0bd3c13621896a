"""Nodes for controllers with too little room, told before an `up` waits for pods that nothing can place."""

from __future__ import annotations

from typing import Any

import pytest
from resolved_fixtures import found, told

from flexspot.capacity.plan.checks.system_nodes import controllers_have_room, what_secures_a_cluster_is_of_one_that_is_made

LARGE: dict[str, Any] = {"cluster.system_pool": {"machine": "m6i.large", "min_nodes": 2}}
TOO_SMALL = "refused: system-pool-too-small at cluster.system_pool.min_nodes"
NO_SPARE = "warned: system-pool-without-spare at cluster.system_pool.min_nodes"


@pytest.mark.parametrize("cloud", ["eks", "gke"])
def test_the_default_nodes_have_room_also_while_one_is_lost(cloud: str) -> None:
    assert told(controllers_have_room, cloud) == []


def test_two_nodes_of_two_vcpu_cannot_hold_what_the_first_up_deploys() -> None:
    [problem] = found(controllers_have_room, "eks", LARGE)

    assert str(problem) == (
        "cluster.system_pool.min_nodes (is 2): nodes of m6i.large, with 1930m vCPU and 6903 MiB for at most 29 pods each, have no room for "
        "2 x karpenter; use a larger cluster.system_pool.machine or more nodes, or smaller controllers"
    )
    assert told(controllers_have_room, "eks", LARGE) == [TOO_SMALL]


def test_nodes_that_are_full_are_told_before_one_is_lost() -> None:
    three = {"cluster.system_pool": {"machine": "m6i.large", "min_nodes": 3}}

    assert told(controllers_have_room, "eks", three) == [NO_SPARE]


def test_a_single_node_is_no_node_once_it_is_lost() -> None:
    one: dict[str, Any] = {"cluster.system_pool": {"machine": "m6i.4xlarge", "min_nodes": 1}, "controllers": {"karpenter": {"replicas": 1}}}

    assert told(controllers_have_room, "eks", one) == [NO_SPARE]


def test_copies_of_karpenter_need_a_node_each() -> None:
    assert told(controllers_have_room, "eks", {"controllers": {"karpenter": {"replicas": 3}}}) == [TOO_SMALL]


def test_pods_count_also_where_they_ask_for_little() -> None:
    """Of GKE's own on every node there are more than eight; of EKS's machines the smallest takes fewer than the controllers need."""
    assert told(controllers_have_room, "gke", {"network.max_pods_per_node": 8}) == [
        "refused: system-pool-too-small at cluster.system_pool.max_nodes"
    ]
    small: dict[str, Any] = {"kueue": {"cpu_milli": 10, "memory_mib": 32, "replicas": 10}, "karpenter": {"cpu_milli": 10}}
    many: dict[str, Any] = LARGE | {
        "controllers": small | {"load_balancer_controller": {"install": True, "replicas": 10, "cpu_milli": 10, "memory_mib": 32}}
    }
    [problem] = found(controllers_have_room, "eks", many)
    assert problem.rule == "system-pool-without-spare"


def test_an_add_on_takes_room_where_there_is_one() -> None:
    # Two nodes of 1930m, 220m of each for daemons: with one lost, all but 40m are asked for without the 200m of metrics-server.
    full: dict[str, Any] = LARGE | {"controllers": {"karpenter": {"cpu_milli": 500}, "kueue": {"cpu_milli": 375}}}

    assert told(controllers_have_room, "eks", full) == [NO_SPARE]
    assert told(controllers_have_room, "eks", full | {"cluster.addons": {"metrics_server": False}}) == []


@pytest.mark.parametrize("controller", ["jobset", "load_balancer_controller"])
def test_a_controller_takes_room_where_it_is_installed(controller: str) -> None:
    nodes: dict[str, Any] = {"cluster.system_pool": {"machine": "m6i.large", "min_nodes": 3}}
    large: dict[str, Any] = {"cpu_milli": 2000, "memory_mib": 256}

    assert TOO_SMALL not in told(controllers_have_room, "eks", nodes | {"controllers": {controller: large}})
    assert TOO_SMALL in told(controllers_have_room, "eks", nodes | {"controllers": {controller: large | {"install": True}}})


def test_what_the_cluster_has_of_its_own_takes_no_room() -> None:
    own: dict[str, Any] = {"queueing": {"existing_kueue": True}, "measurement": {"kube_state_metrics": False}}
    full: dict[str, Any] = {"cluster.system_pool": {"machine": "m6i.large", "min_nodes": 2}, "controllers": {"kueue": {"cpu_milli": 4000}}}

    assert told(controllers_have_room, "eks", full) == [TOO_SMALL]
    assert told(controllers_have_room, "eks", full | own) == []


def test_gke_has_room_up_to_the_ceiling_of_its_pool() -> None:
    two: dict[str, Any] = {"cluster.system_pool": {"machine": "e2-standard-2", "min_nodes": 1, "max_nodes": 2}}

    assert told(controllers_have_room, "gke", two) == ["warned: system-pool-without-spare at cluster.system_pool.max_nodes"]
    four = {"cluster.system_pool": {"machine": "e2-standard-2", "min_nodes": 1, "max_nodes": 4}}
    assert told(controllers_have_room, "gke", four) == []


@pytest.mark.parametrize("cloud,changes", [("gke", {"cluster.mode": "autopilot"}), ("eks", {"cluster.existing": "acme"})])
def test_nodes_of_somebody_else_are_not_judged(cloud: str, changes: dict[str, Any]) -> None:
    assert told(controllers_have_room, cloud, changes) == []


def test_scanning_that_google_shut_down_is_warned_of() -> None:
    scanned = {"cluster.security": {"vulnerability_scanning": "enterprise"}}

    assert told(what_secures_a_cluster_is_of_one_that_is_made, "gke", scanned) == [
        "warned: scanning-shut-down at cluster.security.vulnerability_scanning"
    ]
    assert told(what_secures_a_cluster_is_of_one_that_is_made, "gke", {"cluster.security": {"vulnerability_scanning": "disabled"}}) == []


def test_a_key_of_disks_is_also_for_pools_on_a_cluster_that_is_there() -> None:
    key = "projects/acme-ai-test/locations/us-central1/keyRings/ai/cryptoKeys/disks"
    cluster = {"cluster": {"existing": "shared", "security": {"boot_disk_kms_key": key}}}

    assert told(what_secures_a_cluster_is_of_one_that_is_made, "gke", cluster) == []
