"""What a project must allow for keys of one's own and for what GKE watches, from the settings."""

from __future__ import annotations

from typing import Any

from settings_documents import changed

from capacity.plan.build import build_plan
from capacity.plan.project_needs import ProjectNeeds, project_needs
from capacity.settings.platform import GkeSettings
from capacity.settings.stack_file import parse_settings

KEY = "projects/acme-keys/locations/us-central1/keyRings/ai/cryptoKeys/"


def needs(**changes: Any) -> ProjectNeeds:
    settings = parse_settings(changed("gke", {path.replace("__", "."): value for path, value in changes.items()}), "settings")
    assert isinstance(settings, GkeSettings)
    return project_needs(build_plan(settings), settings)


def agents(found: ProjectNeeds) -> list[tuple[str, str]]:
    return [(each.key.removeprefix(KEY), each.agent.partition("@")[2].partition(".")[0]) for each in found.keys]


def test_a_key_is_to_be_used_by_the_account_of_google_that_keeps_what_it_encrypts() -> None:
    found = needs(
        cluster__security={"secrets_kms_key": f"{KEY}etcd", "boot_disk_kms_key": f"{KEY}disks"},
        pools__0__boot_disk_kms_key=f"{KEY}disks",
        storage__encryption_key=f"{KEY}buckets",
        teams__0__work_queue={},
    )

    assert agents(found) == [
        ("etcd", "container-engine-robot"),
        ("disks", "compute-system"),
        ("buckets", "gs-project-accounts"),
        ("buckets", "gcp-sa-pubsub"),
    ]
    assert "cloudkms.googleapis.com" in {each.name for each in found.apis}


def test_what_gke_watches_and_lets_in_has_an_api_of_its_own() -> None:
    on = {"posture": "basic", "binary_authorization": "project_singleton_policy_enforce"}
    names = {each.name for each in needs(cluster__security=on).apis}
    off = {each.name for each in needs(cluster__security={"posture": "disabled", "binary_authorization": "disabled"}).apis}

    assert names - off == {"binaryauthorization.googleapis.com", "containersecurity.googleapis.com"}


def test_of_a_cluster_that_is_there_the_disks_alone_are_ours() -> None:
    security = {"boot_disk_kms_key": f"{KEY}disks"}

    assert agents(needs(cluster={"existing": "shared", "security": security})) == [("disks", "compute-system")]


SHARED = {
    "network.existing_network": "projects/acme-net/global/networks/shared",
    "network.existing_subnetwork": "projects/acme-net/regions/us-central1/subnetworks/gpu-nodes",
}


def of_another_project(**changes: Any) -> ProjectNeeds:
    return needs(**{path.replace(".", "__"): value for path, value in (SHARED | changes).items()})


def test_the_host_project_of_a_shared_vpc_grants_the_network_to_gke_to_google_and_to_whoever_deploys() -> None:
    host = of_another_project().host

    assert host is not None
    assert (host.project, host.region, host.apis) == ("acme-net", "us-central1", ["compute.googleapis.com", "container.googleapis.com"])
    assert [(each.role, each.agent, each.subnetwork) for each in host.grants] == [
        ("roles/container.hostServiceAgentUser", "service-{number}@container-engine-robot.iam.gserviceaccount.com", None),
        ("roles/compute.networkUser", "service-{number}@container-engine-robot.iam.gserviceaccount.com", "gpu-nodes"),
        ("roles/compute.networkUser", "{number}@cloudservices.gserviceaccount.com", "gpu-nodes"),
        ("roles/compute.networkUser", None, "gpu-nodes"),
    ]


def test_a_network_of_the_stacks_own_project_has_no_host() -> None:
    own = {path: value.replace("acme-net", "acme-ai-dev") for path, value in SHARED.items()}

    assert needs().host is None
    assert needs(network__existing_network="shared", network__existing_subnetwork="nodes").host is None
    assert of_another_project(**own, project="acme-ai-dev").host is None
    assert of_another_project(cluster__existing="theirs").host is None
