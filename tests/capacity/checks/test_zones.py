"""Regions and zones, and the machines that they have."""

from __future__ import annotations

from typing import Any

import pytest
from resolved_fixtures import told

from capacity.plan.checks.places import the_region_has_the_machine, the_system_machine_exists, zones_are_in_the_region


@pytest.mark.parametrize("cloud,elsewhere,inside", [("gke", "us-east1-b", "us-central1-c"), ("eks", "us-west-2a", "us-east-1c")])
def test_a_zone_is_in_the_region(cloud: str, elsewhere: str, inside: str) -> None:
    assert told(zones_are_in_the_region, cloud, {"zones.1": elsewhere}) == ["refused: zone-outside-region at zones.1"]
    assert told(zones_are_in_the_region, cloud, {"zones.1": inside}) == []


def test_a_zone_stands_once() -> None:
    assert told(zones_are_in_the_region, "gke", {"zones": ["us-central1-a", "us-central1-a"]}) == ["refused: duplicate-name at zones.1"]
    assert told(zones_are_in_the_region, "gke", {"zones": ["us-central1-a"]}) == []


def test_a_pool_is_in_zones_of_the_platform() -> None:
    outside = {"pools.0.zones": ["us-central1-a", "us-central1-c"]}

    assert told(zones_are_in_the_region, "gke", outside) == ["refused: zone-outside-region at pools.0.zones.1"]
    assert told(zones_are_in_the_region, "gke", outside | {"zones.2": "us-central1-c"}) == []


def test_a_zone_of_a_pool_stands_once() -> None:
    twice = {"pools.0.zones": ["us-central1-b", "us-central1-a", "us-central1-b"]}

    assert told(zones_are_in_the_region, "gke", twice) == ["refused: duplicate-name at pools.0.zones.2"]
    assert told(zones_are_in_the_region, "gke", {"pools.0.zones": ["us-central1-b", "us-central1-a"]}) == []


def test_a_region_without_the_machine_is_refused() -> None:
    h200: dict[str, Any] = {"pools.0.machine": "p5e.48xlarge"}
    there = {"region": "us-east-2", "zones": ["us-east-2a", "us-east-2b"]}

    assert told(the_region_has_the_machine, "eks", h200) == ["refused: region-without-machine at pools.0.machine"]
    assert told(the_region_has_the_machine, "eks", h200 | there) == []


def test_zones_without_the_machine_are_refused() -> None:
    b200 = {"pools.0.machine": "p6-b200.48xlarge"}

    assert told(the_region_has_the_machine, "eks", b200) == ["refused: zone-without-machine at pools.0.machine"]
    assert told(the_region_has_the_machine, "eks", b200 | {"zones.1": "us-east-1c"}) == []


def test_a_machine_of_which_nobody_knows_where_it_is_gets_a_warning() -> None:
    assert told(the_region_has_the_machine, "gke", {"pools.0.machine": "g4-standard-48"}) == ["warned: region-not-known at pools.0.machine"]
    assert told(the_region_has_the_machine, "gke") == []


@pytest.mark.parametrize(
    "cloud,machine,rule,right",
    [
        ("gke", "e2-standard-5", "unknown-machine", "e2-standard-8"),
        ("gke", "g2-standard-8", "system-pool-with-gpu", "n2-standard-8"),
        ("eks", "e2-standard-4", "unknown-machine", "m6i.xlarge"),
    ],
)
def test_controllers_run_on_machines_of_the_catalog_without_gpus(cloud: str, machine: str, rule: str, right: str) -> None:
    path = "cluster.system_pool.machine"

    assert told(the_system_machine_exists, cloud, {path: machine}) == [f"refused: {rule} at {path}"]
    assert told(the_system_machine_exists, cloud, {path: right}) == []


def test_the_system_machine_of_a_cluster_that_is_there_already_is_not_ours_to_check() -> None:
    unknown = {"cluster.system_pool.machine": "e2-standard-5"}

    assert told(the_system_machine_exists, "gke", unknown) == ["refused: unknown-machine at cluster.system_pool.machine"]
    assert told(the_system_machine_exists, "gke", unknown | {"cluster.existing": "acme"}) == []


def test_the_local_control_plane_has_neither_zones_nor_a_system_pool() -> None:
    assert told(the_system_machine_exists, "local") == []
    assert told(zones_are_in_the_region, "local") == []
