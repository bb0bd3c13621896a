"""Regions and zones, and the machines that they have."""

from __future__ import annotations

from typing import Any

import pytest
from resolved_fixtures import found, told

from flexspot.capacity.plan.checks.places import the_system_machine_exists
from flexspot.capacity.plan.checks.zones import (
    control_planes_have_zones,
    the_region_has_the_machine,
    zonal_clusters_are_there_already,
    zones_are_in_the_region,
)


def test_a_machine_of_which_nobody_knows_where_it_is_gets_a_warning() -> None:
    assert told(the_region_has_the_machine, "gke", {"pools.0.machine": "g4-standard-48"}) == ["warned: region-not-known at pools.0.machine"]
    assert told(the_region_has_the_machine, "gke") == []


def test_the_system_machine_of_a_cluster_that_is_there_already_is_not_ours_to_check() -> None:
    unknown = {"cluster.system_pool.machine": "e2-standard-5"}

    assert told(the_system_machine_exists, "gke", unknown) == ["refused: unknown-machine at cluster.system_pool.machine"]
    assert told(the_system_machine_exists, "gke", unknown | {"cluster.existing": "acme"}) == []


def test_a_zonal_cluster_may_be_in_any_zone_of_the_region_wherever_its_nodes_are() -> None:
    zonal: dict[str, Any] = {"cluster.existing": "acme", "cluster.zone": "us-central1-f"}

    assert told(zonal_clusters_are_there_already, "gke", zonal) == []
    assert told(zones_are_in_the_region, "gke", zonal) == [], "pools are where they were"
    assert told(zonal_clusters_are_there_already, "gke", zonal | {"cluster.zone": "us-central2-b"}) == [
        "refused: zone-outside-region at cluster.zone"
    ]


OLD_REGION: dict[str, Any] = {"pools.0.machine": "p6-b200.48xlarge"}
UNIFORM: dict[str, Any] = {"region": "eu-north-1", "zones": ["eu-north-1a", "eu-north-1b"], "pools.0.machine": "p4d.24xlarge"}


def test_where_names_are_mapped_by_account_a_zone_without_the_machine_is_warned_of_with_the_ids_that_have_it() -> None:
    [problem] = found(the_region_has_the_machine, "eks", OLD_REGION)

    assert not problem.refused
    assert problem.allowed == "these names are another account's, and AWS maps them for each; by id those that have it are use1-az6"


def test_where_names_mean_the_same_everywhere_a_zone_without_the_machine_is_refused() -> None:
    assert told(the_region_has_the_machine, "eks", UNIFORM) == ["refused: zone-without-machine at pools.0.machine"]


def test_by_id_a_zone_without_the_machine_is_refused_in_every_region() -> None:
    ids: dict[str, Any] = OLD_REGION | {"zones": ["use1-az1", "use1-az2"]}

    assert told(the_region_has_the_machine, "eks", ids) == ["refused: zone-without-machine at pools.0.machine"]
    assert told(the_region_has_the_machine, "eks", ids | {"zones": ["use1-az1", "use1-az6"]}) == []


@pytest.mark.parametrize("changes", [OLD_REGION, UNIFORM, {"pools.0.machine": "p5e.48xlarge"}])
def test_what_is_newer_than_the_catalog_need_not_be_checked(changes: dict[str, Any]) -> None:
    assert told(the_region_has_the_machine, "eks", changes | {"zone_machines": "unchecked"}) == []


def test_zones_are_all_names_or_all_ids_of_the_region() -> None:
    assert told(zones_are_in_the_region, "eks", {"zones": ["use1-az1", "use1-az4"]}) == []
    assert told(zones_are_in_the_region, "eks", {"zones": ["use1-az1", "us-east-1b"]}) == ["refused: zone-names-and-ids at zones"]
    assert told(zones_are_in_the_region, "eks", {"zones": ["use1-az1", "use2-az1"]}) == ["refused: zone-outside-region at zones.1"]
    assert told(zones_are_in_the_region, "eks", {"zones": ["use1-az1", "use1-az1"]}) == ["refused: duplicate-name at zones.1"]


def test_a_zone_without_control_planes_is_refused_by_id_and_warned_of_by_name() -> None:
    assert told(control_planes_have_zones, "eks", {"zones": ["use1-az1", "use1-az3"]}) == ["refused: zone-without-eks at zones.1"]
    assert told(control_planes_have_zones, "eks", {"zones": ["us-east-1e", "us-east-1b"]}) == ["warned: zone-without-eks at zones.0"]
    assert told(control_planes_have_zones, "eks", {"zones": ["use1-az3", "use1-az1"], "cluster.existing": "acme"}) == []


def test_nodes_may_be_in_a_zone_without_control_planes() -> None:
    zones: dict[str, Any] = {"zones": ["use1-az3", "use1-az1", "use1-az2"]}

    [problem] = found(control_planes_have_zones, "eks", zones)
    assert "name others in network.control_plane_zones; nodes may be in this zone" in str(problem)
    assert told(control_planes_have_zones, "eks", zones | {"network.control_plane_zones": ["use1-az1", "use1-az2"]}) == []
    elsewhere = zones | {"network.control_plane_zones": ["use1-az1", "use1-az3"]}
    assert told(control_planes_have_zones, "eks", elsewhere) == ["refused: zone-without-eks at network.control_plane_zones.1"]


def test_a_control_plane_has_a_range_in_each_of_two_zones_or_more() -> None:
    one = {"network.control_plane_zones": ["us-east-1a"]}
    three = {"network.control_plane_zones": ["us-east-1a", "us-east-1b", "us-east-1f"]}
    ranges = {"network.control_plane_cidrs": ["10.0.240.0/28", "10.0.240.16/28"]}

    assert told(control_planes_have_zones, "eks", one) == ["refused: too-few-zones at network.control_plane_zones"]
    assert told(control_planes_have_zones, "eks", three) == []
    assert told(control_planes_have_zones, "eks", three | ranges) == ["refused: range-too-small at network.control_plane_cidrs"]
    assert told(control_planes_have_zones, "eks", ranges) == []


def test_the_control_planes_zones_are_of_the_region_and_written_as_the_others() -> None:
    path = "network.control_plane_zones"

    assert told(zones_are_in_the_region, "eks", {path: ["us-east-1a", "us-west-2a"]}) == [f"refused: zone-outside-region at {path}.1"]
    assert told(zones_are_in_the_region, "eks", {path: ["us-east-1a", "us-east-1a"]}) == [f"refused: duplicate-name at {path}.1"]
    assert told(zones_are_in_the_region, "eks", {path: ["use1-az1", "use1-az2"]}) == [f"refused: zone-names-and-ids at {path}"]
    # One that the nodes have left stays the control plane's.
    assert told(zones_are_in_the_region, "eks", {path: ["us-east-1a", "us-east-1f"]}) == []
