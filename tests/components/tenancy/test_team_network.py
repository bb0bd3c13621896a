"""Network connections that a team's pods may open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tenancy_args import team_args

from flexspot.capacity.catalog.platform import Platform, endpoints_of
from flexspot.components.tenancy.team import Team

if TYPE_CHECKING:
    from component_types import Register

OWN_PODS: list[dict[str, Any]] = [{"podSelector": {}}]


def policy(register: Register, platform: Platform = Platform.LOCAL) -> dict[str, Any]:
    endpoints = [{"cidr": each.cidr, "protocols": list(each.protocols), "ports": list(each.ports)} for each in endpoints_of(platform)]
    [made] = register(lambda: Team("red", team_args(endpoints=endpoints))).of("kubernetes:networking.k8s.io/v1:NetworkPolicy")
    return made["spec"]


def addresses(spec: dict[str, Any]) -> set[tuple[str, str, int]]:
    """Return the addresses that pods may reach: (range, protocol, port)."""
    return {
        (peer["ipBlock"]["cidr"], port["protocol"], port["port"])
        for rule in spec["egress"]
        for peer in rule["to"]
        if "ipBlock" in peer
        for port in rule["ports"]
    }


def test_every_pod_is_only_open_to_its_own_namespace_in_both_directions(register: Register) -> None:
    spec = policy(register)

    assert spec["podSelector"] == {}
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert spec["ingress"] == [{"from": OWN_PODS}]
    assert spec["egress"][0] == {"to": OWN_PODS}, "nodes of a training run use any port"


def test_every_rule_but_that_for_own_pods_names_peers_and_ports(register: Register) -> None:
    # A rule without peers, or without ports, admits all of them.
    assert all(rule["to"] and rule["ports"] for rule in policy(register, Platform.GKE)["egress"][1:])


def test_dns_queries_go_to_the_clusters_name_servers(register: Register) -> None:
    [to_name_servers] = [rule for rule in policy(register)["egress"] if "namespaceSelector" in rule["to"][0]]

    [peer] = to_name_servers["to"]
    assert peer["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}
    [expression] = peer["podSelector"]["matchExpressions"]
    assert expression == {"key": "k8s-app", "operator": "In", "values": ["kube-dns", "node-local-dns"]}
    assert to_name_servers["ports"] == [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]


def test_outside_of_the_cluster_and_of_the_node_only_https_is_open(register: Register) -> None:
    assert addresses(policy(register)) == {("0.0.0.0/0", "TCP", 443)}


def test_on_gke_pods_reach_the_metadata_server_with_every_data_plane_and_the_nodes_name_servers(register: Register) -> None:
    assert addresses(policy(register, Platform.GKE)) >= {
        ("169.254.169.254/32", "TCP", 80),
        ("169.254.169.252/32", "TCP", 988),
        ("169.254.169.254/32", "UDP", 53),
        ("169.254.20.10/32", "UDP", 53),
    }


def test_on_eks_pods_reach_the_pod_identity_agent_and_not_the_machines_own_metadata(register: Register) -> None:
    found = addresses(policy(register, Platform.EKS))

    assert ("169.254.170.23/32", "TCP", 80) in found
    assert not [each for each in found if each[0].startswith("169.254.169.")]


@pytest.mark.parametrize("platform", [Platform.GKE, Platform.EKS])
def test_every_opening_to_the_node_is_one_address(platform: Platform) -> None:
    assert all(each.cidr.endswith("/32") for each in endpoints_of(platform))
