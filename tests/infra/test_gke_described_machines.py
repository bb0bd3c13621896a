"""Machines that a GKE stack describes: what is declared of them, beside what would be declared of the same machine of the catalog."""

from __future__ import annotations

from typing import Any

import pytest
from autopilot_settings import autopilot_settings
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


def test_gke_makes_nodes_of_a_described_machine_on_autopilot() -> None:
    settings = autopilot_settings()
    gpu = {"name": "nvidia-l4", "count": 2, "memory_mib": 23034}
    settings["machines"] = [{"name": "g3-standard-24", "vcpu": 24, "memory_mib": 98304, "gpu": gpu}]
    next(pool for pool in settings["pools"] if pool["name"] == "l4-on-demand")["machine"] = "g3-standard-24"

    classes = declared("dev-gke", settings).inputs_of(COMPUTE_CLASS)

    made = [priority for each in classes for priority in each["spec"]["priorities"] if priority.get("machineType") == "g3-standard-24"]
    assert [each["gpu"]["count"] for each in made] == [2]


@pytest.mark.parametrize("name", ["a4-highgpu-8g"])
def test_a_description_that_only_adds_zones_changes_no_node_pool(name: str) -> None:
    same = description(name=name, compact_placement=KNOWN.compact_placement, zones=["us-central1-b"])
    described = declared("prod-gke", with_pool("prod-gke", name, machines=[same]))

    assert gpu_pools(described)["new"].inputs == gpu_pools(declared("prod-gke", with_pool("prod-gke", name)))["new"].inputs
