"""ExistingGkeCluster: it is read, never made, and reached as it was set up."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pulumi
import pytest
from component_outputs import ReadCloud, outputs_of
from gke_cluster_args import CLUSTER
from pulumi.provider.experimental.analyzer import Analyzer

from components.gke.existing_cluster import ExistingGkeCluster, ExistingGkeClusterArgs

if TYPE_CHECKING:
    from collections.abc import Callable

PATH = "projects/acme-ai-dev/locations/us-central1/clusters/lab"


def found(asked: str) -> dict[str, Any]:
    """What GKE knows of the cluster."""
    return {
        "name": asked.rpartition("/")[2],
        "endpoint": "172.16.0.2",
        "masterAuth": {"clusterCaCertificate": "Y2E=", "clientKey": pulumi.Output.secret("key")},
        "controlPlaneEndpointsConfig": {"dnsEndpointConfig": {"endpoint": "gke-1.us-central1.gke.goog"}},
    }


def in_order(**changes: Any) -> Callable[[str], dict[str, Any]]:
    """What GKE knows of a cluster on which a platform can be, with some of it changed."""
    limits = [
        {"resourceType": "cpu", "maximum": 200},
        {"resourceType": "memory", "maximum": 800},
        {"resourceType": "nvidia-l4", "maximum": 8},
    ]
    known = {
        "masterVersion": "1.35.2-gke.1000000",
        "enableAutopilot": False,
        "workloadIdentityConfig": {"workloadPool": "acme-ai-dev.svc.id.goog"},
        "addonsConfig": {"gcsFuseCsiDriverConfig": {"enabled": True}},
        "clusterAutoscaling": {"enabled": True, "resourceLimits": limits},
    }
    return lambda asked: found(asked) | known | changes


NEEDS: dict[str, Any] = {
    "mode": "standard",
    "workload_identity": True,
    "gcs_fuse": True,
    "at_least": [
        {"version": "1.32.2-gke.1652000", "user": "the pool a100-flex"},
        {"version": "1.29", "user": "Kueue"},
        {"version": "1.32.2-gke.1652000", "user": "the pool h100-flex"},
    ],
    "room": {"cpu": 96, "memory": 384, "nvidia-l4": 8, "nvidia-tesla-t4": 4},
}

LIMITS = {"enabled": True, "resourceLimits": [{"resourceType": "cpu", "maximum": 64}, {"resourceType": "memory", "maximum": 512}]}

IN_PLACE = "lab --location us-central1 --project acme-ai-dev"
UPDATE = f"gcloud container clusters update {IN_PLACE}"


def arguments(**changes: Any) -> ExistingGkeClusterArgs:
    return {"cluster": "lab", "project": "acme-ai-dev", "region": "us-central1"} | changes  # pyrefly: ignore[bad-return] -- a test's own


def seen(cloud: ReadCloud, **changes: Any) -> dict[str, Any]:
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

    with pytest.raises(ValueError, match=f"ExistingGkeCluster cluster: zone is '{zone}'; it must be a zone of us-central1; name the"):
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


def refused(cloud: ReadCloud, **changes: Any) -> list[str]:
    """What is told of a cluster on which the platform cannot be, a line each."""
    with pytest.raises(pulumi.RunError, match="ExistingGkeCluster cluster: ") as error:
        seen(cloud, **NEEDS | changes)
    return [line.removeprefix("ExistingGkeCluster cluster: ") for line in str(error.value).splitlines()]


def test_a_cluster_with_all_that_is_needed_is_used() -> None:
    cloud = ReadCloud(in_order())

    outputs = seen(cloud, **NEEDS)

    assert outputs["cluster_name"] == "lab"
    assert json.loads(outputs["kubeconfig"])["current-context"] == "gke_acme-ai-dev_us-central1_lab"
    assert (cloud.made, cloud.read) == (["flexspot:index:ExistingGkeCluster"], [(CLUSTER, PATH)])


def test_what_nobody_needs_is_not_looked_at() -> None:
    assert seen(ReadCloud(found))["cluster_name"] == "lab"


ON = f"its owner turns it on with `{UPDATE} --workload-pool=acme-ai-dev.svc.id.goog`, which changes no node that is there"
UPGRADED = (
    f"its owner upgrades it, one minor version at a time, with `gcloud container clusters upgrade {IN_PLACE} --master --cluster-version="
)
HELD = "at the limit no pool grows; its owner raises it with"
ALONE = "and the pools alone may come to"


@pytest.mark.parametrize(
    "change,told",
    [
        (
            {"workloadIdentityConfig": None},
            f"Workload Identity of lab is off: no pod could act as its team's service account; {ON}",
        ),
        (
            {"workloadIdentityConfig": {"workloadPool": "b.svc.id.goog"}},
            (
                "Workload Identity of lab has the pool b.svc.id.goog, not acme-ai-dev.svc.id.goog: "
                f"no pod could act as its team's service account; {ON}"
            ),
        ),
        (
            {"addonsConfig": {"gcsFuseCsiDriverConfig": {"enabled": False}}},
            (
                "the Cloud Storage FUSE driver of lab is off: no pod that mounts a bucket would start; its owner turns it on with "
                f"`{UPDATE} --update-addons=GcsFuseCsiDriver=ENABLED`"
            ),
        ),
        (
            {"masterVersion": "1.31.9-gke.1"},
            (
                "lab has GKE 1.31.9-gke.1, and 1.32.2-gke.1652000 or newer is needed by the pool a100-flex, the pool h100-flex; "
                f"{UPGRADED}1.32`, or leave out what needs it"
            ),
        ),
        (
            {"enableAutopilot": True},
            "mode is 'standard', and lab is autopilot, which GKE never changes; say mode autopilot (cluster.mode), or name another cluster",
        ),
        (
            {"clusterAutoscaling": LIMITS},
            (
                f"node auto-provisioning of lab has a limit of 64 for cpu, {ALONE} 96: {HELD} "
                f"`{UPDATE} --enable-autoprovisioning --max-cpu 96 --max-memory 512`, or lower the pools' ceilings"
            ),
        ),
        (
            {"clusterAutoscaling": {"enabled": True, "resourceLimits": [{"resourceType": "nvidia-l4", "maximum": 1}]}},
            (
                f"node auto-provisioning of lab has a limit of 1 for nvidia-l4, {ALONE} 8: {HELD} `{UPDATE} --enable-autoprovisioning "
                "--max-cpu 96 --max-memory 384 --max-accelerator type=nvidia-l4,count=8`, or lower the pools' ceilings"
            ),
        ),
    ],
    ids=["no identity", "another pool", "no driver", "too old", "autopilot", "too little cpu", "too few GPUs"],
)
def test_what_is_wrong_with_a_cluster_is_told_with_what_mends_it(change: dict[str, Any], told: str) -> None:
    assert refused(ReadCloud(in_order(**change))) == [told]


def test_a_driver_of_which_nothing_is_answered_is_off() -> None:
    assert [line.partition(":")[0] for line in refused(ReadCloud(in_order(addonsConfig={})))] == [
        "the Cloud Storage FUSE driver of lab is off"
    ]


def test_each_problem_is_told_in_a_line_of_its_own() -> None:
    told = refused(ReadCloud(lambda asked: found(asked) | {"masterVersion": "1.28.1-gke.1", "clusterAutoscaling": LIMITS}))

    assert [line.partition("; ")[0] for line in told] == [
        "Workload Identity of lab is off: no pod could act as its team's service account",
        "the Cloud Storage FUSE driver of lab is off: no pod that mounts a bucket would start",
        "lab has GKE 1.28.1-gke.1, and 1.32.2-gke.1652000 or newer is needed by the pool a100-flex, the pool h100-flex",
        "lab has GKE 1.28.1-gke.1, and 1.29 or newer is needed by Kueue",
        f"node auto-provisioning of lab has a limit of 64 for cpu, {ALONE} 96: at the limit no pool grows",
    ]


def test_the_commands_name_the_zone_of_a_zonal_cluster() -> None:
    [told] = refused(ReadCloud(in_order(addonsConfig={})), zone="us-central1-b")

    assert "`gcloud container clusters update lab --location us-central1-b --project acme-ai-dev --update-addons=" in told


def test_limits_of_auto_provisioning_that_is_off_hold_nothing_back() -> None:
    assert seen(ReadCloud(in_order(clusterAutoscaling=LIMITS | {"enabled": False})), **NEEDS)["cluster_name"] == "lab"


def test_autopilot_has_workload_identity_the_driver_and_its_nodes_by_itself() -> None:
    autopilot = {"enableAutopilot": True, "workloadIdentityConfig": None, "addonsConfig": {}, "clusterAutoscaling": {}}

    assert seen(ReadCloud(in_order(**autopilot)), **NEEDS | {"mode": "autopilot"})["cluster_name"] == "lab"
    assert refused(ReadCloud(in_order()), mode="autopilot") == [
        "mode is 'autopilot', and lab is standard, which GKE never changes; say mode standard (cluster.mode), or name another cluster"
    ]


def test_of_a_cluster_that_nobody_could_read_nothing_is_refused_and_its_name_is_known() -> None:
    outputs = seen(ReadCloud(None), **NEEDS)

    assert outputs["known"] == {"cluster_name": True, "kubeconfig": False, "credentials_command": True}


def test_in_a_preview_what_the_provider_leaves_out_of_a_cluster_that_it_has_read_is_off() -> None:
    class Previewed(ReadCloud):
        is_preview = True

    told = refused(Previewed(lambda _: {"masterVersion": "1.35.2-gke.1000000"}))

    assert [line.partition(" of lab ")[0] for line in told] == ["Workload Identity", "the Cloud Storage FUSE driver"]


def test_a_mode_that_gke_does_not_have_is_refused_before_anything_is_read() -> None:
    cloud = ReadCloud(found)

    with pytest.raises(ValueError, match="ExistingGkeCluster cluster: mode is 'auto'; allowed: standard, autopilot"):
        seen(cloud, mode="auto")

    assert (cloud.made, cloud.read) == ([], [])


def test_pulumis_component_host_accepts_the_arguments_and_knows_which_are_optional() -> None:
    component = Analyzer("flexspot").analyze([ExistingGkeCluster])["component_definitions"]["ExistingGkeCluster"]

    assert {name for name, each in component.inputs.items() if not each.optional} == {"cluster", "project", "region"}
