"""Machines that a GKE stack describes: what is declared of them, beside what would be declared of the same machine of the catalog."""

from __future__ import annotations

from typing import Any

import pytest
from gke_declarations import CLUSTER, NODE_POOL, gpu_pools
from program_declarations import declared, shipped

from capacity.catalog.machines import Cloud, machines_of

pytestmark = pytest.mark.slow

KNOWN = machines_of(Cloud.GCP)["a4-highgpu-8g"]
COMPUTE_CLASS = "kubernetes:cloud.google.com/v1:ComputeClass"


def description(**changes: Any) -> dict[str, Any]:
    """a4-highgpu-8g under a name that the catalog does not have."""
    gpu = {"name": "nvidia-b200", "count": 8, "memory_mib": 184320}
    facts = {"bundled_local_ssd_disks": KNOWN.bundled_local_ssd_disks, "boot_disk": KNOWN.boot_disk.value, "flex_start": True}
    return {"name": "a5-highgpu-8g", "vcpu": KNOWN.vcpu, "memory_mib": KNOWN.memory_mib, "gpu": gpu, **facts, **changes}


def with_pool(stack: str, machine: str, **settings: Any) -> dict[str, Any]:
    written = {**shipped(stack), **settings}
    pool = {"name": "new", "machine": machine, "capacity_type": "flex-start", "max_nodes": 2, "serves": ["training"]}
    return {**written, "zone_machines": "unchecked", "pools": [*written["pools"], pool]}


def test_a_described_machine_makes_the_node_pool_that_the_same_machine_of_the_catalog_makes() -> None:
    described = declared("prod-gke", with_pool("prod-gke", "a5-highgpu-8g", machines=[description()]))
    catalogued = declared("prod-gke", with_pool("prod-gke", "a4-highgpu-8g"))

    own, known = (gpu_pools(each)["new"].inputs for each in (described, catalogued))
    assert own["nodeConfig"]["machineType"] == "a5-highgpu-8g"
    assert own["nodeConfig"]["diskType"] == "hyperdisk-balanced"
    assert own | {"nodeConfig": own["nodeConfig"] | {"machineType": "a4-highgpu-8g"}} == known
    limits = [each.inputs_of(CLUSTER)[0]["clusterAutoscaling"]["resourceLimits"] for each in (described, catalogued)]
    assert limits[0] == limits[1]


def test_controllers_run_on_a_described_machine_with_its_own_disk() -> None:
    settings = shipped("prod-gke")
    settings["machines"] = [{"name": "c5-standard-8", "vcpu": 8, "memory_mib": 32768, "boot_disk": "hyperdisk-balanced"}]
    settings["cluster"]["system_pool"]["machine"] = "c5-standard-8"

    [system] = [each.inputs for each in declared("prod-gke", settings).of(NODE_POOL) if each.name == "cluster-system-pool"]

    assert (system["nodeConfig"]["machineType"], system["nodeConfig"]["diskType"]) == ("c5-standard-8", "hyperdisk-balanced")
