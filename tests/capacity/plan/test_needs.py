"""Requirements of a plan for an account, a project and an existing cluster, compared with sums by hand."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from settings_documents import changed

from flexspot.capacity.catalog.account_needs import Market, quota_of_machine
from flexspot.capacity.catalog.machines import Vendor, machines_of
from flexspot.capacity.catalog.node_images import shipped_images
from flexspot.capacity.plan.build import build_plan
from flexspot.capacity.plan.needs import (
    ClusterNeeds,
    EksClusterNeeds,
    KubernetesNeed,
    ProjectNeeds,
    QuotaNeed,
    VersionNeed,
    cluster_needs,
    eks_cluster_needs,
    project_needs,
    quota_needs,
)
from flexspot.capacity.settings.cluster import GkeMode
from flexspot.capacity.settings.platform import EksSettings, GkeSettings
from flexspot.capacity.settings.stack_file import parse_settings

if TYPE_CHECKING:
    from flexspot.capacity.plan.model import Plan

STANDARD, G, P = "L-1216C47A", "L-DB2E81BA", "L-417A185B"
STANDARD_SPOT, G_SPOT, P4_SPOT, P5_SPOT = "L-34B43A08", "L-3819A6DF", "L-7212CCBC", "L-C4BD4855"
ADDRESSES = "L-0263D0A3"
KUEUE = VersionNeed("1.29", "Kueue 0.19.2")
THEIRS: dict[str, Any] = {"node_role": "KarpenterNodeRole-shared"}
KEY = "projects/acme-keys/locations/us-central1/keyRings/ai/cryptoKeys/"


def eks(**changes: Any) -> tuple[EksSettings, Plan]:
    """Return the minimal settings with changes, in whose names `__` stands for a dot, and their plan."""
    settings = parse_settings(changed("eks", {path.replace("__", "."): value for path, value in changes.items()}), "settings")
    assert isinstance(settings, EksSettings)
    return settings, build_plan(settings)


def gke(**changes: Any) -> tuple[GkeSettings, Plan]:
    settings = parse_settings(changed("gke", {path.replace("__", "."): value for path, value in changes.items()}), "settings")
    assert isinstance(settings, GkeSettings)
    return settings, build_plan(settings)


def quotas(**changes: Any) -> dict[str | None, QuotaNeed]:
    settings, plan = eks(**changes)
    return {each.quota.code if each.quota else None: each for each in quota_needs(plan, settings)}


def of_gke_cluster(**changes: Any) -> ClusterNeeds:
    return cluster_needs(*gke(cluster__existing="shared", **changes))


def of_eks_cluster(**changes: Any) -> EksClusterNeeds:
    return eks_cluster_needs(*eks(cluster__existing="shared", **changes), shipped_images())


def of_project(**changes: Any) -> ProjectNeeds:
    settings, plan = gke(**changes)
    return project_needs(plan, settings)


def pool(name: str, machine: str, capacity_type: str = "spot", max_nodes: int = 2, **options: Any) -> dict[str, Any]:
    return {"name": name, "machine": machine, "capacity_type": capacity_type, "max_nodes": max_nodes, "serves": ["training"], **options}


def test_a_spot_pool_counts_its_nodes_of_the_largest_machine_against_spot() -> None:
    found = quotas(pools__0=pool("l4-spot", "g6.xlarge", max_nodes=4, alternatives=["g6.2xlarge"]))

    assert [(use.what, use.amount) for use in found[G_SPOT].uses] == [("l4-spot", 4 * 8)]
    assert G not in found


def test_reservations_count_against_on_demand_and_capacity_blocks_against_nothing() -> None:
    odcr = {"ids": ["cr-0a1b2c3d4e5f60718"]}
    block = {"kind": "capacity-block", "ids": ["cr-0b1b2c3d4e5f60718"]}
    found = quotas(
        pools__1=pool("kept", "g6.2xlarge", "reserved", 3, reservation=odcr),
        pools__2=pool("bought", "g6.2xlarge", "on-demand", 1) | {"serves": ["inference"]},
        pools__3=pool("block", "p5.48xlarge", "reserved", 2, reservation=block, zones=["us-east-1a"]),
    )

    assert {use.what: use.amount for use in found[G].uses} == {"kept": 3 * 8, "bought": 8}
    assert P not in found


def test_p4_and_p5_on_spot_have_separate_quotas_and_p6_has_no_known_one() -> None:
    found = quotas(pools__1=pool("a100", "p4d.24xlarge"), pools__2=pool("h100", "p5.48xlarge"), pools__3=pool("b200", "p6-b200.48xlarge"))

    assert (found[P4_SPOT].amount, found[P5_SPOT].amount, found[None].amount) == (2 * 96, 2 * 192, 2 * 192)
    assert found[None].beyond_default


def test_system_nodes_count_together_with_their_replacements() -> None:
    found = quotas(cluster__system_pool={"machine": "m6i.xlarge", "min_nodes": 2, "max_nodes": 3}, cluster__other_work={"max_vcpu": 32})

    zones = 2
    assert {use.what: use.amount for use in found[STANDARD].uses} == {
        "other-work": 32,
        "system nodes": 3 * 4,
        "system nodes while they are replaced": 2 * zones * 4,
    }
    assert found[STANDARD_SPOT].amount == 32
    assert found[ADDRESSES].amount == zones


def test_a_described_machine_counts_with_its_described_vcpu() -> None:
    described = {"name": "g9.xlarge", "vcpu": 6, "memory_mib": 16384, "gpu": {"name": "l4", "count": 1, "memory_mib": 22888}}
    found = quotas(machines=[described], pools__1=pool("next", "g9.xlarge", max_nodes=3) | {"serves": ["interactive"]})

    assert {use.what: use.amount for use in found[G_SPOT].uses}["next"] == 3 * 6


def test_existing_parts_count_against_no_quota() -> None:
    found = quotas(cluster__existing="theirs", cluster__other_work={"max_vcpu": 0})

    assert found.keys() == {G_SPOT}


def test_each_nat_gateway_needs_an_address() -> None:
    zones = [f"us-east-1{letter}" for letter in "abcdf"]
    private, public = [f"10.0.{32 * n}.0/19" for n in range(5)], [f"10.0.{200 + n}.0/24" for n in range(5)]

    five = quotas(zones=zones, network={"private_cidrs": private, "public_cidrs": public})[ADDRESSES]
    single = quotas(zones=zones, network={"private_cidrs": private, "public_cidrs": public, "nat": "single"})[ADDRESSES]

    assert (five.amount, five.beyond_default, single.amount) == (5, False, 1)


@pytest.mark.parametrize("market", Market)
def test_every_machine_counts_against_the_quota_that_names_its_family(market: Market) -> None:
    """AWS's names of quotas contain the families that they apply to."""
    without: list[str] = []
    for name in machines_of(Vendor.AWS):
        quota = quota_of_machine(name, market)
        if quota is None:
            without.append(name)
            continue
        family = name.partition(".")[0]
        words = re.findall(r"\b(?:[A-Z]\d?|Inf|Trn)\b", quota.name)
        assert any(family.upper().startswith(word.upper()) for word in words), f"{name} is counted by {quota.name}"
    assert [name for name in without if not (market is Market.SPOT and name.startswith("p6-"))] == []


