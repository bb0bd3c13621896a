"""A rendered gang under torchrun on Spot: twenty interruptions cost it none of its retries; without the launcher it ends at the fourth."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from kubernetes.client.exceptions import ApiException
from torchrun_ends import ALONE, KILLED, UNDER_THE_LAUNCHER
from workload_ground import (
    assert_goes_on,
    end,
    job_of,
    let_back_off_pass,
    pods_of,
    spot_platform,
    submit,
    uids,
    wait_for_failure,
    wait_for_pods,
)

from lab.cluster import POD, condition
from lab.exercise.play import NODE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from queue_fixtures import QueueGround
    from queue_objects import Register

    from lab.cluster import Cluster, KubeObject

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(1200),
    pytest.mark.nightly(
        held_by="test_an_eviction_a_lost_node_and_the_end_of_another_pod_cost_a_gang_none_of_its_retries, "
        "test_all_of_them_end_with_143_where_they_were_interrupted"
    ),
]

PODS = 3
INTERRUPTIONS = 20
JOB = "gang"


@pytest.fixture
def ground(cluster: Cluster, register: Register) -> Iterator[QueueGround]:
    with spot_platform(cluster, register) as made:
        yield made


def drained(ground: QueueGround, pod: KubeObject) -> None:
    """A warning: the pod is evicted, and its program saves and ends with the code that KWOK gives, that of the launcher."""
    ground.cluster.evict(pod["metadata"]["name"], pod["metadata"]["namespace"])


def shut_down(ground: QueueGround, pod: KubeObject) -> None:
    """A Spot node's own shutdown, for which the program was too slow: the kubelet writes this into the pods of its node."""
    because = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet", "message": "", "lastTransitionTime": None}
    end(ground, pod, KILLED, reason="Terminated", message="Pod was terminated in response to imminent node shutdown.", conditions=[because])


def lost(ground: QueueGround, pod: KubeObject) -> None:
    """A node that is gone without a word, and a new one in its place; other pods on it are lost with it."""
    ground.cluster.delete(NODE, pod["spec"]["nodeName"])
    ground.add_nodes("l4-spot", 1)


def interrupt(
    ground: QueueGround, how: Callable[[QueueGround, KubeObject], None], victim: KubeObject, peers: list[KubeObject], code: int
) -> None:
    """One pod is interrupted, and its peers end with `code`: their collective operations find nobody, or its warning reached them."""
    how(ground, victim)
    for peer in peers:
        # A peer may have been on the node that is gone.
        with suppress(ApiException):
            end(ground, peer, code)
    let_back_off_pass(ground, JOB)


def replaced(ground: QueueGround, before: list[KubeObject]) -> list[KubeObject]:
    """The pods of the gang as soon as all run that came in the place of those before."""

    def found(pods: list[KubeObject]) -> list[KubeObject] | None:
        let_back_off_pass(ground, JOB)
        running = [each for each in pods_of(pods, JOB) if each["metadata"]["uid"] not in uids(before)]
        return running if len(running) == PODS else None

    return ground.cluster.wait_for(POD, found, "the gang to be whole again", namespace=ground.own("alpha"), timeout_seconds=150)


def test_a_gang_that_is_interrupted_twenty_times_completes_and_nothing_is_counted(ground: QueueGround) -> None:
    chance = random.Random(17)  # noqa: S311 -- repeatable, not secret
    ways = [(drained, shut_down, lost)[each % 3] for each in range(INTERRUPTIONS)]
    chance.shuffle(ways)
    submit(ground, "checkpointed-job", JOB, pods=PODS, retries=1)
    pods = wait_for_pods(ground, JOB, PODS)

    for number, how in enumerate(ways, 1):
        victim, *peers = chance.sample(pods, PODS)
        interrupt(ground, how, victim, peers, UNDER_THE_LAUNCHER)
        pods = replaced(ground, pods)
        for pod in pods:
            annotations = pod["metadata"]["annotations"]
            assert annotations["batch.kubernetes.io/job-index-failure-count"] == "0", (number, how)
            assert annotations["batch.kubernetes.io/job-index-ignored-failure-count"] == str(number), (number, how)
        assert_goes_on(job_of(ground, JOB))

    ground.finish("alpha", JOB)
    assert condition(job_of(ground, JOB), "Complete")
    assert "failed" not in job_of(ground, JOB)["status"]


def test_with_torchrun_alone_the_peers_of_four_interruptions_end_the_gang(ground: QueueGround) -> None:
    """What the launcher around it is for: nobody has made a mistake, and the job has failed for good."""
    submit(ground, "checkpointed-job", JOB, pods=PODS)
    pods = wait_for_pods(ground, JOB, PODS)
    for _ in range(3):
        interrupt(ground, shut_down, pods[0], pods[1:], ALONE)
        pods = replaced(ground, pods)
        pods.sort(key=lambda each: each["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"])

    interrupt(ground, shut_down, pods[0], pods[1:], ALONE)

    assert wait_for_failure(ground, JOB)[0] == "MaxFailedIndexesExceeded"
