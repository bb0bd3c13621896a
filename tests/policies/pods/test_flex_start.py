"""Work that may run on flex-start capacity, which the cloud ends after seven days."""

from __future__ import annotations

from typing import Any

import pytest
from manifests import inventory, job

from flexspot.policies.inventory.views import PodSet
from flexspot.policies.pods.placement import flex_start_of

GPU = {"machineType": "a2-highgpu-1g", "guestAccelerators": [{"type": "nvidia-tesla-a100", "count": 1}]}


@pytest.mark.parametrize(
    "name,node",
    [
        ("flex", {**GPU, "flexStart": True}),
        ("queued", {**GPU, "taints": [{"key": "cloud.google.com/gke-queued", "effect": "NO_SCHEDULE"}]}),
    ],
)
def test_work_may_run_on_a_flex_start_pool_or_on_queued_capacity(name: str, node: dict[str, Any]) -> None:
    pools = [("gcp:container/nodePool:NodePool", {"name": each, "nodeConfig": config}) for each, config in ((name, node), ("plain", GPU))]
    everything = inventory(job(), *pools)

    assert flex_start_of(everything.of(PodSet)[0], everything) == (True, f"it may run on NodePool {name}, which is flex-start")