def test_options_of_pools_and_kueue_need_a_version() -> None:
    assert of_gke_cluster().versions == (KUEUE,)
    assert of_gke_cluster(pools__0__shutdown_grace_seconds=120).versions == (
        VersionNeed("1.35.0-gke.1171000", "pools.0.shutdown_grace_seconds (l4-spot: 120)"),
        KUEUE,
    )


def test_an_existing_kueue_needs_no_version() -> None:
    assert of_gke_cluster(queueing={"existing_kueue": True}).versions == ()


def test_a_chosen_kueue_version_is_named() -> None:
    assert of_gke_cluster(controllers={"kueue": {"version": "0.19.2"}}).versions == (VersionNeed("1.29", "Kueue 0.19.2"),)


def test_a_pool_in_a_compute_class_needs_a_version_that_has_them() -> None:
    fallen = of_gke_cluster(classes={"interactive": {"fallback": "stock-out"}}, pools__0__serves=["interactive"])

    assert fallen.versions == (VersionNeed("1.30.3-gke.1451000", "pools.0.serves (l4-spot: the compute class interactive)"), KUEUE)


def test_room_is_the_sum_of_the_pools_by_gkes_resource_names() -> None:
    # Four g2-standard-8, with 8 vCPU, 32 GiB and an L4 each.
    assert of_gke_cluster(pools__0__max_nodes=4).room == {"cpu": 32, "memory": 128, "nvidia-l4": 4}


def test_on_autopilot_pools_need_no_room() -> None:
    found = of_gke_cluster(cluster__mode="autopilot")

    assert (found.mode, found.room) == (GkeMode.AUTOPILOT, {})


