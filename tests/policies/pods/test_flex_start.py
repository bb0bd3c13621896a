"""Whether work may run on flex-start capacity, which the cloud ends after seven days."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from policies.inventory.reading import views_of
from policies.inventory.reading.source import from_manifest, from_pulumi
from policies.inventory.views import Inventory, PodSet
from policies.pods.interruption import flex_start_of

if TYPE_CHECKING:
    from policies.values.field import Tri

GPU = {"machineType": "a2-highgpu-1g", "guestAccelerators": [{"type": "nvidia-tesla-a100", "count": 1}]}
FLEX = ("flex", {"name": "flex", "nodeConfig": {**GPU, "flexStart": True}})
QUEUED = ("queued", {"name": "queued", "nodeConfig": {**GPU, "taints": [{"key": "cloud.google.com/gke-queued", "effect": "NO_SCHEDULE"}]}})
PLAIN = ("plain", {"name": "plain", "nodeConfig": GPU})


def flex_start(selector: dict[str, str], *pools: tuple[str, dict[str, Any]]) -> tuple[Tri, str]:
    containers = [{"name": "train", "resources": {"limits": {"nvidia.com/gpu": 1}}}]
    spec = {"template": {"spec": {"nodeSelector": selector, "containers": containers}}}
    job = views_of(from_manifest({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"}, "spec": spec}))
    made = [view for name, inputs in pools for view in views_of(from_pulumi("gcp:container/nodePool:NodePool", name, inputs))]
    return flex_start_of(next(each for each in job if isinstance(each, PodSet)), Inventory((*job, *made)))


@pytest.mark.parametrize("pool", [FLEX, QUEUED], ids=["flex-start", "by-request-alone"])
def test_so_is_a_pool_of_such_nodes_on_which_it_may_run(pool: tuple[str, dict[str, Any]]) -> None:
    answer, by = flex_start({}, pool, PLAIN)

    assert (answer, by) == (True, f"it may run on NodePool {pool[0]}, which is flex-start")
