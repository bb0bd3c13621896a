"""GkeGpuNodePool of TPU machines: single hosts, and slices of several, as Google's own tool requests them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from gke_pool_args import NODE_POOL, pool_args

from flexspot.components.gke.gpu_node_pool import GkeGpuNodePool

if TYPE_CHECKING:
    from component_types import Register

TAINTS = [{"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"}]


def tpu_args(machine: str = "ct6e-standard-4t", accelerator: str = "tpu-v6e-slice", chips: int = 4, **changes: Any) -> Any:
    own = {"zones": ["us-central1-b"], "taints": TAINTS, **changes}
    return pool_args(machine=machine, accelerator=accelerator, gpus_per_node=chips, **own)


def made(register: Register, **changes: Any) -> dict[str, Any]:
    [pool] = register(lambda: GkeGpuNodePool("v6e", tpu_args(**changes))).of(NODE_POOL)
    return pool


def test_single_hosts_have_no_separate_accelerator_and_no_topology(register: Register) -> None:
    """AI-Hypercomputer/xpk at 002d8ade, src/xpk/core/nodepool.py: --enable-gvnic, and --tpu-topology only for several hosts."""
    pool = made(register, max_nodes=3)
    node = pool["nodeConfig"]

    assert "placementPolicy" not in pool
    assert "guestAccelerators" not in node
    assert (node["machineType"], node["gvnic"], node["diskType"]) == ("ct6e-standard-4t", {"enabled": True}, "hyperdisk-balanced")
    assert node["taints"] == [{"key": "google.com/tpu", "value": "present", "effect": "NO_SCHEDULE"}]
    assert pool["upgradeSettings"] == {"strategy": "SURGE", "maxSurge": 0, "maxUnavailable": 1}
    assert pool["autoscaling"]["totalMaxNodeCount"] == 3


@pytest.mark.parametrize("capacity_type", ["spot", "on-demand", "flex-start"])
def test_a_slice_has_its_topology_and_as_many_nodes(register: Register, capacity_type: str) -> None:
    pool = made(register, tpu_topology="4x8", max_nodes=8, capacity_type=capacity_type)

    assert pool["placementPolicy"] == {"type": "COMPACT", "tpuTopology": "4x8"}
    assert pool["autoscaling"] == {"totalMinNodeCount": 0, "totalMaxNodeCount": 8, "locationPolicy": "ANY"}
    # GKE replaces all nodes of a slice together.
    assert "upgradeSettings" not in pool
    assert pool["nodeConfig"].get("flexStart") == (True if capacity_type == "flex-start" else None)


@pytest.mark.parametrize(
    "changes,match",
    [
        (
            {"taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]},
            r"gpu-pool-without-taint.*add google\.com/tpu=present",
        ),
        ({"taints": [TAINTS[0] | {"value": "true"}]}, r"taints\[google\.com/tpu\]\.value.*'?true"),
        ({"node_labels": {"cloud.google.com/gke-tpu-topology": "2x2"}}, r"node_labels \(is .*\): is set by GKE"),
        ({"node_labels": {"cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice"}}, r"node_labels \(is .*\): is set by GKE"),
        ({"tpu_topology": "4x8", "max_nodes": 4}, "a slice of 4x8 is 8 ct6e-standard-4t"),
        ({"tpu_topology": "2x2", "max_nodes": 1}, "the topology of a single ct6e-standard-4t"),
        ({"tpu_topology": "4x4x", "max_nodes": 1}, "tpu_topology"),
        ({"chips": 8}, r"has 4 tpu-v6e-slice \(requested: 8"),
        (
            {"gpu_sharing": {"strategy": "mps", "clients_per_gpu": 2}},
            "is only for NVIDIA GPUs, and ct6e-standard-4t has TPU chips; leave it out",
        ),
        ({"capacity_type": "queued"}, "queued"),
    ],
)
def test_tpu_pools_that_gke_would_reject_are_refused_before_anything_is_registered(
    register: Register, changes: dict[str, Any], match: str
) -> None:
    with pytest.raises(ValueError, match=match):
        made(register, **changes)
