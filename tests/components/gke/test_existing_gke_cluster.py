"""ExistingGkeCluster: it is read, never made, and reached as it was set up."""

from __future__ import annotations

import json
from typing import Any

import pulumi
import pytest
from component_outputs import ReadCloud, outputs_of
from gke_cluster_args import CLUSTER
from pulumi.provider.experimental.analyzer import Analyzer

from components.gke.existing_cluster import ExistingGkeCluster, ExistingGkeClusterArgs

PATH = "projects/acme-ai-dev/locations/us-central1/clusters/lab"


def found(asked: str) -> dict[str, Any]:
    """What GKE knows of the cluster."""
    return {
        "name": asked.rpartition("/")[2],
        "endpoint": "172.16.0.2",
        "masterAuth": {"clusterCaCertificate": "Y2E=", "clientKey": pulumi.Output.secret("key")},
        "controlPlaneEndpointsConfig": {"dnsEndpointConfig": {"endpoint": "gke-1.us-central1.gke.goog"}},
    }


def arguments(**changes: str) -> ExistingGkeClusterArgs:
    return {"cluster": "lab", "project": "acme-ai-dev", "region": "us-central1"} | changes  # pyrefly: ignore[bad-return] -- a test's own


def seen(cloud: ReadCloud, **changes: str) -> dict[str, Any]:
    """The component's outputs, which of them are secret, and which are known."""

    def make() -> ExistingGkeCluster:
        cluster = ExistingGkeCluster("cluster", arguments(**changes))
        assert cluster.system_pool is None
        return cluster

    return outputs_of(cloud, make, preview=cloud.is_preview)


def test_the_cluster_is_read_by_its_path_and_nothing_is_made_beside_the_component() -> None:
    cloud = ReadCloud(found)

    seen(cloud)

    assert cloud.read == [(CLUSTER, PATH)]
    assert cloud.made == ["flexspot:index:ExistingGkeCluster"]


def test_by_default_its_private_address_is_used_and_its_own_authority_is_trusted() -> None:
    outputs = seen(ReadCloud(found))

    written = json.loads(outputs["kubeconfig"])
    assert written["clusters"] == [
        {
            "name": "gke_acme-ai-dev_us-central1_lab",
            "cluster": {"server": "https://172.16.0.2", "certificate-authority-data": "Y2E="},
        }
    ]
    assert written["current-context"] == "gke_acme-ai-dev_us-central1_lab"
    assert outputs["cluster_name"] == "lab"


def test_with_dns_iam_its_name_is_used_whose_certificate_everybody_trusts() -> None:
    outputs = seen(ReadCloud(found), access="dns_iam")

    assert json.loads(outputs["kubeconfig"])["clusters"][0]["cluster"] == {"server": "https://gke-1.us-central1.gke.goog"}


@pytest.mark.parametrize("access", ["private", "dns_iam", "public_cidrs"])
def test_the_kubeconfig_holds_no_secret_and_asks_googles_plugin_for_a_token(access: str) -> None:
    outputs = seen(ReadCloud(found), access=access)

    assert outputs["secrets"] == [False] * 3
    [user] = json.loads(outputs["kubeconfig"])["users"]
    assert user["user"].keys() == {"exec"}
    assert user["user"]["exec"]["command"] == "gke-gcloud-auth-plugin"


@pytest.mark.parametrize("access,flag", [("private", " --internal-ip"), ("dns_iam", " --dns-endpoint"), ("public_cidrs", "")])
def test_the_credentials_command_fits_the_access(access: str, flag: str) -> None:
    command = seen(ReadCloud(found), access=access)["credentials_command"]

    assert command == "gcloud container clusters get-credentials lab --location us-central1 --project acme-ai-dev" + flag


def test_the_certificate_is_left_out_where_the_name_is_used_alone() -> None:
    of = {
        access: json.loads(seen(ReadCloud(found), access=access)["kubeconfig"])["clusters"][0]["cluster"]
        for access in ("private", "dns_iam")
    }

    assert [access for access, cluster in of.items() if "certificate-authority-data" in cluster] == ["private"]


def test_a_zonal_cluster_is_looked_up_and_named_by_its_zone() -> None:
    cloud = ReadCloud(found)

    outputs = seen(cloud, zone="us-central1-b")

    assert cloud.read == [(CLUSTER, PATH.replace("us-central1", "us-central1-b"))]
    assert json.loads(outputs["kubeconfig"])["current-context"] == "gke_acme-ai-dev_us-central1-b_lab"
    assert outputs["credentials_command"] == (
        "gcloud container clusters get-credentials lab --location us-central1-b --project acme-ai-dev --internal-ip"
    )


@pytest.mark.parametrize("zone", ["us-east1-b", "us-central1", "us-central12-a", ""])
def test_a_zone_of_another_region_is_refused_before_anything_is_read(zone: str) -> None:
    cloud = ReadCloud(found)

    with pytest.raises(ValueError, match=f"ExistingGkeCluster cluster: zone is '{zone}'; allowed is a zone of us-central1; name the"):
        seen(cloud, zone=zone)

    assert (cloud.made, cloud.read) == ([], [])


@pytest.mark.parametrize("access", ["public", "DNS_IAM", ""])
def test_an_access_that_gke_does_not_have_is_refused_before_anything_is_read(access: str) -> None:
    cloud = ReadCloud(found)

    with pytest.raises(ValueError, match=f"ExistingGkeCluster cluster: access is '{access}'; allowed: private, dns_iam, public_cidrs"):
        seen(cloud, access=access)

    assert (cloud.made, cloud.read) == ([], [])


@pytest.mark.parametrize("access", ["private", "dns_iam"])
def test_a_cluster_of_which_nothing_is_known_yet_gives_no_kubeconfig_of_an_empty_host(access: str) -> None:
    outputs = seen(ReadCloud(None), access=access)

    assert outputs["known"]["kubeconfig"] is False


def test_pulumis_component_host_accepts_the_arguments_and_knows_which_are_optional() -> None:
    component = Analyzer("flexspot").analyze([ExistingGkeCluster])["component_definitions"]["ExistingGkeCluster"]

    assert {name for name, each in component.inputs.items() if not each.optional} == {"cluster", "project", "region"}
