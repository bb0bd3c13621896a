"""Checks of network ranges and of access to the API server."""

from __future__ import annotations

from typing import Any

import pytest
from resolved_fixtures import reports, settings_of

from flexspot.capacity.plan.checks.places import (
    a_runner_reaches_the_api_server,
    eks_ranges_have_room,
    gke_ranges_have_room,
    ranges_do_not_overlap,
)
from flexspot.capacity.plan.checks.zones import zones_are_two_to_six
from flexspot.capacity.settings.network import Access
from flexspot.capacity.settings.platform import EksSettings, GkeSettings


@pytest.mark.parametrize(
    "cloud,path,taken,free",
    [
        ("gke", "services_cidr", "10.0.8.0/24", "10.0.16.0/24"),
        ("gke", "control_plane_cidr", "10.64.0.0/28", "172.16.0.16/28"),
        ("eks", "public_cidrs.1", "10.0.127.0/24", "10.0.196.0/24"),
        ("eks", "services_cidr", "10.0.240.0/20", "10.1.0.0/20"),
    ],
)
def test_overlapping_ranges_are_refused(cloud: str, path: str, taken: str, free: str) -> None:
    private = {"network.private_cidrs": ["10.0.0.0/18", "10.0.64.0/18"]} if cloud == "eks" else {}
    public = {"network.public_cidrs": ["10.0.192.0/22", "10.0.200.0/22"]} if cloud == "eks" else {}

    assert reports(ranges_do_not_overlap, cloud, private | public | {f"network.{path}": taken}) == [
        f"refused: ranges-overlap at network.{path}"
    ]
    assert reports(ranges_do_not_overlap, cloud, private | public | {f"network.{path}": free}) == []


def test_the_control_plane_has_the_last_ranges_of_the_vpc_by_default() -> None:
    taken: dict[str, Any] = {"network.public_cidrs": ["10.0.192.0/22", "10.0.252.0/22"]}

    assert reports(ranges_do_not_overlap, "eks", taken) == [f"refused: ranges-overlap at network.control_plane_cidrs.{n}" for n in (0, 1)]
    assert reports(ranges_do_not_overlap, "eks", taken | {"network.control_plane_cidrs": ["10.0.240.0/28", "10.0.240.16/28"]}) == []


def test_each_gke_node_takes_an_address() -> None:
    # Ten nodes: four and one more during an upgrade, and the same for the system pool. Google reserves four addresses.
    assert reports(gke_ranges_have_room, "gke", {"network.nodes_cidr": "10.0.0.0/29"}) == ["refused: range-too-small at network.nodes_cidr"]
    assert reports(gke_ranges_have_room, "gke", {"network.nodes_cidr": "10.0.0.0/28"}) == []


def test_each_gke_node_takes_a_block_for_its_pods() -> None:
    eight_blocks = {"network.pods_cidr": "10.64.0.0/21"}

    assert reports(gke_ranges_have_room, "gke", eight_blocks) == ["refused: range-too-small at network.pods_cidr"]
    assert reports(gke_ranges_have_room, "gke", {"network.pods_cidr": "10.64.0.0/20"}) == []
    assert reports(gke_ranges_have_room, "gke", eight_blocks | {"network.max_pods_per_node": 32}) == [], "64 addresses are a block then"


def test_eks_nodes_and_pods_take_an_address_each() -> None:
    # Eight nodes of 33 addresses; two ranges of 128, of each of which AWS reserves five.
    small: dict[str, Any] = {"network.private_cidrs": ["10.0.0.0/25", "10.0.1.0/25"]}

    assert reports(eks_ranges_have_room, "eks", small) == ["refused: range-too-small at network.private_cidrs"]
    assert reports(eks_ranges_have_room, "eks", small | {"network.pods_per_node": 16}) == []


