"""A batch on fewer nodes than it requests: parts without a node wait, and running parts continue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from workload_fixtures import (
    assert_continues,
    finish,
    job_of,
    requeue,
    spot_platform,
    submit,
    time_out_waiting,
    uids,
    wait_for_pods,
    wait_until_pending,
)

from flexspot.lab.cluster import POD
from flexspot.lab.exercise.play import running_pods

if TYPE_CHECKING:
    from collections.abc import Iterator

    from queue_fixtures import QueuePlatform
    from queue_objects import Register

    from flexspot.lab.cluster import Cluster, KubeObject

pytestmark = [
    pytest.mark.lab,
    pytest.mark.waits,
    pytest.mark.nightly(tested_by="test_each_pod_of_a_batch_is_a_job_that_waits_runs_and_resumes_for_itself"),
]

PODS, ON_A_NODE = 6, 4


@pytest.fixture
def platform(cluster: Cluster, register: Register) -> Iterator[QueuePlatform]:
    """Yield quota for eight GPUs, and one Spot node of four: the cloud has no second one."""
    with spot_platform(cluster, register, nodes=1) as deployed:
        yield deployed


def running_parts(platform: QueuePlatform) -> dict[str, KubeObject]:
    """Return the running pods of the batch, by the names of their Jobs, as soon as they fill a node."""

    def full(pods: list[KubeObject]) -> dict[str, KubeObject] | None:
        found = {str(each["metadata"]["labels"]["job-name"]): each for each in running_pods(pods)}
        return found if len(found) == ON_A_NODE else None

    return platform.cluster.wait_for(POD, full, "four Jobs of the batch to run", namespace=platform.own("alpha"))


def test_a_part_without_a_node_waits_alone_and_the_others_run_to_their_end(platform: QueuePlatform) -> None:
    submit(platform, "queued-job", "sweep", pods=PODS, workload_class="best-effort")
    running = running_parts(platform)
    waiting = sorted({f"sweep-{index}" for index in range(PODS)} - running.keys())
    for name in waiting:
        wait_until_pending(platform, name, 1)

    for name in waiting:
        time_out_waiting(platform, name, "WaitForStart")
        requeue(platform, name)

    assert {*uids([*running_parts(platform).values()])} == {*uids([*running.values()])}, "no pod that ran was stopped"
    finish(platform, *running)
    # Their node is free for the waiting parts.
    for name in waiting:
        wait_for_pods(platform, name, 1)
        assert_continues(job_of(platform, name))
    finish(platform, *waiting)
