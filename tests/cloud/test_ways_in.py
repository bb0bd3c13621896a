"""From where the API server of each way of a stack is reached, by the inputs that the stack declares."""

from __future__ import annotations

import json
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Any, cast

import pytest
from cloud_folder import CloudFolder, Held
from program_declarations import declared, shipped
from programs_cluster import ProgramsCluster
from pulumi.runtime.proto import provider_pb2
from recording_provider import CLUSTER
from ways_in import OFFICE, eks_lets_in, gke_lets_in, kept_out

from lab.providers.values import encode

if TYPE_CHECKING:
    from pathlib import Path

    import grpc
    from cloud_world import CloudWorld

pytestmark = pytest.mark.slow

EXISTING = {
    "existing_network": "projects/acme-net/global/networks/shared",
    "existing_subnetwork": "projects/acme-net/regions/us-central1/subnetworks/gpu-nodes",
}
RUNNER, STRANGER = "10.99.3.4", "10.98.0.1"
NODES = ("10.8.0.0/20", "10.64.0.0/14")
"""The ranges of prod-gke's nodes and pods."""


def changed(stack: str, access: dict[str, Any], **network: Any) -> dict[str, Any]:
    settings = shipped(stack, control_plane=access)
    return settings | {"network": {**settings.get("network", {}), **network}}


def cluster_of(stack: str, settings: dict[str, Any]) -> dict[str, Any]:
    made = declared(stack, settings).made.values()
    [cluster] = [each.inputs for each in made if each.type in (CLUSTER, "aws:eks/cluster:Cluster")]
    return cluster


def reaching(cluster: dict[str, Any], *own: str) -> set[str]:
    """Which of some addresses are let in: of the internet, of runners elsewhere, of nobody's, of the nodes' network."""
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
def test_each_way_into_a_cluster_of_gke_is_open_to_whom_the_settings_name(
    access: dict[str, Any], network: dict[str, Any], let_in: set[str]
) -> None:
    assert reaching(cluster_of("prod-gke", changed("prod-gke", access, **network)), *NODES) == let_in


@pytest.mark.parametrize(
    "access,let_in",
    [({"access": "private"}, {"10.8.0.9"}), ({"access": "public_cidrs", "cidrs": ["203.0.113.0/24"]}, {"10.8.0.9", OFFICE})],
)
def test_each_way_into_a_cluster_of_eks_is_open_to_whom_the_settings_name(access: dict[str, Any], let_in: set[str]) -> None:
    assert reaching(cluster_of("prod-eks", changed("prod-eks", access)), "10.8.0.0/16") == let_in


@pytest.mark.parametrize("access,reached", [("private", False), ("dns_iam", True)])
def test_prod_gke_as_it_was_stops_at_the_first_object_inside_the_cluster(access: str, *, reached: bool, tmp_path: Path) -> None:
    """The stand-in control plane is reached by the ways alone that the cluster's own inputs open."""
    cloud = CloudFolder(tmp_path / "cloud")
    cluster = cluster_of("prod-gke", changed("prod-gke", {"access": access}))
    cloud.put(Held(CLUSTER, "projects/p/locations/l/clusters/prod", f"urn:pulumi:p::p::{CLUSTER}::c", cluster, {"endpoint": "172.16.0.2"}))

    assert (kept_out(cloud, "https://172.16.0.2") == "") is reached
    cloud.configure(runner="10.8.0.9")
    assert kept_out(cloud, "https://172.16.0.2") == ("" if reached else "dial tcp 172.16.0.2: i/o timeout (from 10.8.0.9)")
    if not reached:
        provider, context = ProgramsCluster(cloud), cast("grpc.ServicerContext", Refusing())
        kubeconfig = {"clusters": [{"name": "c", "cluster": {"server": "https://172.16.0.2"}}]}
        provider.Configure(provider_pb2.ConfigureRequest(args=encode({"kubeconfig": json.dumps(kubeconfig)})), context)
        with pytest.raises(AssertionError, match="configured Kubernetes cluster is unreachable: dial tcp 172"):
            provider.Create(provider_pb2.CreateRequest(urn="urn:pulumi:p::p::kubernetes:core/v1:Namespace::n"), context)
        provider.close()


class Refusing:
    """What gRPC gives a provider to end a call with."""

    def abort(self, _code: Any, text: str) -> None:
        raise AssertionError(text)


@pytest.mark.engine
@pytest.mark.parametrize(
    "access,network",
    [
        ({"access": "private", "cidrs": []}, {**EXISTING, "runner_cidrs": ["10.99.0.0/16"]}),
        ({"access": "public_cidrs", "cidrs": ["203.0.113.0/24"]}, {}),
    ],
    ids=["private in a network that is there", "public ranges"],
)
def test_a_preview_by_the_engine_takes_each_way_and_warns_of_ranges_alone_that_are_a_network_owners(
    access: dict[str, Any], network: dict[str, Any], bare_world: CloudWorld
) -> None:
    bare_world.change("prod-gke", control_plane=access, network=network)

    checked = bare_world.flexspot("settings", "check", "-s", "prod-gke")
    done = bare_world.flexspot("preview", "-s", "prod-gke")

    warned = {line.split()[2] for line in checked.stdout.splitlines() if line.startswith("warning ")}
    # What the file says of the network that the stack would make is told where there is one already.
    assert warned == ({f"network.{name}_cidr:" for name in ("nodes", "pods", "services")} if network else set()), checked.stderr
    assert done.returncode == 0, done.stdout + done.stderr
    assert "gcp:container:Cluster cluster-cluster create" in done.stdout
    assert ("gcp:compute:Network" in done.stdout) is not bool(network)
