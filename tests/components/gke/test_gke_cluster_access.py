"""GkeCluster: access to its API server, and its kubeconfig."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from component_outputs import outputs_of
from gke_cluster_args import Nothing, args, cluster_outputs

from flexspot.components.gke.cluster import GkeCluster

if TYPE_CHECKING:
    from collections.abc import Callable


def test_by_default_the_api_server_only_admits_the_inside(cluster_of: Callable[..., dict[str, Any]]) -> None:
    cluster = cluster_of()

    assert cluster["privateClusterConfig"] == {
        "enablePrivateNodes": True,
        "enablePrivateEndpoint": True,
        "masterIpv4CidrBlock": "172.16.0.0/28",
    }
    assert cluster["masterAuthorizedNetworksConfig"] == {"cidrBlocks": []}
    assert cluster["controlPlaneEndpointsConfig"] == {
        "dnsEndpointConfig": {"allowExternalTraffic": False},
        "ipEndpointsConfig": {"enabled": True},
    }


@pytest.mark.parametrize("access,cidrs", [("private", []), ("public_cidrs", ["203.0.113.0/24"])])
def test_runners_elsewhere_reach_the_address_from_their_ranges_and_from_any_region(
    access: str, cidrs: list[str], cluster_of: Callable[..., dict[str, Any]]
) -> None:
    cluster = cluster_of(access=access, cidrs=cidrs, runner_cidrs=["10.99.0.0/16", "10.8.0.0/16"])

    let_in = [each["cidrBlock"] for each in cluster["masterAuthorizedNetworksConfig"]["cidrBlocks"]]
    assert let_in == ["10.8.0.0/16", "10.99.0.0/16", *cidrs]
    assert cluster["privateClusterConfig"]["masterGlobalAccessConfig"] == {"enabled": True}


def test_with_dns_iam_the_cluster_has_a_name_protected_by_iam_and_no_address(cluster_of: Callable[..., dict[str, Any]]) -> None:
    cluster = cluster_of(access="dns_iam")

    assert cluster["controlPlaneEndpointsConfig"] == {
        "dnsEndpointConfig": {"allowExternalTraffic": True},
        "ipEndpointsConfig": {"enabled": False},
    }
    # Without it, a change of access would replace the cluster.
    assert cluster["privateClusterConfig"].items() >= {"enablePrivateEndpoint": True, "masterIpv4CidrBlock": "172.16.0.0/28"}.items()
    assert "masterAuthorizedNetworksConfig" not in cluster


def test_with_public_cidrs_the_address_only_admits_them_and_nodes_stay_private(cluster_of: Callable[..., dict[str, Any]]) -> None:
    cluster = cluster_of(access="public_cidrs", cidrs=["203.0.113.0/24", "198.51.100.7/32"])

    assert cluster["privateClusterConfig"] == {
        "enablePrivateNodes": True,
        "enablePrivateEndpoint": False,
        "masterIpv4CidrBlock": "172.16.0.0/28",
    }
    assert cluster["masterAuthorizedNetworksConfig"] == {
        "cidrBlocks": [{"cidrBlock": "198.51.100.7/32"}, {"cidrBlock": "203.0.113.0/24"}],
        "gcpPublicCidrsAccessEnabled": False,
    }
    assert cluster["controlPlaneEndpointsConfig"]["dnsEndpointConfig"] == {"allowExternalTraffic": False}


def test_outputs_contain_the_connection_and_no_secrets() -> None:
    outputs = cluster_outputs()

    assert outputs["cluster_name"] == "prod"
    assert outputs["endpoint"] == "172.16.0.2"
    assert outputs["dns_endpoint"] == "gke-1.us-central1.gke.goog"
    assert outputs["ca_certificate"] == "Y2E="
    assert outputs["workload_pool"] == "acme-ai-prod.svc.id.goog"
    assert outputs["secrets"] == [False] * 7


def test_the_kubeconfig_gets_a_token_from_googles_plugin_and_trusts_the_clusters_authority() -> None:
    written = json.loads(cluster_outputs()["kubeconfig"])

    assert written["clusters"] == [
        {
            "name": "gke_acme-ai-prod_us-central1_prod",
            "cluster": {"server": "https://172.16.0.2", "certificate-authority-data": "Y2E="},
        }
    ]
    [user] = written["users"]
    assert user["user"].keys() == {"exec"}
    assert user["user"]["exec"]["command"] == "gke-gcloud-auth-plugin"
    assert written["contexts"][0]["name"] == written["current-context"] == "gke_acme-ai-prod_us-central1_prod"


def test_with_dns_iam_the_kubeconfig_has_the_name_with_a_public_certificate() -> None:
    outputs = cluster_outputs(access="dns_iam")

    assert outputs["endpoint"] == "gke-1.us-central1.gke.goog"
    assert json.loads(outputs["kubeconfig"])["clusters"][0]["cluster"] == {"server": "https://gke-1.us-central1.gke.goog"}


@pytest.mark.parametrize(
    "change,flags",
    [
        ({}, " --internal-ip"),
        ({"access": "dns_iam"}, " --dns-endpoint"),
        ({"access": "public_cidrs", "cidrs": ["203.0.113.0/24"]}, ""),
    ],
)
def test_the_credentials_command_fits_the_access(change: dict[str, Any], flags: str) -> None:
    command = cluster_outputs(**change)["credentials_command"]

    assert command == "gcloud container clusters get-credentials prod --location us-central1 --project acme-ai-prod" + flags


@pytest.mark.parametrize("access,identity", [("private", None), ("dns_iam", None), ("dns_iam", "gke-1")])
def test_in_a_preview_outputs_of_gke_are_unknown_and_never_empty(access: str, identity: str | None) -> None:
    cloud = Nothing()
    cloud.identity = identity
    known = outputs_of(cloud, lambda: GkeCluster("gke", args(access=access)), preview=True)["known"]

    assert not any(known[name] for name in ("dns_endpoint", "ca_certificate", "kubeconfig"))


def test_groups_of_a_domain_are_known_to_kubernetes_on_request(cluster_of: Callable[..., dict[str, Any]]) -> None:
    assert "authenticatorGroupsConfig" not in cluster_of()
    assert cluster_of(groups_domain="acme.com")["authenticatorGroupsConfig"] == {"securityGroup": "gke-security-groups@acme.com"}
