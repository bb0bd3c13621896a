"""GkeNetwork: a subnetwork with room for nodes, pods and Services, and a way out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulumi
import pytest
from pulumi.provider.experimental.analyzer import Analyzer

from components.cloud_names import fitted
from components.gke.network import GkeNetwork, GkeNetworkArgs

# The SDK warns of two classes of its own as soon as pulumi_gcp.compute is loaded, which is when the first test uses it.
pytestmark = pytest.mark.filterwarnings("ignore:gcp.compute.[A-Za-z]+ has been deprecated in favor of:DeprecationWarning")

Register = Callable[[Callable[[], object]], Any]

CHILDREN = {
    "net-network": "gcp:compute/network:Network",
    "net-subnetwork": "gcp:compute/subnetwork:Subnetwork",
    "net-router": "gcp:compute/router:Router",
    "net-nat": "gcp:compute/routerNat:RouterNat",
}


def args(**changes: Any) -> GkeNetworkArgs:
    arguments: GkeNetworkArgs = {"project": "acme-ai-prod", "region": "us-central1", "network": "flexspot"}
    arguments.update(changes)  # pyrefly: ignore[no-matching-overload] -- what is wrong on purpose, too
    return arguments


def one(registered: Any, name: str) -> dict[str, Any]:
    [inputs] = registered.of(CHILDREN[name])
    return inputs


def test_the_network_has_no_subnetworks_but_ours(register: Register) -> None:
    network = one(register(lambda: GkeNetwork("net", args())), "net-network")

    assert network == {"project": "acme-ai-prod", "name": "flexspot", "autoCreateSubnetworks": False, "routingMode": "REGIONAL"}


def test_the_subnetwork_has_roomy_ranges_by_default_and_reaches_google_privately(register: Register) -> None:
    subnetwork = one(register(lambda: GkeNetwork("net", args())), "net-subnetwork")

    assert subnetwork["name"] == "flexspot-nodes"
    assert subnetwork["region"] == "us-central1"
    assert subnetwork["network"] == "net-network-id"
    assert subnetwork["ipCidrRange"] == "10.0.0.0/20"
    assert subnetwork["secondaryIpRanges"] == [
        {"rangeName": "pods", "ipCidrRange": "10.64.0.0/14"},
        {"rangeName": "services", "ipCidrRange": "10.127.0.0/20"},
    ]
    assert subnetwork["privateIpGoogleAccess"] is True


def test_ranges_and_their_names_are_the_callers(register: Register) -> None:
    wanted = args(
        nodes_cidr="10.8.0.0/20", pods_cidr="10.96.0.0/14", services_cidr="10.9.0.0/20", pods_range="gke-pods", services_range="gke-svc"
    )

    subnetwork = one(register(lambda: GkeNetwork("net", wanted)), "net-subnetwork")

    assert subnetwork["ipCidrRange"] == "10.8.0.0/20"
    assert subnetwork["secondaryIpRanges"] == [
        {"rangeName": "gke-pods", "ipCidrRange": "10.96.0.0/14"},
        {"rangeName": "gke-svc", "ipCidrRange": "10.9.0.0/20"},
    ]


def test_a_node_gets_more_ports_as_its_pods_need_them_and_what_fails_is_logged(register: Register) -> None:
    nat = one(register(lambda: GkeNetwork("net", args())), "net-nat")

    assert nat["router"] == "flexspot-router"
    assert nat["natIpAllocateOption"] == "AUTO_ONLY"
    assert nat["enableDynamicPortAllocation"] is True
    assert (nat["minPortsPerVm"], nat["maxPortsPerVm"]) == (64, 4096)
    assert nat["enableEndpointIndependentMapping"] is False
    assert nat["logConfig"] == {"enable": True, "filter": "ERRORS_ONLY"}


def test_the_nat_serves_all_ranges_of_the_subnetwork_and_no_other_subnetwork(register: Register) -> None:
    nat = one(register(lambda: GkeNetwork("net", args())), "net-nat")

    assert nat["sourceSubnetworkIpRangesToNat"] == "LIST_OF_SUBNETWORKS"
    assert nat["subnetworks"] == [{"name": "net-subnetwork-id", "sourceIpRangesToNats": ["ALL_IP_RANGES"]}]


def test_the_parts_of_a_network_with_the_longest_name_have_names_that_fit(register: Register) -> None:
    longest = "n" * 63

    registered = register(lambda: GkeNetwork("net", args(network=longest)))

    names = {one(registered, child)["name"] for child in CHILDREN}
    assert longest in names
    assert len(names) == 4
    assert all(len(name) <= 63 for name in names)


def test_outputs_are_ids_and_the_names_of_the_ranges(register: Register) -> None:
    seen: list[object] = []

    def declare() -> None:
        network = GkeNetwork("net", args(pods_range="gke-pods"))
        pulumi.Output.all(network.network, network.subnetwork, network.pods_range, network.services_range).apply(seen.append)

    register(declare)

    assert seen == [["net-network-id", "net-subnetwork-id", "gke-pods", "services"]]


def test_the_component_carries_the_ranges_that_it_took_by_itself(register: Register) -> None:
    [component] = register(lambda: GkeNetwork("net", args())).of("flexspot:index:GkeNetwork")

    assert component["pods_cidr"] == "10.64.0.0/14"


def test_every_resource_is_the_components_child_and_named_after_it(register: Register) -> None:
    parents: dict[str, pulumi.Resource | None] = {}
    made: list[GkeNetwork] = []

    def note(resource: pulumi.ResourceTransformationArgs) -> None:
        parents[resource.name] = resource.opts.parent

    def declare() -> None:
        made.append(GkeNetwork("net", args(), pulumi.ResourceOptions(transformations=[note])))

    register(declare)

    assert parents == {"net": None} | dict.fromkeys(CHILDREN, made[0])


@pytest.mark.parametrize(
    "change,problem",
    [
        ({"project": "Acme"}, "project is 'Acme'; it must be a project's id"),
        ({"project": "123456789012"}, "project is '123456789012'; it must be a project's id"),
        ({"network": "n" * 64}, "network is '" + "n" * 64 + "'; it must be 1 to 63 lower-case letters"),
        ({"network": "Flexspot"}, "network is 'Flexspot'; it must be"),
        ({"network": "flexspot-"}, "network is 'flexspot-'; it must be"),
        ({"pods_range": "Pods"}, "pods_range is 'Pods'; it must be"),
        ({"pods_range": "same", "services_range": "same"}, "pods_range and services_range are both 'same'"),
        ({"nodes_cidr": "10.0.0.1/20"}, "nodes_cidr is '10.0.0.1/20'; it must be an IPv4 range without host bits"),
        ({"services_cidr": "big"}, "services_cidr is 'big'; it must be an IPv4 range"),
        ({"services_cidr": "10.64.16.0/20"}, "pods_cidr is 10.64.0.0/14, which overlaps with services_cidr, 10.64.16.0/20"),
    ],
)
def test_what_google_cloud_would_refuse_is_refused_before_anything_is_registered(
    change: dict[str, Any], problem: str, register: Register
) -> None:
    refused: list[str] = []

    def declare() -> None:
        with pytest.raises(ValueError, match="GkeNetwork net:") as error:
            GkeNetwork("net", args(**change))
        refused.append(str(error.value))

    registered = register(declare)

    assert problem in refused[0]
    assert registered.resources == []


def test_a_name_that_fits_is_left_alone() -> None:
    assert fitted("flexspot-nodes", 63) == "flexspot-nodes"
    assert fitted("n" * 63, 63) == "n" * 63


def test_a_name_that_does_not_fit_is_cut_the_same_way_each_time_and_unlike_any_other() -> None:
    first, again, other = fitted("n" * 64, 63), fitted("n" * 64, 63), fitted("n" * 64 + "x", 63)

    assert first == again == "n" * 54 + "-" + first[-8:]
    assert len(first) == 63
    assert first != other


def test_a_name_is_never_cut_into_two_hyphens() -> None:
    assert "--" not in fitted("flexspot-production-x-the-cluster", 30)


def test_a_limit_without_room_for_a_letter_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be fitted into 9 characters: 10 are the least"):
        fitted("flexspot", 9)


def test_pulumis_component_host_accepts_the_arguments_and_knows_which_are_optional() -> None:
    inputs = Analyzer("flexspot").analyze([GkeNetwork])["component_definitions"]["GkeNetwork"].inputs

    assert {name for name, each in inputs.items() if not each.optional} == {"project", "region", "network"}
