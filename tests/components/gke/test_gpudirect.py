"""The networks of nodes with GPUDirect, their objects in the cluster, and the DaemonSet that installs NCCL's plugin."""

from __future__ import annotations

from ipaddress import IPv4Network
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest

from flexspot.components.gke.network import GkeRdmaNetworks, GkeRdmaNetworksArgs, GkeRdmaNodes, GkeRdmaNodesArgs

if TYPE_CHECKING:
    from component_types import Outputs, Refusal, Register

NETWORK, SUBNETWORK = "gcp:compute/network:Network", "gcp:compute/subnetwork:Subnetwork"
NETWORKS = "kubernetes:networking.gke.io/v1:Network"
PARAMETERS = "kubernetes:networking.gke.io/v1:GKENetworkParamSet"


def networks(**changes: Any) -> GkeRdmaNetworksArgs:
    # pyrefly: ignore[bad-return] -- some arguments are invalid on purpose
    return {
        "project": "acme-ai-prod",
        "region": "us-central1",
        "zone": "us-central1-b",
        "network": "prod",
        "rdma_networks": 8,
    } | changes


def nodes(**changes: Any) -> GkeRdmaNodesArgs:
    # pyrefly: ignore[bad-return] -- some arguments are invalid on purpose
    return {
        "networks": ["prod-gvnic", *["prod-rdma"] * 8],
        "subnetworks": ["prod-gvnic", *(f"prod-rdma-{number}" for number in range(8))],
        "rdma_networks": 8,
        "accelerators": ["nvidia-h200-141gb", "nvidia-b200"],
        "labels": {"owner": "ann"},
    } | changes


def test_there_are_an_ordinary_network_and_an_rdma_network_of_the_zone_with_a_subnetwork_per_card(register: Register) -> None:
    made = register(lambda: GkeRdmaNetworks("rdma", networks()))

    profiles = {each["name"]: each.get("networkProfile") for each in made.of(NETWORK)}
    assert profiles == {"prod-gvnic": None, "prod-rdma": "projects/acme-ai-prod/global/networkProfiles/us-central1-b-vpc-roce"}
    subnetworks = {each["name"]: IPv4Network(each["ipCidrRange"]) for each in made.of(SUBNETWORK)}
    assert sorted(subnetworks) == ["prod-gvnic", *(f"prod-rdma-{number}" for number in range(8))]
    assert not any(one.overlaps(other) for one, other in combinations(subnetworks.values(), 2))
    assert all(each.subnet_of(IPv4Network("192.168.0.0/16")) and each.prefixlen == 20 for each in subnetworks.values())
    assert not any(each["autoCreateSubnetworks"] for each in made.of(NETWORK))


def test_names_of_networks_and_subnetworks_are_in_the_order_of_a_nodes_cards(outputs: Outputs) -> None:
    assert outputs(lambda: GkeRdmaNetworks("rdma", networks(rdma_networks=2))) == {
        "networks": ["prod-gvnic", "prod-rdma", "prod-rdma"],
        "subnetworks": ["prod-gvnic", "prod-rdma-0", "prod-rdma-1"],
    }


@pytest.mark.parametrize(
    "changes,problem",
    [
        ({"zone": "us-east4-b"}, "zone (is 'us-east4-b'): is not a zone of us-central1"),
        ({"rdma_networks": 0}, "rdma_networks (is 0): must be 1 to 15"),
        ({"rdma_networks": 16}, "rdma_networks (is 16): must be 1 to 15"),
        ({"cidr": "192.168.0.0/24"}, "cidr (is '192.168.0.0/24'): must be /8 to /20"),
        ({"cidr": "192.168.0.1/16"}, "cidr (is '192.168.0.1/16'): must be an IPv4 range"),
        ({"network": "Prod"}, "network (is 'Prod'): must"),
    ],
)
def test_arguments_that_google_cloud_would_reject_are_refused_before_anything_is_registered(
    changes: dict[str, Any], problem: str, refusal: Refusal
) -> None:
    assert problem in refusal(GkeRdmaNetworks, "rdma", networks(**changes))


def test_every_card_is_a_network_of_the_cluster_by_its_own_name(register: Register) -> None:
    made = register(lambda: GkeRdmaNodes("nodes", nodes()))

    named = {each["metadata"]["name"]: each["spec"] for each in made.of(NETWORKS)}
    assert sorted(named) == ["gvnic-1", *(f"rdma-{number}" for number in range(8))]
    assert all(spec["parametersRef"]["name"] == name and spec["type"] == "Device" for name, spec in named.items())
    parameters = {each["metadata"]["name"]: each["spec"] for each in made.of(PARAMETERS)}
    assert parameters["gvnic-1"] == {"vpc": "prod-gvnic", "vpcSubnet": "prod-gvnic", "deviceMode": "NetDevice"}
    assert parameters["rdma-7"] == {"vpc": "prod-rdma", "vpcSubnet": "prod-rdma-7", "deviceMode": "RDMA"}


def test_the_installer_only_runs_on_these_nodes_and_writes_to_the_folder_that_the_device_plugin_mounts(register: Register) -> None:
    [daemon] = register(lambda: GkeRdmaNodes("nodes", nodes())).of("kubernetes:apps/v1:DaemonSet")

    pod = daemon["spec"]["template"]["spec"]
    assert (daemon["metadata"]["namespace"], pod["priorityClassName"]) == ("kube-system", "system-node-critical")
    [term] = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["nvidia-b200", "nvidia-h200-141gb"]
    assert [each["hostPath"]["path"] for each in pod["volumes"]] == ["/home/kubernetes/bin/nvidia"]
    [installer] = pod["initContainers"]
    assert ":v" in installer["image"], "no image that moves"
    assert "cp -r /var/lib/gib/. /host/gib" in installer["command"][-1]
    assert daemon["spec"]["selector"]["matchLabels"].items() <= daemon["spec"]["template"]["metadata"]["labels"].items()


def test_nodes_without_accelerators_are_refused(refusal: Refusal) -> None:
    assert "accelerators (is empty)" in refusal(GkeRdmaNodes, "nodes", nodes(accelerators=[]))
