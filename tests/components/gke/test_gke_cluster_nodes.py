"""GkeCluster: the pool of the controllers, the pools that GKE makes by itself, and Autopilot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulumi
import pytest
from gke_cluster_args import AUTOPILOT, CEILINGS, CLUSTER, NODE_POOL, args

from components.gke.cluster import GkeCluster

Register = Callable[[Callable[[], object]], Any]


def test_the_pool_that_gke_makes_first_is_removed_and_never_runs_as_the_default_account(cluster_of: Callable[..., dict[str, Any]]) -> None:
    cluster = cluster_of()

    assert cluster["removeDefaultNodePool"] is True
    assert cluster["initialNodeCount"] == 1
    assert cluster["nodeConfig"] == {
        "serviceAccount": "nodes@acme-ai-prod.iam.gserviceaccount.com",
        "oauthScopes": ["https://www.googleapis.com/auth/cloud-platform"],
        "shieldedInstanceConfig": {"enableSecureBoot": True, "enableIntegrityMonitoring": True},
        "workloadMetadataConfig": {"mode": "GKE_METADATA"},
    }


def test_gke_makes_no_pools_by_itself_unless_asked(cluster_of: Callable[..., dict[str, Any]]) -> None:
    cluster = cluster_of()

    assert cluster["clusterAutoscaling"] == {"enabled": False, "autoscalingProfile": "OPTIMIZE_UTILIZATION"}
    assert "nodePoolAutoConfig" not in cluster


def test_auto_provisioning_has_a_ceiling_for_cpu_memory_and_each_accelerator_always_in_one_order(
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


def test_auto_provisioned_nodes_are_as_safe_as_declared_ones(cluster_of: Callable[..., dict[str, Any]]) -> None:
    cluster = cluster_of(auto_provisioning=CEILINGS)

    assert cluster["clusterAutoscaling"]["autoProvisioningLocations"] == ["us-central1-a", "us-central1-b"]
    assert cluster["clusterAutoscaling"]["autoProvisioningDefaults"] == {
        "serviceAccount": "nodes@acme-ai-prod.iam.gserviceaccount.com",
        "oauthScopes": ["https://www.googleapis.com/auth/cloud-platform"],
        "imageType": "COS_CONTAINERD",
        "diskSize": 100,
        "diskType": "pd-balanced",
        "management": {"autoRepair": True, "autoUpgrade": True},
        "shieldedInstanceConfig": {"enableSecureBoot": True, "enableIntegrityMonitoring": True},
        "upgradeSettings": {"strategy": "SURGE", "maxSurge": 0, "maxUnavailable": 1},
    }
    assert cluster["nodePoolAutoConfig"] == {"nodeKubeletConfig": {"insecureKubeletReadonlyPortEnabled": "FALSE"}}


def test_the_controllers_have_a_pool_without_gpus_and_without_taints(register: Register) -> None:
    [pool] = register(lambda: GkeCluster("gke", args(resource_labels={"owner": "ml-platform"}))).of(NODE_POOL)

    assert (pool["name"], pool["cluster"], pool["location"]) == ("system", "prod", "us-central1")
    assert pool["autoscaling"] == {"totalMinNodeCount": 2, "totalMaxNodeCount": 4, "locationPolicy": "BALANCED"}
    assert pool["management"] == {"autoRepair": True, "autoUpgrade": True}
    assert pool["nodeConfig"] == {
        "machineType": "e2-standard-4",
        "imageType": "COS_CONTAINERD",
        "diskSizeGb": 100,
        "diskType": "pd-balanced",
        "labels": {"flexspot.dev/pool": "system"},
        "resourceLabels": {"owner": "ml-platform"},
        "serviceAccount": "nodes@acme-ai-prod.iam.gserviceaccount.com",
        "oauthScopes": ["https://www.googleapis.com/auth/cloud-platform"],
        "shieldedInstanceConfig": {"enableSecureBoot": True, "enableIntegrityMonitoring": True},
        "workloadMetadataConfig": {"mode": "GKE_METADATA"},
        "gcfsConfig": {"enabled": True},
        "gvnic": {"enabled": True},
    }


@pytest.mark.parametrize("least,per_zone", [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2)])
def test_the_controllers_pool_starts_with_nodes_in_each_zone_and_never_above_its_ceiling(
    least: int, per_zone: int, register: Register
) -> None:
    pool_args = {"machine": "n2-standard-4", "min_nodes": least, "max_nodes": 5, "disk_gib": 50}

    [pool] = register(lambda: GkeCluster("gke", args(system_pool=pool_args))).of(NODE_POOL)

    assert pool["initialNodeCount"] == per_zone
    assert pool["nodeLocations"] == ["us-central1-a", "us-central1-b"]
    assert pool["autoscaling"]["totalMinNodeCount"] == least
    assert pool["nodeConfig"]["diskSizeGb"] == 50


def test_autopilot_is_told_nothing_that_it_refuses(register: Register) -> None:
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


def test_autopilots_nodes_run_as_the_given_account_too(cluster_of: Callable[..., dict[str, Any]]) -> None:
    cluster = cluster_of(**AUTOPILOT)

    assert cluster["clusterAutoscaling"] == {
        "autoProvisioningDefaults": {
            "serviceAccount": "nodes@acme-ai-prod.iam.gserviceaccount.com",
            "oauthScopes": ["https://www.googleapis.com/auth/cloud-platform"],
        }
    }


def test_gpu_pools_can_depend_on_the_controllers_pool_where_there_is_one(register: Register) -> None:
    made: dict[str, GkeCluster] = {}

    def declare() -> None:
        made["standard"] = GkeCluster("gke", args())
        made["autopilot"] = GkeCluster("pilot", args(**AUTOPILOT))

    register(declare)

    assert isinstance(made["standard"].system_pool, pulumi.Resource)
    assert made["autopilot"].system_pool is None


def test_a_ceiling_without_accelerators_lets_gke_make_no_gpu_nodes(cluster_of: Callable[..., dict[str, Any]]) -> None:
    limits = cluster_of(auto_provisioning={"max_vcpu": 512, "max_memory_gib": 2048})["clusterAutoscaling"]["resourceLimits"]

    assert [each["resourceType"] for each in limits] == ["cpu", "memory"]
