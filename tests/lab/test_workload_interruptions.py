"""Rendered jobs that are interrupted in every way: the pods return, nothing is counted, and unavoidable effects are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from karpenter_fixtures import NODE_CLAIM, karpenter_pools
from workload_fixtures import NODES, assert_continues, end, job_of, spot_platform, submit, uids, wait_for_job, wait_for_pods

from flexspot.lab.cluster import condition
from flexspot.lab.exercise.play import NODE, release

if TYPE_CHECKING:
    from collections.abc import Iterator

    from queue_fixtures import QueuePlatform
    from queue_objects import Register

    from flexspot.lab.cluster import Cluster

pytestmark = pytest.mark.lab


@pytest.fixture
def platform(cluster: Cluster, register: Register) -> Iterator[QueuePlatform]:
    with spot_platform(cluster, register) as deployed:
        yield deployed


# Kubernetes waits 40 s before it gives up the pods of a node that is gone.
LOST = pytest.param(
    True,
    id="lost nodes",
    marks=pytest.mark.nightly(tested_by="test_an_eviction_a_lost_node_and_the_end_of_another_pod_cost_a_gang_none_of_its_retries"),
)


@pytest.mark.parametrize("lost", [pytest.param(False, id="evictions"), LOST])
def test_an_eviction_a_lost_node_and_the_end_of_another_pod_cost_a_gang_none_of_its_retries(lost: bool, platform: QueuePlatform) -> None:  # noqa: FBT001 -- varied
    submit(platform, "checkpointed-job", "gang", pods=3, retries=1)
    pods = wait_for_pods(platform, "gang", 3)

    # A drain's eviction, a pod that stops because of it, and nodes that are gone with their pods, or another drain.
    platform.cluster.evict(pods[0]["metadata"]["name"], platform.own("alpha"))
    end(platform, pods[1], 143)
    if lost:
        for node in sorted({each["spec"]["nodeName"] for each in pods}):
            platform.cluster.delete(NODE, node)
        platform.add_nodes("l4-spot", NODES)
    else:
        platform.cluster.evict(pods[2]["metadata"]["name"], platform.own("alpha"))
    replaced = wait_for_pods(platform, "gang", 3, instead_of=uids(pods), without_back_off=True)

    for pod in replaced:
        annotations = pod["metadata"]["annotations"]
        assert annotations["batch.kubernetes.io/job-index-failure-count"] == "0"
        assert annotations["batch.kubernetes.io/job-index-ignored-failure-count"] == "1", "a pod waits for its own interruptions alone"
    assert_continues(job_of(platform, "gang"))
    platform.finish("alpha", "gang")


def test_preemption_suspends_a_job_and_sets_its_clock_back_without_counting_anything(platform: QueuePlatform) -> None:
    submit(platform, "queued-job", "low", workload_class="best-effort", pods=8, at_once=8)
    wait_for_pods(platform, "low", 8)
    began = job_of(platform, "low")["status"]["startTime"]

    submit(platform, "checkpointed-job", "high", team="beta", pods=4)
    wait_for_pods(platform, "high", 4, "beta")
    suspended = wait_for_job(platform, "low", lambda each: each["spec"]["suspend"] and not each["status"].get("active"), "suspended")
    platform.finish("beta", "high")
    wait_for_pods(platform, "low", 8)

    job = job_of(platform, "low")
    assert "startTime" not in suspended["status"], "activeDeadlineSeconds counts from each admission"
    assert job["status"]["startTime"] >= began
    assert_continues(job)
    platform.finish("alpha", "low")


def test_a_node_that_karpenter_gives_up_is_replaced_with_its_pod(cluster: Cluster, register: Register) -> None:
    """Karpenter interrupts, consolidates and replaces drifted nodes by deleting a NodeClaim: it drains the node, then ends it."""
    with spot_platform(cluster, register, nodes=0) as platform, karpenter_pools(platform, register):
        submit(platform, "checkpointed-job", "trainer")
        pods = wait_for_pods(platform, "trainer", 1)
        [claim] = cluster.list(NODE_CLAIM)

        cluster.delete(NODE_CLAIM, claim["metadata"]["name"])
        [replaced] = wait_for_pods(platform, "trainer", 1, instead_of=uids(pods))

        assert replaced["spec"]["nodeName"] != pods[0]["spec"]["nodeName"]
        assert_continues(job_of(platform, "trainer"))
        platform.finish("alpha", "trainer")


@pytest.mark.nightly(tested_by="test_a_node_that_karpenter_gives_up_is_replaced_with_its_pod")
def test_karpenter_moves_a_batch_off_a_node_that_it_can_do_without_and_nothing_is_counted(cluster: Cluster, register: Register) -> None:
    at_once = {"best-effort": {"disruption": {"remove": "underutilized", "idle_seconds": 0}}}
    with (
        spot_platform(cluster, register, nodes=0, serves=("best-effort",), classes=at_once) as platform,
        karpenter_pools(platform, register),
    ):
        submit(platform, "queued-job", "filler", pods=3, at_once=3, workload_class="best-effort")
        submit(platform, "queued-job", "first", workload_class="best-effort")
        wait_for_pods(platform, "filler", 3)
        wait_for_pods(platform, "first", 1)
        # The first node is full: this one needs a second.
        submit(platform, "queued-job", "second", workload_class="best-effort")
        wait_for_pods(platform, "second", 1)
        assert len(cluster.list(NODE)) == 2

        release(cluster, platform.own("alpha"), "filler")
        cluster.wait_for(NODE, lambda nodes: len(nodes) == 1, "one node for what fits on one", timeout_seconds=240)

        [node] = [each["metadata"]["name"] for each in cluster.list(NODE)]
        for name in ("first", "second"):
            [pod] = wait_for_pods(platform, name, 1)
            assert pod["spec"]["nodeName"] == node
            assert_continues(job_of(platform, name))
        platform.finish("alpha", "first", "second")


@pytest.mark.nightly(tested_by="test_every_launcher_exits_with_143_after_an_interruption")
def test_a_program_that_exits_with_0_on_interruption_completes_its_job_unfinished(platform: QueuePlatform) -> None:
    # No field of a Job prevents it; therefore flexspot_runtime exits with 143.
    submit(platform, "checkpointed-job", "polite", exit_code=0)
    [pod] = wait_for_pods(platform, "polite", 1)

    platform.cluster.evict(pod["metadata"]["name"], platform.own("alpha"))

    wait_for_job(platform, "polite", lambda each: condition(each, "Complete"), "the wrong completion")
