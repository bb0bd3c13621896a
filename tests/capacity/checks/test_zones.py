"""Checks of regions and zones, and of the machines that they offer."""

from __future__ import annotations

from typing import Any

import pytest
from resolved_fixtures import found, reports

from flexspot.capacity.plan.checks.places import the_system_machine_exists
from flexspot.capacity.plan.checks.zones import (
    control_planes_have_zones,
    the_region_has_the_machine,
    zonal_clusters_exist_already,
    zones_are_in_the_region,
)


def test_a_machine_with_unknown_zones_gets_a_warning() -> None:
    assert reports(the_region_has_the_machine, "gke", {"pools.0.machine": "g4-standard-48"}) == [
        "warned: region-not-known at pools.0.machine"
    ]
    assert reports(the_region_has_the_machine, "gke") == []


def test_the_system_machine_of_an_existing_cluster_is_not_checked() -> None:
    unknown = {"cluster.system_pool.machine": "e2-standard-5"}

    assert reports(the_system_machine_exists, "gke", unknown) == ["refused: unknown-machine at cluster.system_pool.machine"]
    assert reports(the_system_machine_exists, "gke", unknown | {"cluster.existing": "acme"}) == []


def test_a_zonal_cluster_may_be_in_any_zone_of_the_region() -> None:
    zonal: dict[str, Any] = {"cluster.existing": "acme", "cluster.zone": "us-central1-f"}

    assert reports(zonal_clusters_exist_already, "gke", zonal) == []
    assert reports(zones_are_in_the_region, "gke", zonal) == [], "zones of pools do not change"
    assert reports(zonal_clusters_exist_already, "gke", zonal | {"cluster.zone": "us-central2-b"}) == [
        "refused: zone-outside-region at cluster.zone"
    ]


OLD_REGION: dict[str, Any] = {"pools.0.machine": "p6-b200.48xlarge"}
UNIFORM: dict[str, Any] = {"region": "eu-north-1", "zones": ["eu-north-1a", "eu-north-1b"], "pools.0.machine": "p4d.24xlarge"}


def test_a_zone_name_without_the_machine_gets_a_warning_with_ids_in_the_oldest_regions() -> None:
    [problem] = found(the_region_has_the_machine, "eks", OLD_REGION)

    assert not problem.refused
    assert (
        problem.allowed
        == "the catalog has another account's zone names, and AWS maps them for each account; zone ids that have it: use1-az6"
    )


def test_a_zone_name_without_the_machine_is_refused_in_other_regions() -> None:
    assert reports(the_region_has_the_machine, "eks", UNIFORM) == ["refused: zone-without-machine at pools.0.machine"]


def test_a_zone_id_without_the_machine_is_refused_in_every_region() -> None:
    ids: dict[str, Any] = OLD_REGION | {"zones": ["use1-az1", "use1-az2"]}

    assert reports(the_region_has_the_machine, "eks", ids) == ["refused: zone-without-machine at pools.0.machine"]
    assert reports(the_region_has_the_machine, "eks", ids | {"zones": ["use1-az1", "use1-az6"]}) == []


@pytest.mark.parametrize("changes", [OLD_REGION, UNIFORM, {"pools.0.machine": "p5e.48xlarge"}])
def test_the_check_of_zones_can_be_turned_off(changes: dict[str, Any]) -> None:
    assert reports(the_region_has_the_machine, "eks", changes | {"zone_machines": "unchecked"}) == []


def test_mixed_zone_names_and_ids_are_refused() -> None:
    assert reports(zones_are_in_the_region, "eks", {"zones": ["use1-az1", "use1-az4"]}) == []
    assert reports(zones_are_in_the_region, "eks", {"zones": ["use1-az1", "us-east-1b"]}) == ["refused: zone-names-and-ids at zones"]
    assert reports(zones_are_in_the_region, "eks", {"zones": ["use1-az1", "use2-az1"]}) == ["refused: zone-outside-region at zones.1"]
    assert reports(zones_are_in_the_region, "eks", {"zones": ["use1-az1", "use1-az1"]}) == ["refused: duplicate-name at zones.1"]


def test_a_zone_without_control_planes_is_refused_by_id_and_gets_a_warning_by_name() -> None:
    assert reports(control_planes_have_zones, "eks", {"zones": ["use1-az1", "use1-az3"]}) == ["refused: zone-without-eks at zones.1"]
    assert reports(control_planes_have_zones, "eks", {"zones": ["us-east-1e", "us-east-1b"]}) == ["warned: zone-without-eks at zones.0"]
    assert reports(control_planes_have_zones, "eks", {"zones": ["use1-az3", "use1-az1"], "cluster.existing": "acme"}) == []


def test_nodes_may_be_in_a_zone_without_control_planes() -> None:
    zones: dict[str, Any] = {"zones": ["use1-az3", "use1-az1", "use1-az2"]}

    [problem] = found(control_planes_have_zones, "eks", zones)
    assert "name others in network.control_plane_zones; nodes may be in this zone" in str(problem)
    assert reports(control_planes_have_zones, "eks", zones | {"network.control_plane_zones": ["use1-az1", "use1-az2"]}) == []
    elsewhere = zones | {"network.control_plane_zones": ["use1-az1", "use1-az3"]}
    assert reports(control_planes_have_zones, "eks", elsewhere) == ["refused: zone-without-eks at network.control_plane_zones.1"]


def test_a_control_plane_needs_a_range_in_each_of_two_or_more_zones() -> None:
    one = {"network.control_plane_zones": ["us-east-1a"]}
    three = {"network.control_plane_zones": ["us-east-1a", "us-east-1b", "us-east-1f"]}
    ranges = {"network.control_plane_cidrs": ["10.0.240.0/28", "10.0.240.16/28"]}

    assert reports(control_planes_have_zones, "eks", one) == ["refused: too-few-zones at network.control_plane_zones"]
    assert reports(control_planes_have_zones, "eks", three) == []
    assert reports(control_planes_have_zones, "eks", three | ranges) == ["refused: range-too-small at network.control_plane_cidrs"]
    assert reports(control_planes_have_zones, "eks", ranges) == []


def test_zones_of_the_control_plane_are_in_the_region_and_have_the_same_notation() -> None:
    path = "network.control_plane_zones"

    assert reports(zones_are_in_the_region, "eks", {path: ["us-east-1a", "us-west-2a"]}) == [f"refused: zone-outside-region at {path}.1"]
    assert reports(zones_are_in_the_region, "eks", {path: ["us-east-1a", "us-east-1a"]}) == [f"refused: duplicate-name at {path}.1"]
    assert reports(zones_are_in_the_region, "eks", {path: ["use1-az1", "use1-az2"]}) == [f"refused: zone-names-and-ids at {path}"]
    # The control plane keeps a zone that the nodes no longer use.
    assert reports(zones_are_in_the_region, "eks", {path: ["us-east-1a", "us-east-1f"]}) == []