def test_versions_are_those_of_the_image_karpenter_and_kueue() -> None:
    image = of_eks_cluster(cluster__ami="al2023@v20250807").versions[0]

    assert (image.user, image.least, image.most) == ("cluster.ami al2023@v20250807", "1.28", "1.33")
    assert of_eks_cluster().versions[1:] == (
        KubernetesNeed("Karpenter 1.14.1", "1.26", "1.36", "name another in controllers.karpenter.version"),
        KubernetesNeed("Kueue 0.19.2", "1.29", None, "set queueing.existing_kueue: true if the cluster has an older one"),
    )


def test_existing_controllers_need_no_version() -> None:
    assert [each.user for each in of_eks_cluster(cluster__existing_karpenter=THEIRS, queueing={"existing_kueue": True}).versions] == [
        "cluster.ami al2023@v20260903"
    ]
    assert [each.user for each in of_eks_cluster(controllers__karpenter__version="1.99.0").versions[1:]] == ["Kueue 0.19.2"]


@pytest.mark.parametrize(
    "storage,drivers",
    [
        ({}, ["aws-mountpoint-s3-csi-driver"]),
        ({"checkpoints": "efs"}, ["aws-mountpoint-s3-csi-driver", "aws-efs-csi-driver"]),
        ({"checkpoints": "efs", "datasets": "efs"}, ["aws-efs-csi-driver"]),
        ({"checkpoints": "efs", "datasets": "lustre"}, ["aws-efs-csi-driver", "aws-fsx-csi-driver"]),
    ],
)
def test_drivers_are_those_of_the_mounted_storage(storage: dict[str, str], drivers: list[str]) -> None:
    vpc = {"existing_vpc": "vpc-0a1b2c3d", "existing_private_subnets": ["subnet-0a1b2c3d", "subnet-1a2b3c4d"]}

    assert list(of_eks_cluster(storage=storage, network=vpc).addons) == ["eks-pod-identity-agent", *drivers]


def agents(found: ProjectNeeds) -> list[tuple[str, str]]:
    return [(each.key.removeprefix(KEY), each.agent.partition("@")[2].partition(".")[0]) for each in found.keys]


def test_a_key_needs_the_service_agent_that_stores_the_encrypted_data() -> None:
    found = of_project(
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


def test_security_options_of_gke_need_apis() -> None:
    on = {"posture": "basic", "binary_authorization": "project_singleton_policy_enforce"}
    names = {each.name for each in of_project(cluster__security=on).apis}
    off = {each.name for each in of_project(cluster__security={"posture": "disabled", "binary_authorization": "disabled"}).apis}

    assert names - off == {"binaryauthorization.googleapis.com", "containersecurity.googleapis.com"}


def test_on_an_existing_cluster_only_the_key_of_disks_is_needed() -> None:
    security = {"boot_disk_kms_key": f"{KEY}disks"}

    assert agents(of_project(cluster={"existing": "shared", "security": security})) == [("disks", "compute-system")]


SHARED = {
    "network.existing_network": "projects/acme-net/global/networks/shared",
    "network.existing_subnetwork": "projects/acme-net/regions/us-central1/subnetworks/gpu-nodes",
}


def of_another_project(**changes: Any) -> ProjectNeeds:
    return of_project(**{path.replace(".", "__"): value for path, value in (SHARED | changes).items()})


def test_the_host_project_of_a_shared_vpc_grants_the_network_to_service_agents_and_the_deployer() -> None:
    host = of_another_project().host

    assert host is not None
    assert (host.project, host.region, host.apis) == ("acme-net", "us-central1", ["compute.googleapis.com", "container.googleapis.com"])
    assert [(each.role, each.agent, each.subnetwork) for each in host.grants] == [
        ("roles/container.hostServiceAgentUser", "service-{number}@container-engine-robot.iam.gserviceaccount.com", None),
        ("roles/compute.networkUser", "service-{number}@container-engine-robot.iam.gserviceaccount.com", "gpu-nodes"),
        ("roles/compute.networkUser", "{number}@cloudservices.gserviceaccount.com", "gpu-nodes"),
        ("roles/compute.networkUser", None, "gpu-nodes"),
    ]


def test_a_network_in_the_stacks_own_project_has_no_host() -> None:
    own = {path: value.replace("acme-net", "acme-ai-dev") for path, value in SHARED.items()}

    assert of_project().host is None
    assert of_project(network__existing_network="shared", network__existing_subnetwork="nodes").host is None
    assert of_another_project(**own, project="acme-ai-dev").host is None
    assert of_another_project(cluster__existing="theirs").host is None
