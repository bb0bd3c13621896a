"""ExistingGkeCluster: it is read, never created, and reached as it was configured."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pulumi
import pytest
from component_outputs import ReadCloud, outputs_of
from gke_cluster_args import CLUSTER

from flexspot.components.gke.existing_cluster import ExistingGkeCluster, ExistingGkeClusterArgs

if TYPE_CHECKING:
    from collections.abc import Callable

PATH = "projects/acme-ai-dev/locations/us-central1/clusters/lab"


def found(identity: str) -> dict[str, Any]:
    """Return GKE's answer about the cluster."""
    return {
        "name": identity.rpartition("/")[2],
        "endpoint": "172.16.0.2",
        "masterAuth": {"clusterCaCertificate": "Y2E=", "clientKey": pulumi.Output.secret("key")},
        "controlPlaneEndpointsConfig": {"dnsEndpointConfig": {"endpoint": "gke-1.us-central1.gke.goog"}},
    }


def in_order(**changes: Any) -> Callable[[str], dict[str, Any]]:
    """Return GKE's answer about a suitable cluster, with some of it changed."""
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
    return lambda identity: found(identity) | known | changes


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
    """Return the component's outputs, the names of those that are secret, and whether each is known."""

    def make() -> ExistingGkeCluster:
        cluster = ExistingGkeCluster("cluster", arguments(**changes))
        assert cluster.system_pool is None
        return cluster

    return outputs_of(cloud, make, preview=cloud.is_preview)


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
    assert outputs["secrets"] == [False] * 3
    assert [each["user"].keys() for each in written["users"]] == [{"exec"}]


def test_with_dns_iam_its_name_is_used_with_a_public_certificate() -> None:
    outputs = seen(ReadCloud(found), access="dns_iam")

    assert json.loads(outputs["kubeconfig"])["clusters"][0]["cluster"] == {"server": "https://gke-1.us-central1.gke.goog"}


def test_a_zonal_cluster_is_looked_up_and_named_by_its_zone() -> None:
    cloud = ReadCloud(found)

    outputs = seen(cloud, zone="us-central1-b")

    assert cloud.read == [(CLUSTER, PATH.replace("us-central1", "us-central1-b"))]
    assert json.loads(outputs["kubeconfig"])["current-context"] == "gke_acme-ai-dev_us-central1-b_lab"
    assert outputs["credentials_command"] == (
        "gcloud container clusters get-credentials lab --location us-central1-b --project acme-ai-dev --internal-ip"
    )


@pytest.mark.parametrize(
    "change,problem",
    [
        ({"zone": "us-east1-b"}, "zone (is 'us-east1-b'): is not a zone of us-central1; use the"),
        ({"zone": "us-central12-a"}, "zone (is 'us-central12-a'): is not a zone of us-central1"),
        ({"access": "public"}, "access (is 'public'): must be one of private, dns_iam, public_cidrs"),
        ({"mode": "auto"}, "mode (is 'auto'): must be one of standard, autopilot"),
    ],
)
def test_arguments_that_gke_does_not_have_are_refused_before_anything_is_read(change: dict[str, str], problem: str) -> None:
    cloud = ReadCloud(found)

    with pytest.raises(ValueError, match=re.escape(f"ExistingGkeCluster cluster: {problem}")):
        seen(cloud, **change)

    assert (cloud.made, cloud.read) == ([], [])


@pytest.mark.parametrize("access", ["private", "dns_iam"])
def test_an_unknown_cluster_gives_no_kubeconfig_with_an_empty_host(access: str) -> None:
    outputs = seen(ReadCloud(None), access=access)

    assert outputs["known"]["kubeconfig"] is False


def refused(cloud: ReadCloud, **changes: Any) -> list[str]:
    """Return the problems of an unsuitable cluster, one per line."""
    with pytest.raises(pulumi.RunError, match="ExistingGkeCluster cluster: ") as error:
        seen(cloud, **NEEDS | changes)
    return [line.removeprefix("ExistingGkeCluster cluster: ") for line in str(error.value).splitlines()]


def test_a_suitable_cluster_is_read_by_its_path_and_nothing_is_created() -> None:
    cloud = ReadCloud(in_order())

    assert seen(cloud, **NEEDS)["cluster_name"] == "lab"
    assert (cloud.made, cloud.read) == (["flexspot:index:ExistingGkeCluster"], [(CLUSTER, PATH)])


ALONE = "above which no pool grows, but the pools alone may use"
TOO_FEW_GPUS = {"enabled": True, "resourceLimits": [{"resourceType": "nvidia-l4", "maximum": 1}]}
BY_GKE = f"{UPDATE} --enable-autoprovisioning --max-cpu 96"


