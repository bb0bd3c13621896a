"""GkeCluster: a private and limited cluster by default, and its options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi
import pytest
from gke_cluster_args import args

from flexspot.components.gke.cluster import GkeCluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from component_types import Register


def test_by_default_a_cluster_is_regional_private_and_measured_and_its_pods_mount_buckets(
    cluster_of: Callable[..., dict[str, Any]],
) -> None:
    cluster = cluster_of()

    wanted = {
        "location": "us-central1",
        "nodeLocations": ["us-central1-a", "us-central1-b"],
        "ipAllocationPolicy": {"clusterSecondaryRangeName": "pods", "servicesSecondaryRangeName": "services"},
        "networkingMode": "VPC_NATIVE",
        "defaultMaxPodsPerNode": 110,
        "deletionProtection": True,
        "datapathProvider": "ADVANCED_DATAPATH",
        "workloadIdentityConfig": {"workloadPool": "acme-ai-prod.svc.id.goog"},
        "enableShieldedNodes": True,
        "masterAuth": {"clientCertificateConfig": {"issueClientCertificate": False}},
        "nodePoolDefaults": {"nodeConfigDefaults": {"insecureKubeletReadonlyPortEnabled": "FALSE", "gcfsConfig": {"enabled": True}}},
        "releaseChannel": {"channel": "REGULAR"},
        "costManagementConfig": {"enabled": True},
        "loggingConfig": {"enableComponents": ["SYSTEM_COMPONENTS", "WORKLOADS"]},
        "addonsConfig": {"gcsFuseCsiDriverConfig": {"enabled": True}, "gcePersistentDiskCsiDriverConfig": {"enabled": True}},
    }
    assert {key: cluster[key] for key in wanted} == wanted
    assert cluster["network"].endswith("/flexspot")
    assert cluster["subnetwork"].endswith("/flexspot-nodes")
    left_to_gke = {"minMasterVersion", "databaseEncryption", "securityPostureConfig", "binaryAuthorization", "confidentialNodes"}
    assert left_to_gke & cluster.keys() == set()
    measured = cluster["monitoringConfig"]["enableComponents"]
    assert {"SYSTEM_COMPONENTS", "DCGM", "JOBSET", "CADVISOR", "KUBELET", "POD", "DEPLOYMENT", "STATEFULSET"} < set(measured)
    assert cluster["monitoringConfig"]["managedPrometheus"] == {"enabled": True}


def test_without_managed_prometheus_only_the_system_is_measured(cluster_of: Callable[..., dict[str, Any]]) -> None:
    cluster = cluster_of(managed_prometheus=False)

    assert cluster["monitoringConfig"] == {"enableComponents": ["SYSTEM_COMPONENTS"], "managedPrometheus": {"enabled": False}}


@pytest.mark.parametrize(
    "maintenance,start,end",
    [
        (None, "2025-01-01T02:00:00Z", "2025-01-01T06:00:00Z"),
        ({"start_utc": "22:30", "hours": 6}, "2025-01-01T22:30:00Z", "2025-01-02T04:30:00Z"),
    ],
)
def test_gke_upgrades_within_a_window_each_day(
    maintenance: dict[str, Any] | None, start: str, end: str, cluster_of: Callable[..., dict[str, Any]]
) -> None:
    cluster = cluster_of(**({} if maintenance is None else {"maintenance": maintenance}))

    assert cluster["maintenancePolicy"] == {"recurringWindow": {"startTime": start, "endTime": end, "recurrence": "FREQ=DAILY"}}


def test_a_window_on_some_days_begins_on_the_first_of_them(cluster_of: Callable[..., dict[str, Any]]) -> None:
    """2025-01-01 was a Wednesday, so the first Saturday is the 4th. RFC 5545 counts DTSTART as an occurrence."""
    policy = cluster_of(maintenance={"days": ["sun", "sat"], "hours": 12})["maintenancePolicy"]

    window = {"startTime": "2025-01-04T02:00:00Z", "endTime": "2025-01-04T14:00:00Z", "recurrence": "FREQ=WEEKLY;BYDAY=SA,SU"}
    assert policy == {"recurringWindow": window}


def test_exclusions_end_on_their_day_or_with_the_support_of_the_version(cluster_of: Callable[..., dict[str, Any]]) -> None:
    release = {"name": "release", "starts": "2026-12-20", "ends": "2027-01-04"}
    nodes = {"name": "nodes", "scope": "no_minor_or_node_upgrades", "starts": "2026-12-01"}

    policy = cluster_of(maintenance={"exclusions": [release, nodes]})["maintenancePolicy"]

    assert policy["maintenanceExclusions"] == [
        {
            "exclusionName": "release",
            "startTime": "2026-12-20T00:00:00Z",
            "endTime": "2027-01-04T00:00:00Z",
            "exclusionOptions": {"scope": "NO_UPGRADES"},
        },
        {
            "exclusionName": "nodes",
            "startTime": "2026-12-01T00:00:00Z",
            "exclusionOptions": {"scope": "NO_MINOR_OR_NODE_UPGRADES", "endTimeBehavior": "UNTIL_END_OF_SUPPORT"},
        },
    ]


def test_channel_version_labels_and_protection_can_be_set(cluster_of: Callable[..., dict[str, Any]]) -> None:
    cluster = cluster_of(
        release_channel="stable",
        min_version="1.35.0-gke.1171000",
        resource_labels={"owner": "ml-platform"},
        deletion_protection=False,
        max_pods_per_node=32,
        control_plane_cidr="172.16.1.0/28",
    )

    assert cluster["releaseChannel"] == {"channel": "STABLE"}
    assert cluster["minMasterVersion"] == "1.35.0-gke.1171000"
    assert cluster["resourceLabels"] == {"owner": "ml-platform"}
    assert cluster["deletionProtection"] is False
    assert cluster["defaultMaxPodsPerNode"] == 32
    assert cluster["privateClusterConfig"]["masterIpv4CidrBlock"] == "172.16.1.0/28"


def test_the_component_has_its_defaults_as_inputs_for_policies(register: Register) -> None:
    [component] = register(lambda: GkeCluster("gke", args())).of("flexspot:index:GkeCluster")

    assert component["access"] == "private"
    assert component["deletion_protection"] is True


def test_fields_that_gke_changes_by_itself_are_ignored(register: Register) -> None:
    ignored: dict[str, list[str] | None] = {}

    def note(resource: pulumi.ResourceTransformationArgs) -> None:
        ignored[resource.name] = resource.opts.ignore_changes

    register(lambda: GkeCluster("gke", args(), pulumi.ResourceOptions(transformations=[note])))

    assert ignored["gke-cluster"] == ["node_config", "initial_node_count"]
    assert ignored["gke-system-pool"] == ["initial_node_count"]
