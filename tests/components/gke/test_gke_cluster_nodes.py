"""GkeCluster: the pool of the controllers, the pools that GKE creates by itself, and Autopilot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from gke_cluster_args import AUTOPILOT, CEILINGS, CLUSTER, NODE_POOL, args

from flexspot.components.gke.cluster import GkeCluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from component_types import Register


def test_gke_creates_no_pools_by_itself_by_default(cluster_of: Callable[..., dict[str, Any]]) -> None:
    cluster = cluster_of()

    assert cluster["clusterAutoscaling"] == {"enabled": False, "autoscalingProfile": "OPTIMIZE_UTILIZATION"}
    assert "nodePoolAutoConfig" not in cluster


OF_EVERY_NODE = {
    "serviceAccount": "nodes@acme-ai-prod.iam.gserviceaccount.com",
    "oauthScopes": ["https://www.googleapis.com/auth/cloud-platform"],
    "shieldedInstanceConfig": {"enableSecureBoot": True, "enableIntegrityMonitoring": True},
}


def test_declared_and_auto_provisioned_nodes_and_those_of_the_removed_pool_are_equally_secure(register: Register) -> None:
    made = register(lambda: GkeCluster("gke", args(auto_provisioning=CEILINGS, resource_labels={"owner": "ml-platform"})))

    [cluster], [system] = made.of(CLUSTER), made.of(NODE_POOL)
    assert (cluster["removeDefaultNodePool"], cluster["initialNodeCount"]) == (True, 1)
    assert cluster["nodeConfig"] == {**OF_EVERY_NODE, "workloadMetadataConfig": {"mode": "GKE_METADATA"}}
    assert cluster["clusterAutoscaling"]["autoProvisioningLocations"] == ["us-central1-a", "us-central1-b"]
    management = {"autoRepair": True, "autoUpgrade": True}
    assert cluster["clusterAutoscaling"]["autoProvisioningDefaults"] == {
        **OF_EVERY_NODE,
        "imageType": "COS_CONTAINERD",
        "diskSize": 100,
        "diskType": "pd-balanced",
        "management": management,
        "upgradeSettings": {"strategy": "SURGE", "maxSurge": 0, "maxUnavailable": 1},
    }
    assert cluster["nodePoolAutoConfig"] == {"nodeKubeletConfig": {"insecureKubeletReadonlyPortEnabled": "FALSE"}}
    assert (system["name"], system["cluster"], system["location"], system["management"]) == ("system", "prod", "us-central1", management)
    assert system["autoscaling"] == {"totalMinNodeCount": 2, "totalMaxNodeCount": 4, "locationPolicy": "BALANCED"}
    # Without GPUs and taints: for the controllers.
    assert system["nodeConfig"] == {
        **OF_EVERY_NODE,
        "machineType": "e2-standard-4",
        "imageType": "COS_CONTAINERD",
        "diskSizeGb": 100,
        "diskType": "pd-balanced",
        "labels": {"flexspot.dev/pool": "system"},
        "resourceLabels": {"owner": "ml-platform"},
        "workloadMetadataConfig": {"mode": "GKE_METADATA"},
        "gcfsConfig": {"enabled": True},
        "gvnic": {"enabled": True},
    }


def test_auto_provisioning_has_a_ceiling_for_cpu_memory_and_each_accelerator_always_in_the_same_order(
    cluster_of: Callable[..., dict[str, Any]],
) -> None:
    scaling = cluster_of(auto_provisioning=CEILINGS)["clusterAutoscaling"]

    assert scaling["enabled"] is True
    assert scaling["resourceLimits"] == [
        {"resourceType": "cpu", "minimum": 0, "maximum": 512},
        {"resourceType": "memory", "minimum": 0, "maximum": 2048},
        {"resourceType": "nvidia-l4", "minimum": 0, "maximum": 16},
        {"resourceType": "nvidia-tesla-t4", "minimum": 0, "maximum": 4},
    ]


@pytest.mark.parametrize("least,per_zone", [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2)])
def test_the_controllers_pool_starts_with_nodes_in_each_zone_up_to_its_ceiling(least: int, per_zone: int, register: Register) -> None:
    pool_args = {"machine": "n2-standard-4", "min_nodes": least, "max_nodes": 5, "disk_gib": 50}

    [pool] = register(lambda: GkeCluster("gke", args(system_pool=pool_args))).of(NODE_POOL)

    assert pool["initialNodeCount"] == per_zone
    assert pool["nodeLocations"] == ["us-central1-a", "us-central1-b"]
    assert pool["autoscaling"]["totalMinNodeCount"] == least
    assert pool["nodeConfig"]["diskSizeGb"] == 50


def test_autopilot_clusters_have_no_field_that_autopilot_rejects(register: Register) -> None:
    registered = register(lambda: GkeCluster("gke", args(**AUTOPILOT)))

    [cluster] = registered.of(CLUSTER)
    assert cluster["enableAutopilot"] is True
    assert cluster.keys() == {
        "name",
        "project",
        "location",
        "deletionProtection",
        "resourceLabels",
        "releaseChannel",
        "network",
        "subnetwork",
        "ipAllocationPolicy",
        "privateClusterConfig",
        "masterAuthorizedNetworksConfig",
        "controlPlaneEndpointsConfig",
        "masterAuth",
        "maintenancePolicy",
        "costManagementConfig",
        "clusterAutoscaling",
        "enableAutopilot",
    }
    assert registered.of(NODE_POOL) == []


def test_autopilots_nodes_also_run_as_the_given_account(cluster_of: Callable[..., dict[str, Any]]) -> None:
    cluster = cluster_of(**AUTOPILOT)

    assert cluster["clusterAutoscaling"] == {
        "autoProvisioningDefaults": {
            "serviceAccount": "nodes@acme-ai-prod.iam.gserviceaccount.com",
            "oauthScopes": ["https://www.googleapis.com/auth/cloud-platform"],
        }
    }
