"""Jobs that say how much memory their GPU needs, on real Kueue: they get GPUs that have it, or wait, and never the other ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from queue_fixtures import QueueGround, queues_of
from workload_ground import finish, submit, wait_for_pods

from lab.exercise.play import NODE

if TYPE_CHECKING:
    from queue_objects import Register

    from lab.cluster import Cluster

pytestmark = pytest.mark.lab

MACHINES = {"large": "p4de.24xlarge", "small": "p4d.24xlarge"}
"""Eight A100 each, of 80 and of 40 GB."""

CLIMBING: dict[str, Any] = {"training": {"fallback": "stock-out", "capacity": ["spot", "on-demand"]}}


def pools_of_pods(ground: QueueGround, job: str) -> set[str]:
    """The machines under the running pods of a Job, by their pool's name without the suffix of the test."""
    nodes = {each["metadata"]["name"]: each["metadata"]["labels"]["karpenter.sh/nodepool"] for each in ground.cluster.list(NODE)}
    return {nodes[each["spec"]["nodeName"]].removesuffix(f"-{ground.suffix}") for each in wait_for_pods(ground, job, 1)}


@pytest.mark.parametrize("classes", [{}, CLIMBING], ids=["quota-moves-on", "the-autoscaler-moves-on"])
def test_when_the_large_gpus_are_taken_a_job_that_needs_them_waits_although_small_ones_are_free(
    cluster: Cluster, register: Register, classes: dict[str, Any]
) -> None:
    pools = [
        {"name": name, "machine": machine, "capacity_type": "spot", "max_nodes": 1, "serves": ["training"]}
        for name, machine in MACHINES.items()
    ]
    teams = [{"name": "alpha", "shares": dict.fromkeys(MACHINES, 8)}]
    nodes = dict.fromkeys(MACHINES, 1)
    with queues_of(cluster, register, nodes, pools=pools, teams=teams, classes=classes) as ground:
        submit(ground, "checkpointed-job", "first", gpus=8, gpu_memory_gb=80)
        assert pools_of_pods(ground, "first") == {"large"}

        submit(ground, "checkpointed-job", "by-memory", gpus=8, gpu_memory_gb=80)
        # Of the flavor that it may have, and of the other one, whose quota is free, that it may not.
        told = ground.wait_for_refusal("alpha", "by-memory", "insufficient unused quota")
        assert "doesn't match node affinity" in told

        submit(ground, "checkpointed-job", "modest", gpus=8, gpu_memory_gb=40)
        assert pools_of_pods(ground, "modest") == {"small"}, "40 GB do for it"
        finish(ground, "modest", "first")
        assert pools_of_pods(ground, "by-memory") == {"large"}
        finish(ground, "by-memory")

        submit(ground, "checkpointed-job", "by-name", gpus=8, gpu_models=["a100-40gb"])
        assert pools_of_pods(ground, "by-name") == {"small"}, "the large ones are free, and come first"
        finish(ground, "by-name")
