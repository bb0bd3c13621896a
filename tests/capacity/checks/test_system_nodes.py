"""Checks of system nodes: too little room is reported before an `up` waits for pods that cannot be scheduled."""

from __future__ import annotations

from typing import Any

import pytest
from resolved_fixtures import found, reports

from flexspot.capacity.plan.checks.system_nodes import controllers_have_room, security_settings_apply_to_the_cluster

LARGE: dict[str, Any] = {"cluster.system_pool": {"machine": "m6i.large", "min_nodes": 2}}
TOO_SMALL = "refused: system-pool-too-small at cluster.system_pool.min_nodes"
NO_SPARE = "warned: system-pool-without-spare at cluster.system_pool.min_nodes"


@pytest.mark.parametrize("cloud", ["eks", "gke"])
def test_the_default_nodes_have_room_even_if_one_is_lost(cloud: str) -> None:
    assert reports(controllers_have_room, cloud) == []


def test_two_nodes_of_two_vcpu_are_too_small_for_the_first_up() -> None:
    [problem] = found(controllers_have_room, "eks", LARGE)

    assert str(problem) == (
        "cluster.system_pool.min_nodes (is 2): is too small: nodes of m6i.large (each 1930m vCPU, 6903 MiB and 29 pods) have no room for "
        "2 x karpenter; use a larger cluster.system_pool.machine or more nodes, or smaller controllers"
    )
    assert reports(controllers_have_room, "eks", LARGE) == [TOO_SMALL]


def test_nodes_without_room_for_the_loss_of_one_get_a_warning() -> None:
    three = {"cluster.system_pool": {"machine": "m6i.large", "min_nodes": 3}}

    assert reports(controllers_have_room, "eks", three) == [NO_SPARE]


def test_a_single_node_gets_a_warning() -> None:
    one: dict[str, Any] = {"cluster.system_pool": {"machine": "m6i.4xlarge", "min_nodes": 1}, "controllers": {"karpenter": {"replicas": 1}}}

    assert reports(controllers_have_room, "eks", one) == [NO_SPARE]


def test_replicas_of_karpenter_need_a_node_each() -> None:
    assert reports(controllers_have_room, "eks", {"controllers": {"karpenter": {"replicas": 3}}}) == [TOO_SMALL]


def test_the_number_of_pods_is_limited_too() -> None:
    """GKE runs more than eight pods on every node; the smallest EKS machines take fewer pods than the controllers need."""
    assert reports(controllers_have_room, "gke", {"network.max_pods_per_node": 8}) == [
        "refused: system-pool-too-small at cluster.system_pool.max_nodes"
    ]
    small: dict[str, Any] = {"kueue": {"cpu_milli": 10, "memory_mib": 32, "replicas": 10}, "karpenter": {"cpu_milli": 10}}
    many: dict[str, Any] = LARGE | {
        "controllers": small | {"load_balancer_controller": {"install": True, "replicas": 10, "cpu_milli": 10, "memory_mib": 32}}
    }
    [problem] = found(controllers_have_room, "eks", many)
    assert problem.rule == "system-pool-without-spare"


def test_an_optional_add_on_takes_room() -> None:
    # Two nodes of 1930m, 220m of each for daemons. With one lost, 40m remain without metrics-server, which requests 200m.
    full: dict[str, Any] = LARGE | {"controllers": {"karpenter": {"cpu_milli": 500}, "kueue": {"cpu_milli": 375}}}

    assert reports(controllers_have_room, "eks", full) == [NO_SPARE]
    assert reports(controllers_have_room, "eks", full | {"cluster.addons": {"metrics_server": False}}) == []


@pytest.mark.parametrize("controller", ["jobset", "load_balancer_controller"])
def test_an_optional_controller_takes_room_if_installed(controller: str) -> None:
    nodes: dict[str, Any] = {"cluster.system_pool": {"machine": "m6i.large", "min_nodes": 3}}
    large: dict[str, Any] = {"cpu_milli": 2000, "memory_mib": 256}

    assert TOO_SMALL not in reports(controllers_have_room, "eks", nodes | {"controllers": {controller: large}})
    assert TOO_SMALL in reports(controllers_have_room, "eks", nodes | {"controllers": {controller: large | {"install": True}}})


def test_existing_controllers_take_no_room() -> None:
    own: dict[str, Any] = {"queueing": {"existing_kueue": True}, "measurement": {"kube_state_metrics": False}}
    full: dict[str, Any] = {"cluster.system_pool": {"machine": "m6i.large", "min_nodes": 2}, "controllers": {"kueue": {"cpu_milli": 4000}}}

    assert reports(controllers_have_room, "eks", full) == [TOO_SMALL]
    assert reports(controllers_have_room, "eks", full | own) == []


def test_gke_has_room_up_to_the_ceiling_of_the_system_pool() -> None:
    two: dict[str, Any] = {"cluster.system_pool": {"machine": "e2-standard-2", "min_nodes": 1, "max_nodes": 2}}

    assert reports(controllers_have_room, "gke", two) == ["warned: system-pool-without-spare at cluster.system_pool.max_nodes"]
    four = {"cluster.system_pool": {"machine": "e2-standard-2", "min_nodes": 1, "max_nodes": 4}}
    assert reports(controllers_have_room, "gke", four) == []


@pytest.mark.parametrize("cloud,changes", [("gke", {"cluster.mode": "autopilot"}), ("eks", {"cluster.existing": "acme"})])
def test_nodes_of_existing_and_autopilot_clusters_are_not_checked(cloud: str, changes: dict[str, Any]) -> None:
    assert reports(controllers_have_room, cloud, changes) == []


def test_scanning_that_google_shut_down_gets_a_warning() -> None:
    scanned = {"cluster.security": {"vulnerability_scanning": "enterprise"}}

    assert reports(security_settings_apply_to_the_cluster, "gke", scanned) == [
        "warned: scanning-shut-down at cluster.security.vulnerability_scanning"
    ]
    assert reports(security_settings_apply_to_the_cluster, "gke", {"cluster.security": {"vulnerability_scanning": "disabled"}}) == []


def test_a_key_of_boot_disks_is_accepted_on_an_existing_cluster() -> None:
    key = "projects/acme-ai-test/locations/us-central1/keyRings/ai/cryptoKeys/disks"
    cluster = {"cluster": {"existing": "shared", "security": {"boot_disk_kms_key": key}}}

    assert reports(security_settings_apply_to_the_cluster, "gke", cluster) == []
