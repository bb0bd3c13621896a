"""Interruption of a job on DWS capacity: Kueue's handling of its request for nodes, which a stand-in for GKE answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from dws_provisioner import PROVISIONING_REQUEST, REQUEST_LABEL, provisioner
from karpenter_fixtures import NODE_CLAIM
from queue_fixtures import GKE, QueuePlatform, queues_of
from service_fixtures import nodes_of
from workload_fixtures import (
    assert_continues,
    cordon,
    drain,
    finish,
    job_of,
    requeue,
    submit,
    time_out_waiting,
    uids,
    wait_for_job,
    wait_for_pods,
    wait_until_pending,
)

from flexspot.capacity.plan.queues import STAY_ANNOTATION
from flexspot.lab.cluster import condition
from flexspot.lab.exercise.play import NODE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from queue_objects import Register

    from flexspot.lab.cluster import Cluster, KubeObject

pytestmark = [
    pytest.mark.lab,
    pytest.mark.waits,
    pytest.mark.nightly(
        tested_by="test_a_queued_job_waits_for_its_request_and_starts_all_pods_together, "
        "test_preemption_suspends_a_job_and_sets_its_clock_back_without_counting_anything, "
        "test_jobs_on_queued_capacity_have_their_run_time_and_keep_their_nodes"
    ),
]


@pytest.fixture
def platform(cluster: Cluster, register: Register) -> Iterator[QueuePlatform]:
    """Yield two teams that own one node of eight H100 each, which DWS gives."""
    pool = {"name": "h100-queued", "machine": "a3-highgpu-8g", "capacity_type": "queued", "max_nodes": 2, "serves": ["training"]}
    teams = [{"name": name, "shares": {"h100-queued": 8}} for name in ("alpha", "beta")]
    with provisioner(cluster), queues_of(cluster, register, {}, pools=[pool], teams=teams, **GKE) as deployed:
        yield deployed


def submit_job(platform: QueuePlatform, name: str, *, pods: int, team: str = "alpha") -> None:
    """Submit a job without checkpoints: the lab has no bucket, so a pod with the claim would not start."""
    submit(platform, "flex-start-job", name, team=team, pods=pods, gpus=8, run_seconds=3600, checkpoints=False)


def request_of(platform: QueuePlatform, *, instead_of: str = "") -> KubeObject:
    """Return the one request of team alpha, as soon as one is provisioned whose uid is not `instead_of`."""

    def found(requests: list[KubeObject]) -> KubeObject | None:
        fresh = [each for each in requests if condition(each, "Provisioned") and each["metadata"]["uid"] != instead_of]
        return fresh[0] if len(fresh) == len(requests) == 1 else None

    what = f"one request, other than {instead_of or 'none'}"
    return platform.cluster.wait_for(PROVISIONING_REQUEST, found, what, namespace=platform.own("alpha"))


def of_request(request: KubeObject, pods: list[KubeObject]) -> bool:
    """Return whether the pods select the nodes of a request."""
    name = request["status"]["provisioningClassDetails"]["ResizeRequestName"]
    return {each["spec"]["nodeSelector"][REQUEST_LABEL] for each in pods} == {name}


def test_an_evicted_pod_returns_to_the_nodes_of_its_request_and_a_lost_node_leads_to_a_new_one_in_the_end(platform: QueuePlatform) -> None:
    submit_job(platform, "gang", pods=2)
    first, pods = request_of(platform), wait_for_pods(platform, "gang", 2)
    assert of_request(first, pods)

    drained = pods[0]["spec"]["nodeName"]
    assert drain(platform, [drained]) == []
    wait_until_pending(platform, "gang", 1)
    cordon(platform, [drained], back=True)
    returned = wait_for_pods(platform, "gang", 2, instead_of=uids(pods[:1]))
    assert of_request(first, returned)
    assert nodes_of(returned) == nodes_of(pods)
    assert request_of(platform)["metadata"]["uid"] == first["metadata"]["uid"]
    assert_continues(job_of(platform, "gang"))

    platform.cluster.delete(NODE, drained)
    wait_until_pending(platform, "gang", 1)
    assert request_of(platform)["metadata"]["uid"] == first["metadata"]["uid"], "Kueue does not ask for one node"

    time_out_waiting(platform, "gang", "WaitForRecovery")
    requeue(platform, "gang")
    second = request_of(platform, instead_of=first["metadata"]["uid"])
    resumed = wait_for_pods(platform, "gang", 2, instead_of=uids(returned))
    assert of_request(second, resumed)
    assert nodes_of(resumed).isdisjoint(nodes_of(pods))
    assert_continues(job_of(platform, "gang"))
    finish(platform, "gang")


def test_preemption_returns_the_nodes_and_a_requeued_job_requests_new_ones_without_karpenter(platform: QueuePlatform) -> None:
    submit_job(platform, "gang", pods=2)
    first, pods = request_of(platform), wait_for_pods(platform, "gang", 2)
    assert {each["metadata"]["annotations"][STAY_ANNOTATION] for each in pods} == {"false"}, (
        "keeps GKE's autoscaler from removing their nodes"
    )
    assert platform.cluster.list(NODE_CLAIM) == []

    submit_job(platform, "owner", pods=1, team="beta")
    wait_for_pods(platform, "owner", 1, "beta")
    suspended = wait_for_job(platform, "gang", lambda each: each["spec"]["suspend"] and not each["status"].get("active"), "suspended")
    assert "startTime" not in suspended["status"]
    assert_continues(suspended)
    platform.wait_for_event("alpha", "gang", "reclamation within the cohort")
    platform.cluster.wait_for(
        NODE, lambda nodes: not {each["metadata"]["name"] for each in nodes} & nodes_of(pods), "the end of the nodes that were given back"
    )

    platform.finish("beta", "owner")
    second = request_of(platform, instead_of=first["metadata"]["uid"])
    assert of_request(second, wait_for_pods(platform, "gang", 2))
    assert_continues(job_of(platform, "gang"))
    finish(platform, "gang")
