"""Queue workers, model servers and notebooks on nodes of Karpenter's own: what it drains, consolidates, and leaves alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from karpenter_ground import NODE_CLAIM, claim_of, karpenter_pools, wait_until_told
from service_ground import (
    WORK_QUEUE,
    WORKERS,
    declare_desk,
    declare_every_kind,
    declare_queued,
    declared,
    names,
    nodes_of,
    ready_pods,
    remove_services,
    scale,
    service_platform,
    wait_for_ready,
    wait_until_on,
)
from workload_ground import assert_goes_on, finish, job_of, uids, wait_for_job, wait_for_pods

from lab.cluster import POD, condition
from lab.exercise.play import NODE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from queue_fixtures import QueueGround
    from queue_objects import Register

    from lab.cluster import Cluster, KubeObject

pytestmark = [
    pytest.mark.lab,
    pytest.mark.waits,
    pytest.mark.nightly(
        held_by="test_a_node_that_karpenter_gives_up_is_replaced_with_its_pod, "
        "test_a_notebook_is_not_moved_to_save_a_node_where_the_pool_has_its_work_moved, "
        "test_each_autoscaler_is_told_in_its_own_words, "
        "test_a_server_is_a_service_replicas_and_a_budget_that_lets_one_go"
    ),
]

# What is shipped waits ten minutes before it moves a service.
AT_ONCE = {"inference": {"disruption": {"remove": "underutilized", "idle_seconds": 0}}}


@pytest.fixture
def ground(cluster: Cluster, register: Register) -> Iterator[QueueGround]:
    """A platform of which Karpenter makes the nodes."""
    with (
        service_platform(cluster, register, {}, spot_nodes=2, desk_nodes=4, homes=2, classes=AT_ONCE) as made,
        karpenter_pools(made, register),
    ):
        try:
            yield made
        finally:
            # Nodes with a notebook on them are waited for.
            remove_services(made)


def least_that_served(ground: QueueGround, without: frozenset[str]) -> int:
    """The fewest replicas of the server that were ready at once, until all of them are others than those named."""
    ready: list[int] = []

    def look(pods: list[KubeObject]) -> bool:
        serving = ready_pods(pods, "ranker")
        ready.append(len(serving))
        return len(serving) == 2 and not names(serving) & without

    ground.cluster.wait_for(POD, look, "both replicas to be replaced", namespace=ground.own("alpha"), timeout_seconds=240)
    return min(ready)


def test_of_nodes_that_karpenter_gives_up_replicas_go_one_by_one_workers_lose_nothing_and_a_notebook_is_waited_for(
    ground: QueueGround,
) -> None:
    cluster = ground.cluster
    declare_every_kind(ground)
    workers, [session] = wait_for_pods(ground, "score", 3), wait_for_pods(ground, "ann", 1)
    replicas, [desk] = wait_for_ready(ground, "ranker", 2), wait_for_ready(ground, "desk", 1)
    [pull] = wait_for_ready(ground, "pull", 1)
    claims = cluster.list(NODE_CLAIM)
    held = claim_of(cluster, desk["spec"]["nodeName"])["metadata"]["name"]

    for claim in claims:
        cluster.delete(NODE_CLAIM, claim["metadata"]["name"])

    assert least_that_served(ground, names(replicas)) == 1
    wait_for_ready(ground, "pull", 1, names([pull]))
    wait_for_pods(ground, "score", 3, instead_of=uids(workers))
    for name in WORKERS:
        assert_goes_on(job_of(ground, name))
    wait_for_job(ground, "ann", lambda each: condition(each, "Complete"), f"over, as {session['metadata']['name']} was told to end")
    left = {each["metadata"]["name"] for each in claims}

    def alone(found: list[KubeObject]) -> bool:
        return {each["metadata"]["name"] for each in found} & left == {held}

    cluster.wait_for(NODE_CLAIM, alone, "the end of all nodes but the notebook's")
    assert uids(wait_for_ready(ground, "desk", 1)) == uids([desk])
    # As its watch does when nobody works in it, and at night.
    scale(ground, "desk", 0)
    cluster.wait_for(NODE_CLAIM, lambda found: held not in {each["metadata"]["name"] for each in found}, "the end of the notebook's node")
    scale(ground, "desk", 1)
    wait_for_ready(ground, "desk", 1, names([desk]))
    finish(ground, *WORKERS)


def test_karpenter_moves_services_to_save_a_node_and_neither_a_notebook_nor_what_is_in_a_queue(ground: QueueGround) -> None:
    cluster = ground.cluster
    declare_queued(ground)
    queued = [*wait_for_pods(ground, "score", 3), *wait_for_pods(ground, "ann", 1)]
    # One node is full, so that what comes next is on a second.
    declare_desk(ground)
    declared(ground, "queue-workers", "filler", workload_class="inference", queue=WORK_QUEUE, workers=3)
    [desk] = wait_for_ready(ground, "desk", 1)
    assert nodes_of(wait_for_ready(ground, "filler", 3)) == nodes_of([desk])
    declared(ground, "model-server", "ranker", workload_class="inference", replicas=1)
    declared(ground, "queue-workers", "pull", workload_class="inference", queue=WORK_QUEUE, workers=1)
    before = [*wait_for_ready(ground, "ranker", 1), *wait_for_ready(ground, "pull", 1)]
    [second] = nodes_of(before)
    assert second != desk["spec"]["nodeName"]

    scale(ground, "filler", 0)

    # By way of a third node where the scheduler still counts what is about to end on the first.
    for name in ("ranker", "pull"):
        wait_until_on(ground, name, desk["spec"]["nodeName"])
    cluster.wait_for(NODE, lambda found: second not in {each["metadata"]["name"] for each in found}, f"the end of {second}")
    wait_until_told(cluster, desk["spec"]["nodeName"], 'Pod has "karpenter.sh/do-not-disrupt" annotation')
    assert uids(wait_for_ready(ground, "desk", 1)) == uids([desk])
    for node in sorted(nodes_of(queued)):
        wait_until_told(cluster, node, "has consolidation policy WhenEmpty, but node is not empty")
    assert {*uids(wait_for_pods(ground, "score", 3)), *uids(wait_for_pods(ground, "ann", 1))} == {*uids(queued)}
    finish(ground, *WORKERS, "ann")