@pytest.mark.parametrize(
    "change,problem,remedy",
    [
        ({"workloadIdentityConfig": None}, "Workload Identity of lab is off", f"`{UPDATE} --workload-pool=acme-ai-dev.svc.id.goog`"),
        ({"workloadIdentityConfig": {"workloadPool": "b"}}, "Workload Identity of lab has the pool b, not acme-ai-dev.svc.id.goog", UPDATE),
        ({"addonsConfig": {}}, "the Cloud Storage FUSE driver of lab is off", f"`{UPDATE} --update-addons=GcsFuseCsiDriver=ENABLED`"),
        ({"addonsConfig": {"gcsFuseCsiDriverConfig": {"enabled": False}}}, "the Cloud Storage FUSE driver of lab is off", UPDATE),
        (
            {"masterVersion": "1.31.9-gke.1"},
            "lab has GKE 1.31.9-gke.1, but 1.32.2-gke.1652000",
            f"{IN_PLACE} --master --cluster-version=1.32`",
        ),
        ({"enableAutopilot": True}, "mode (is 'standard'): lab is autopilot", "use mode autopilot (cluster.mode)"),
        (
            {"clusterAutoscaling": LIMITS},
            f"node auto-provisioning of lab has a limit of 64 for cpu, {ALONE} 96",
            f"{BY_GKE} --max-memory 512`",
        ),
        (
            {"clusterAutoscaling": TOO_FEW_GPUS},
            f"node auto-provisioning of lab has a limit of 1 for nvidia-l4, {ALONE} 8",
            f"{BY_GKE} --max-memory 384 --max-accelerator type=nvidia-l4,count=8`",
        ),
    ],
    ids=["no identity", "another pool", "driver unknown", "no driver", "too old", "autopilot", "too little cpu", "too few GPUs"],
)
def test_each_problem_of_a_cluster_is_reported_with_its_remedy(change: dict[str, Any], problem: str, remedy: str) -> None:
    [message] = refused(ReadCloud(in_order(**change)))

    assert message.startswith(problem)
    assert remedy in message


def test_each_problem_is_reported_on_a_separate_line() -> None:
    messages = refused(ReadCloud(lambda identity: found(identity) | {"masterVersion": "1.28.1-gke.1", "clusterAutoscaling": LIMITS}))

    assert [line.partition("; ")[0] for line in messages] == [
        "Workload Identity of lab is off, so pods cannot act as their team's service account",
        "the Cloud Storage FUSE driver of lab is off, so pods that mount a bucket would not start",
        "lab has GKE 1.28.1-gke.1, but 1.32.2-gke.1652000 or newer is required by the pool a100-flex, the pool h100-flex",
        "lab has GKE 1.28.1-gke.1, but 1.29 or newer is required by Kueue",
        f"node auto-provisioning of lab has a limit of 64 for cpu, {ALONE} 96",
    ]


def test_the_commands_name_the_zone_of_a_zonal_cluster() -> None:
    [message] = refused(ReadCloud(in_order(addonsConfig={})), zone="us-central1-b")

    assert "`gcloud container clusters update lab --location us-central1-b --project acme-ai-dev --update-addons=" in message


def test_limits_of_disabled_auto_provisioning_are_ignored() -> None:
    assert seen(ReadCloud(in_order(clusterAutoscaling=LIMITS | {"enabled": False})), **NEEDS)["cluster_name"] == "lab"


def test_autopilot_includes_workload_identity_the_driver_and_nodes() -> None:
    autopilot = {"enableAutopilot": True, "workloadIdentityConfig": None, "addonsConfig": {}, "clusterAutoscaling": {}}

    assert seen(ReadCloud(in_order(**autopilot)), **NEEDS | {"mode": "autopilot"})["cluster_name"] == "lab"
    assert refused(ReadCloud(in_order()), mode="autopilot") == [
        "mode (is 'autopilot'): lab is standard, which GKE cannot change; use mode standard (cluster.mode), or another cluster"
    ]


def test_a_cluster_that_was_not_read_is_not_refused_and_its_name_is_known() -> None:
    outputs = seen(ReadCloud(None), **NEEDS)

    assert outputs["known"] == {"cluster_name": True, "kubeconfig": False, "credentials_command": True}


def test_in_a_preview_parts_that_the_provider_omits_are_off() -> None:
    class Previewed(ReadCloud):
        is_preview = True

    messages = refused(Previewed(lambda _: {"masterVersion": "1.35.2-gke.1000000"}))

    assert [line.partition(" of lab ")[0] for line in messages] == ["Workload Identity", "the Cloud Storage FUSE driver"]
