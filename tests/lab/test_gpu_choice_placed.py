"""Jobs that set the memory of their GPU, on real Kueue: they get GPUs with enough memory, or wait, and never get others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from queue_fixtures import QueuePlatform, pools_of, queues_of
from workload_fixtures import finish, submit, wait_for_pods

if TYPE_CHECKING:
    from queue_objects import Register

    from flexspot.lab.cluster import Cluster

pytestmark = pytest.mark.lab

MACHINES = {"large": "p4de.24xlarge", "small": "p4d.24xlarge"}
"""Eight A100 each, of 80 and of 40 GB."""


def pools_of_job(platform: QueuePlatform, job: str) -> set[str | None]:
    """Return the pools of the one running pod of a Job."""
    return pools_of(platform.cluster, wait_for_pods(platform, job, 1))


def test_when_the_large_gpus_are_taken_a_job_that_needs_them_waits_although_small_ones_are_free(
    cluster: Cluster, register: Register
) -> None:
    pools = [
        {"name": name, "machine": machine, "capacity_type": "spot", "max_nodes": 1, "serves": ["training"]}
        for name, machine in MACHINES.items()
    ]
    teams = [{"name": "alpha", "shares": dict.fromkeys(MACHINES, 8)}]
    nodes = dict.fromkeys(MACHINES, 1)
    with queues_of(cluster, register, nodes, pools=pools, teams=teams) as platform:
        large, small = ({platform.own(name)} for name in MACHINES)
        submit(platform, "checkpointed-job", "first", gpus=8, gpu_memory_gb=80)
        assert pools_of_job(platform, "first") == large

        submit(platform, "checkpointed-job", "by-memory", gpus=8, gpu_memory_gb=80)
        # Of the flavor that it may use, and of the other one, whose quota is free, that it may not use.
        message = platform.wait_for_refusal("alpha", "by-memory", "insufficient unused quota")
        assert "doesn't match node affinity" in message

        submit(platform, "checkpointed-job", "modest", gpus=8, gpu_memory_gb=40)
        assert pools_of_job(platform, "modest") == small, "40 GB do for it"
        finish(platform, "modest", "first")
        assert pools_of_job(platform, "by-memory") == large
        finish(platform, "by-memory")

        submit(platform, "checkpointed-job", "by-name", gpus=8, gpu_models=["a100-40gb"])
        assert pools_of_job(platform, "by-name") == small, "the large ones are free, and come first"
        finish(platform, "by-name")
