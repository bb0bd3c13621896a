"""Sources that can reach the API server of each kind of access, by the inputs that the stack declares."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Any

import pytest
from program_declarations import declared, shipped
from recording_provider import CLUSTER
from ways_in import OFFICE, eks_lets_in, gke_lets_in

pytestmark = pytest.mark.slow

EXISTING = {
    "existing_network": "projects/acme-net/global/networks/shared",
    "existing_subnetwork": "projects/acme-net/regions/us-central1/subnetworks/gpu-nodes",
}
RUNNER, STRANGER = "10.99.3.4", "10.98.0.1"
NODES = ("10.8.0.0/20", "10.64.0.0/14")
"""Ranges of prod-gke's nodes and pods."""


def changed(stack: str, access: dict[str, Any], **network: Any) -> dict[str, Any]:
    settings = shipped(stack, control_plane=access)
    return settings | {"network": {**settings.get("network", {}), **network}}


def cluster_of(stack: str, settings: dict[str, Any]) -> dict[str, Any]:
    made = declared(stack, settings).made.values()
    [cluster] = [each.inputs for each in made if each.type in (CLUSTER, "aws:eks/cluster:Cluster")]
    return cluster


def reaching(cluster: dict[str, Any], *own: str) -> set[str]:
    """Return which sample addresses are let in: of the internet, of runners elsewhere, an unused one, and of the nodes' network."""
    lets_in = eks_lets_in if "vpcConfig" in cluster else gke_lets_in
    return {each for each in (OFFICE, "198.51.100.1", RUNNER, STRANGER, "10.8.0.9") if lets_in(cluster, IPv4Address(each), own)}


@pytest.mark.parametrize(
    "access,network,let_in",
    [
        ({"access": "private"}, {}, {"10.8.0.9"}),
        ({"access": "private"}, {"runner_cidrs": ["10.99.0.0/16"]}, {"10.8.0.9", RUNNER}),
        ({"access": "private"}, {**EXISTING, "runner_cidrs": ["10.99.0.0/16"]}, {"10.8.0.9", RUNNER}),
        ({"access": "public_cidrs", "cidrs": ["203.0.113.0/24"]}, {}, {"10.8.0.9", OFFICE}),
        ({"access": "public_cidrs", "cidrs": ["203.0.113.0/24"]}, {"runner_cidrs": ["10.99.0.0/16"]}, {"10.8.0.9", OFFICE, RUNNER}),
        ({"access": "dns_iam"}, {}, {"10.8.0.9", OFFICE, "198.51.100.1", RUNNER, STRANGER}),
    ],
)
def test_each_way_into_a_gke_cluster_is_open_to_the_callers_in_the_settings(
    access: dict[str, Any], network: dict[str, Any], let_in: set[str]
) -> None:
    assert reaching(cluster_of("prod-gke", changed("prod-gke", access, **network)), *NODES) == let_in


@pytest.mark.parametrize(
    "access,let_in",
    [({"access": "private"}, {"10.8.0.9"}), ({"access": "public_cidrs", "cidrs": ["203.0.113.0/24"]}, {"10.8.0.9", OFFICE})],
)
def test_each_way_into_an_eks_cluster_is_open_to_the_callers_in_the_settings(access: dict[str, Any], let_in: set[str]) -> None:
    assert reaching(cluster_of("prod-eks", changed("prod-eks", access)), "10.8.0.0/16") == let_in
