"""GkeNetwork: a subnetwork with ranges for nodes, pods and Services, and Cloud NAT."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from flexspot.components.cloud_names import fitted
from flexspot.components.gke.network import GkeNetwork, GkeNetworkArgs

if TYPE_CHECKING:
    from component_types import Outputs, Refusal, Register

CHILDREN = {
    "net-network": "gcp:compute/network:Network",
    "net-subnetwork": "gcp:compute/subnetwork:Subnetwork",
    "net-router": "gcp:compute/router:Router",
    "net-nat": "gcp:compute/routerNat:RouterNat",
}


def args(**changes: Any) -> GkeNetworkArgs:
    # pyrefly: ignore[bad-return] -- some arguments are invalid on purpose
    return {"project": "acme-ai-prod", "region": "us-central1", "network": "flexspot"} | changes


def one(registered: Any, name: str) -> dict[str, Any]:
    [inputs] = registered.of(CHILDREN[name])
    return inputs


def test_the_subnetwork_has_roomy_ranges_and_reaches_google_privately(register: Register) -> None:
    registered = register(lambda: GkeNetwork("net", args()))

    network, subnetwork = one(registered, "net-network"), one(registered, "net-subnetwork")
    assert network == {"project": "acme-ai-prod", "name": "flexspot", "autoCreateSubnetworks": False, "routingMode": "REGIONAL"}
    assert subnetwork.items() >= {"name": "flexspot-nodes", "region": "us-central1", "network": "net-network-id"}.items()
    assert (subnetwork["ipCidrRange"], subnetwork["privateIpGoogleAccess"]) == ("10.0.0.0/20", True)
    assert [each["ipCidrRange"] for each in subnetwork["secondaryIpRanges"]] == ["10.64.0.0/14", "10.127.0.0/20"]


def test_the_nat_only_serves_this_subnetwork_with_dynamic_ports_and_logs_errors(register: Register) -> None:
    nat = one(register(lambda: GkeNetwork("net", args())), "net-nat")

    assert (nat["router"], nat["natIpAllocateOption"]) == ("flexspot-router", "AUTO_ONLY")
    assert nat["sourceSubnetworkIpRangesToNat"] == "LIST_OF_SUBNETWORKS"
    assert nat["subnetworks"] == [{"name": "net-subnetwork-id", "sourceIpRangesToNats": ["ALL_IP_RANGES"]}]
    assert (nat["enableDynamicPortAllocation"], nat["minPortsPerVm"], nat["maxPortsPerVm"]) == (True, 64, 4096)
    assert nat["enableEndpointIndependentMapping"] is False
    assert nat["logConfig"] == {"enable": True, "filter": "ERRORS_ONLY"}


def test_outputs_are_ids_and_the_names_of_the_ranges(outputs: Outputs) -> None:
    assert outputs(lambda: GkeNetwork("net", args(pods_range="gke-pods"))) == {
        "network": "net-network-id",
        "subnetwork": "net-subnetwork-id",
        "pods_range": "gke-pods",
        "services_range": "services",
    }


def test_ranges_and_their_names_can_be_set(register: Register) -> None:
    wanted = args(
        nodes_cidr="10.8.0.0/20", pods_cidr="10.96.0.0/14", services_cidr="10.9.0.0/20", pods_range="gke-pods", services_range="gke-svc"
    )

    subnetwork = one(register(lambda: GkeNetwork("net", wanted)), "net-subnetwork")

    assert subnetwork["ipCidrRange"] == "10.8.0.0/20"
    assert subnetwork["secondaryIpRanges"] == [
        {"rangeName": "gke-pods", "ipCidrRange": "10.96.0.0/14"},
        {"rangeName": "gke-svc", "ipCidrRange": "10.9.0.0/20"},
    ]


def test_the_parts_of_a_network_with_the_longest_name_have_names_that_fit(register: Register) -> None:
    longest = "n" * 63

    registered = register(lambda: GkeNetwork("net", args(network=longest)))

    names = {one(registered, child)["name"] for child in CHILDREN}
    assert longest in names
    assert len(names) == 4
    assert all(len(name) <= 63 for name in names)


def test_the_component_has_its_default_ranges_as_inputs(register: Register) -> None:
    [component] = register(lambda: GkeNetwork("net", args())).of("flexspot:index:GkeNetwork")

    assert component["pods_cidr"] == "10.64.0.0/14"


@pytest.mark.parametrize(
    "change,problem",
    [
        ({"project": "Acme"}, "project (is 'Acme'): must be a project ID"),
        ({"network": "Flexspot"}, "network (is 'Flexspot'): must be"),
        (
            {"pods_range": "Pods"},
            "pods_range (is 'Pods'): does not have the required form; allowed: a name of up to 63 lower-case letters, digits and",
        ),
        ({"pods_range": "same", "services_range": "same"}, "pods_range (is 'same'): services_range has the same name"),
        ({"nodes_cidr": "10.0.0.1/20"}, "nodes_cidr (is '10.0.0.1/20'): is not an IPv4 range: that address is inside 10.0.0.0/20"),
        ({"services_cidr": "big"}, "services_cidr (is 'big'): is not an IPv4 range"),
        ({"services_cidr": "10.64.16.0/20"}, "pods_cidr (is 10.64.0.0/14): overlaps with services_cidr (10.64.16.0/20)"),
    ],
)
def test_arguments_that_google_cloud_would_reject_are_refused_before_anything_is_registered(
    change: dict[str, Any], problem: str, refusal: Refusal
) -> None:
    assert problem in refusal(GkeNetwork, "net", args(**change))


def test_a_name_that_does_not_fit_is_always_cut_the_same_way_and_differs_from_others() -> None:
    first, again, other = fitted("n" * 64, 63), fitted("n" * 64, 63), fitted("n" * 64 + "x", 63)

    assert first == again == "n" * 54 + "-" + first[-8:]
    assert len(first) == 63
    assert first != other


def test_a_name_is_never_cut_into_two_hyphens() -> None:
    assert "--" not in fitted("flexspot-production-x-the-cluster", 30)


def test_a_limit_without_room_for_a_letter_is_refused() -> None:
    with pytest.raises(ValueError, match=r"limit \(is 9\): must be at least 10 characters to shorten 'flexspot'"):
        fitted("flexspot", 9)
