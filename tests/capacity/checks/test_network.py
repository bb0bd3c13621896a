"""Network ranges: whether the plan's nodes and pods fit into them."""

from __future__ import annotations

from typing import Any

import pytest
from resolved_fixtures import settings_of, told

from flexspot.capacity.plan.checks.places import (
    eks_ranges_have_room,
    gke_ranges_have_room,
    ranges_do_not_overlap,
    somebody_reaches_the_api_server,
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
def test_no_two_ranges_have_an_address_in_common(cloud: str, path: str, taken: str, free: str) -> None:
    private = {"network.private_cidrs": ["10.0.0.0/18", "10.0.64.0/18"]} if cloud == "eks" else {}
    public = {"network.public_cidrs": ["10.0.192.0/22", "10.0.200.0/22"]} if cloud == "eks" else {}

    assert told(ranges_do_not_overlap, cloud, private | public | {f"network.{path}": taken}) == [
        f"refused: ranges-overlap at network.{path}"
    ]
    assert told(ranges_do_not_overlap, cloud, private | public | {f"network.{path}": free}) == []


def test_the_control_plane_has_the_last_ranges_of_the_vpc_unless_somebody_says_others() -> None:
    taken: dict[str, Any] = {"network.public_cidrs": ["10.0.192.0/22", "10.0.252.0/22"]}

    assert told(ranges_do_not_overlap, "eks", taken) == [f"refused: ranges-overlap at network.control_plane_cidrs.{n}" for n in (0, 1)]
    assert told(ranges_do_not_overlap, "eks", taken | {"network.control_plane_cidrs": ["10.0.240.0/28", "10.0.240.16/28"]}) == []


def test_each_node_of_gke_takes_an_address() -> None:
    # Ten nodes: four and one more while they are upgraded, and the same of the system pool; Google keeps four addresses.
    assert told(gke_ranges_have_room, "gke", {"network.nodes_cidr": "10.0.0.0/29"}) == ["refused: range-too-small at network.nodes_cidr"]
    assert told(gke_ranges_have_room, "gke", {"network.nodes_cidr": "10.0.0.0/28"}) == []


def test_each_node_of_gke_takes_a_block_for_its_pods() -> None:
    eight_blocks = {"network.pods_cidr": "10.64.0.0/21"}

    assert told(gke_ranges_have_room, "gke", eight_blocks) == ["refused: range-too-small at network.pods_cidr"]
    assert told(gke_ranges_have_room, "gke", {"network.pods_cidr": "10.64.0.0/20"}) == []
    assert told(gke_ranges_have_room, "gke", eight_blocks | {"network.max_pods_per_node": 32}) == [], "64 addresses are a block then"


def test_nodes_and_pods_of_eks_take_an_address_each() -> None:
    # Eight nodes of 33 addresses; two ranges of 128, of which AWS keeps five each.
    small: dict[str, Any] = {"network.private_cidrs": ["10.0.0.0/25", "10.0.1.0/25"]}

    assert told(eks_ranges_have_room, "eks", small) == ["refused: range-too-small at network.private_cidrs"]
    assert told(eks_ranges_have_room, "eks", small | {"network.pods_per_node": 16}) == []


def test_a_pool_fits_into_the_ranges_of_its_own_zones() -> None:
    uneven: dict[str, Any] = {"network.private_cidrs": ["10.0.0.0/18", "10.0.64.0/26"]}

    assert told(eks_ranges_have_room, "eks", uneven | {"pools.0.zones": ["us-east-1b"]}) == ["refused: range-too-small at pools.0.zones"]
    assert told(eks_ranges_have_room, "eks", uneven | {"pools.0.zones": ["us-east-1a"]}) == []


def test_the_ranges_of_a_vpc_that_is_there_already_are_not_ours_to_count() -> None:
    there = {"network.existing_vpc": "vpc-0a1b2c3d", "network.existing_private_subnets": ["subnet-0a1b2c3d", "subnet-1a2b3c4d"]}
    none: dict[str, Any] = {"network.private_cidrs": []}

    assert told(eks_ranges_have_room, "eks", none) == ["refused: range-too-small at network.private_cidrs"]
    assert told(eks_ranges_have_room, "eks", none | there) == []


def test_eks_has_two_to_six_zones() -> None:
    assert told(zones_are_two_to_six, "eks", {"zones": ["us-east-1a"]}) == ["refused: too-few-zones at zones"]
    assert told(zones_are_two_to_six, "eks") == []
    assert told(zones_are_two_to_six, "eks", {"zones": [f"us-east-1{letter}" for letter in "abcdef"]}) == []
    assert told(zones_are_two_to_six, "eks", {"zones": [f"us-east-1{letter}" for letter in "abcdefg"]}) == [
        "refused: too-many-zones at zones"
    ]
    assert told(zones_are_two_to_six, "gke", {"zones": ["us-central1-a"]}) == []


def test_a_private_api_server_in_a_network_that_is_not_there_yet_is_warned_of() -> None:
    private = {"control_plane.access": "private"}
    theirs = {"network.existing_network": "shared", "network.existing_subnetwork": "gpus"}

    assert told(somebody_reaches_the_api_server, "gke", private) == ["warned: nobody-in-the-network at control_plane.access"]
    assert told(somebody_reaches_the_api_server, "gke", private | theirs) == []
    assert told(somebody_reaches_the_api_server, "gke") == []
    runners = private | {"network.runner_cidrs": ["10.99.0.0/16"]}
    assert told(somebody_reaches_the_api_server, "gke", runners) == ["warned: nobody-in-the-network at control_plane.access"]


def test_a_private_api_server_of_eks_in_a_vpc_that_is_not_there_yet_is_warned_of_likewise() -> None:
    theirs = {"network.existing_vpc": "vpc-0a1b2c3d", "network.existing_private_subnets": ["subnet-0a1b2c3d", "subnet-1a2b3c4d"]}
    warned = ["warned: nobody-in-the-network at control_plane.access"]

    assert told(somebody_reaches_the_api_server, "eks") == warned
    assert told(somebody_reaches_the_api_server, "eks", {"network.runner_cidrs": ["10.99.0.0/16"]}) == warned
    assert told(somebody_reaches_the_api_server, "eks", theirs) == []
    assert told(somebody_reaches_the_api_server, "eks", {"cluster.existing": "theirs"}) == []
    assert told(somebody_reaches_the_api_server, "eks", {"control_plane": {"access": "public_cidrs", "cidrs": ["203.0.113.0/24"]}}) == []


@pytest.mark.parametrize(
    "cloud,changes,access",
    [
        ("gke", {}, Access.DNS_IAM),
        ("gke", {"network.existing_network": "shared", "network.existing_subnetwork": "gpus"}, Access.PRIVATE),
        ("gke", {"cluster.existing": "theirs"}, Access.PRIVATE),
        ("eks", {}, Access.PRIVATE),
    ],
)
def test_who_reaches_the_api_server_follows_from_who_makes_the_network(cloud: str, changes: dict[str, Any], access: Access) -> None:
    settings = settings_of(cloud, changes)

    assert isinstance(settings, GkeSettings | EksSettings)
    assert settings.access is access