def test_a_pool_must_fit_into_the_ranges_of_its_own_zones() -> None:
    uneven: dict[str, Any] = {"network.private_cidrs": ["10.0.0.0/18", "10.0.64.0/26"]}

    assert reports(eks_ranges_have_room, "eks", uneven | {"pools.0.zones": ["us-east-1b"]}) == ["refused: range-too-small at pools.0.zones"]
    assert reports(eks_ranges_have_room, "eks", uneven | {"pools.0.zones": ["us-east-1a"]}) == []


def test_ranges_of_an_existing_vpc_are_not_checked() -> None:
    there = {"network.existing_vpc": "vpc-0a1b2c3d", "network.existing_private_subnets": ["subnet-0a1b2c3d", "subnet-1a2b3c4d"]}
    none: dict[str, Any] = {"network.private_cidrs": []}

    assert reports(eks_ranges_have_room, "eks", none) == ["refused: range-too-small at network.private_cidrs"]
    assert reports(eks_ranges_have_room, "eks", none | there) == []


def test_eks_has_two_to_six_zones() -> None:
    assert reports(zones_are_two_to_six, "eks", {"zones": ["us-east-1a"]}) == ["refused: too-few-zones at zones"]
    assert reports(zones_are_two_to_six, "eks") == []
    assert reports(zones_are_two_to_six, "eks", {"zones": [f"us-east-1{letter}" for letter in "abcdef"]}) == []
    assert reports(zones_are_two_to_six, "eks", {"zones": [f"us-east-1{letter}" for letter in "abcdefg"]}) == [
        "refused: too-many-zones at zones"
    ]
    assert reports(zones_are_two_to_six, "gke", {"zones": ["us-central1-a"]}) == []


def test_a_private_api_server_in_a_new_network_gets_a_warning() -> None:
    private = {"control_plane.access": "private"}
    theirs = {"network.existing_network": "shared", "network.existing_subnetwork": "gpus"}

    assert reports(a_runner_reaches_the_api_server, "gke", private) == ["warned: nobody-in-the-network at control_plane.access"]
    assert reports(a_runner_reaches_the_api_server, "gke", private | theirs) == []
    assert reports(a_runner_reaches_the_api_server, "gke") == []
    runners = private | {"network.runner_cidrs": ["10.99.0.0/16"]}
    assert reports(a_runner_reaches_the_api_server, "gke", runners) == ["warned: nobody-in-the-network at control_plane.access"]


def test_a_private_eks_api_server_in_a_new_vpc_gets_a_warning() -> None:
    theirs = {"network.existing_vpc": "vpc-0a1b2c3d", "network.existing_private_subnets": ["subnet-0a1b2c3d", "subnet-1a2b3c4d"]}
    warned = ["warned: nobody-in-the-network at control_plane.access"]

    assert reports(a_runner_reaches_the_api_server, "eks") == warned
    assert reports(a_runner_reaches_the_api_server, "eks", {"network.runner_cidrs": ["10.99.0.0/16"]}) == warned
    assert reports(a_runner_reaches_the_api_server, "eks", theirs) == []
    assert reports(a_runner_reaches_the_api_server, "eks", {"cluster.existing": "theirs"}) == []
    assert reports(a_runner_reaches_the_api_server, "eks", {"control_plane": {"access": "public_cidrs", "cidrs": ["203.0.113.0/24"]}}) == []


@pytest.mark.parametrize(
    "cloud,changes,access",
    [
        ("gke", {}, Access.DNS_IAM),
        ("gke", {"network.existing_network": "shared", "network.existing_subnetwork": "gpus"}, Access.PRIVATE),
        ("gke", {"cluster.existing": "theirs"}, Access.PRIVATE),
        ("eks", {}, Access.PRIVATE),
    ],
)
def test_default_access_depends_on_whether_the_network_is_new(cloud: str, changes: dict[str, Any], access: Access) -> None:
    settings = settings_of(cloud, changes)

    assert isinstance(settings, GkeSettings | EksSettings)
    assert settings.access is access
