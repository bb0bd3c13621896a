"""Arguments of a valid GkeGpuNodePool, for tests to change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flexspot.components.gke.gpu_pool_args import GkeGpuNodePoolArgs

COMPONENT = "flexspot:index:GkeGpuNodePool"
NODE_POOL = "gcp:container/nodePool:NodePool"


def pool_args(**changes: Any) -> GkeGpuNodePoolArgs:
    arguments: GkeGpuNodePoolArgs = {
        "pool": "l4-spot",
        "project": "acme-ml",
        "region": "us-central1",
        "cluster": "platform",
        "zones": ["us-central1-a", "us-central1-b"],
        "machine": "g2-standard-8",
        "accelerator": "nvidia-l4",
        "gpus_per_node": 1,
        "capacity_type": "spot",
        "max_nodes": 4,
        "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}],
        "resource_labels": {"environment": "dev", "owner": "ann"},
        "service_account": "nodes@acme-ml.iam.gserviceaccount.com",
    }
    arguments.update(changes)  # pyrefly: ignore[no-matching-overload] -- also invalid ones, on purpose
    return arguments
