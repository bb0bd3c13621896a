"""A job on DWS capacity that is interrupted: what Kueue makes of its request for nodes, which a stand-in for GKE answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from dws_provisioner import PROVISIONING_REQUEST, REQUEST_LABEL, provisioner
from karpenter_ground import NODE_CLAIM
from queue_fixtures import GKE, QueueGround, queues_of
from service_ground import nodes_of
from workload_ground import (
    assert_goes_on,
    cordon,
    drain,
    finish,
    gives_up_waiting,
    is_queued_again,
    job_of,
    submit,
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
        held_by="test_a_queued_job_waits_for_its_request_and_starts_all_pods_together, "
        "test_preemption_suspends_a_job_and_sets_its_clock_back_without_counting_anything, "
        "test_jobs_on_queued_capacity_have_their_run_time_and_keep_their_nodes"
    ),
]


@pytest.fixture
def ground(cluster: Cluster, register: Register) -> Iterator[QueueGround]:
    """Two teams that own one node of eight H100 each, which DWS gives."""
    pool = {"name": "h100-queued", "machine": "a3-highgpu-8g", "capacity_type": "queued", "max_nodes": 2, "serves": ["training"]}
    teams = [{"name": name, "shares": {"h100-queued": 8}} for name in ("alpha", "beta")]
    with provisioner(cluster), queues_of(cluster, register, {}, pools=[pool], teams=teams, **GKE) as made:
        yield made


def submit_job(ground: QueueGround, name: str, *, pods: int, team: str = "alpha") -> None:
    """A job without checkpoints: there is no bucket behind the lab, so that a pod with the claim would not start."""
    submit(ground, "flex-start-job", name, team=team, pods=pods, gpus=8, run_seconds=3600, checkpoints=False)


def request_of(ground: QueueGround, *, instead_of: str = "") -> KubeObject:
    """The one request of team alpha, as soon as there is one that is provisioned and is not that with the uid `instead_of`."""

    def found(requests: list[KubeObject]) -> KubeObject | None:
        fresh = [each for each in requests if condition(each, "Provisioned") and each["metadata"]["uid"] != instead_of]
        return fresh[0] if len(fresh) == len(requests) == 1 else None

    what = f"one request, other than {instead_of or 'none'}"
    return ground.cluster.wait_for(PROVISIONING_REQUEST, found, what, namespace=ground.own("alpha"))


def of_request(request: KubeObject, pods: list[KubeObject]) -> bool:
    """Whether the pods select the nodes of a request."""
    name = request["status"]["provisioningClassDetails"]["ResizeRequestName"]
    return {each["spec"]["nodeSelector"][REQUEST_LABEL] for each in pods} == {name}


def test_an_evicted_pod_returns_to_the_nodes_of_its_request_and_a_lost_node_leads_to_a_new_one_in_the_end(ground: QueueGround) -> None:
    submit_job(ground, "gang", pods=2)
    first, pods = request_of(ground), wait_for_pods(ground, "gang", 2)
    assert of_request(first, pods)

    drained = pods[0]["spec"]["nodeName"]
    assert drain(ground, [drained]) == []
    wait_until_pending(ground, "gang", 1)
    cordon(ground, [drained], back=True)
    returned = wait_for_pods(ground, "gang", 2, instead_of=uids(pods[:1]))
    assert of_request(first, returned)
    assert nodes_of(returned) == nodes_of(pods)
    assert request_of(ground)["metadata"]["uid"] == first["metadata"]["uid"]
    assert_goes_on(job_of(ground, "gang"))

    ground.cluster.delete(NODE, drained)
    wait_until_pending(ground, "gang", 1)
    assert request_of(ground)["metadata"]["uid"] == first["metadata"]["uid"], "Kueue does not ask for one node"

    gives_up_waiting(ground, "gang", "WaitForRecovery")
    is_queued_again(ground, "gang")
    second = request_of(ground, instead_of=first["metadata"]["uid"])
    resumed = wait_for_pods(ground, "gang", 2, instead_of=uids(returned))
    assert of_request(second, resumed)
    assert nodes_of(resumed).isdisjoint(nodes_of(pods))
    assert_goes_on(job_of(ground, "gang"))
    finish(ground, "gang")


def test_preemption_gives_the_nodes_back_and_a_job_that_returns_asks_anew_and_karpenter_has_no_part_in_it(ground: QueueGround) -> None:
    submit_job(ground, "gang", pods=2)
    first, pods = request_of(ground), wait_for_pods(ground, "gang", 2)
    assert {each["metadata"]["annotations"][STAY_ANNOTATION] for each in pods} == {"false"}, "GKE's autoscaler leaves their nodes"
    assert ground.cluster.list(NODE_CLAIM) == []

    submit_job(ground, "owner", pods=1, team="beta")
    wait_for_pods(ground, "owner", 1, "beta")
    suspended = wait_for_job(ground, "gang", lambda each: each["spec"]["suspend"] and not each["status"].get("active"), "suspended")
    assert "startTime" not in suspended["status"]
    assert_goes_on(suspended)
    ground.wait_for_event("alpha", "gang", "reclamation within the cohort")
    ground.cluster.wait_for(
        NODE, lambda nodes: not {each["metadata"]["name"] for each in nodes} & nodes_of(pods), "the end of the nodes that were given back"
    )

    ground.finish("beta", "owner")
    second = request_of(ground, instead_of=first["metadata"]["uid"])
    assert of_request(second, wait_for_pods(ground, "gang", 2))
    assert_goes_on(job_of(ground, "gang"))
    finish(ground, "gang")
