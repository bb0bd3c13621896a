"""Queue workers, model servers and notebooks, in both forms, when pods are drained, nodes are lost, and others come first in the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from service_ground import WORKERS, declare_every_kind, names, nodes_of, ready_pods, service_platform, wait_for_ready
from workload_ground import (
    assert_goes_on,
    cordon,
    drain,
    end,
    finish,
    job_of,
    submit,
    uids,
    wait_for_job,
    wait_for_pods,
    wait_until_pending,
)

from flexspot.lab.cluster import POD, condition
from flexspot.lab.exercise.play import NODE, WORKLOAD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from queue_fixtures import QueueGround
    from queue_objects import Register

    from flexspot.lab.cluster import Cluster, KubeObject

pytestmark = [
    pytest.mark.lab,
    pytest.mark.waits,
    pytest.mark.nightly(
        held_by="test_a_server_is_a_service_replicas_and_a_budget_that_lets_one_go, "
        "test_replicas_spread_over_zones_and_nodes_but_never_wait_for_one, "
        "test_each_worker_of_a_queued_class_is_a_job_that_ends_when_there_is_no_more_work, "
        "test_a_queued_notebook_is_a_suspended_pattern_of_jobs, "
        "test_an_eviction_a_lost_node_and_the_end_of_another_pod_cost_a_gang_none_of_its_retries"
    ),
]

STANDING = {"ranker": 2, "pull": 1, "desk": 1}
"""The services of the ground, and how many pods each has."""


@pytest.fixture
def ground(cluster: Cluster, register: Register) -> Iterator[QueueGround]:
    """Every kind on one node of the queue's, which is full, and two of the services'."""
    with service_platform(cluster, register, homes=2) as made:
        declare_every_kind(made)
        wait_for_pods(made, "score", 3)
        wait_for_pods(made, "ann", 1)
        yield made


def standing(ground: QueueGround, without: frozenset[str] = frozenset()) -> list[KubeObject]:
    """The pods of the services, as soon as all of them are ready."""
    return [pod for name, count in STANDING.items() for pod in wait_for_ready(ground, name, count, without)]


def preemption_of(ground: QueueGround, job: str) -> Any:
    found = condition(ground.workloads("alpha")[job], "Preempted")
    return found and found["reason"]


def test_preemption_suspends_workers_and_a_session_which_come_back_and_nothing_that_stands_is_in_a_queue(ground: QueueGround) -> None:
    served = standing(ground)
    first, *others = WORKERS
    [done] = wait_for_pods(ground, first, 1)
    end(ground, done, 0)
    wait_for_job(ground, first, lambda each: condition(each, "Complete"), "a worker has found the queue empty")

    submit(ground, "checkpointed-job", "trainer", gpus=4)
    wait_for_pods(ground, "trainer", 1)

    for name in (*others, "ann"):
        job = wait_for_job(ground, name, lambda each: each["spec"]["suspend"] and not each["status"].get("active"), "suspended")
        assert_goes_on(job)
        assert preemption_of(ground, name) == "InClusterQueue"
    assert {*uids(standing(ground))} == {*uids(served)}
    owners = [owner for each in ground.cluster.list(WORKLOAD, ground.own("alpha")) for owner in each["metadata"]["ownerReferences"]]
    assert {(each["kind"], each["name"]) for each in owners} == {("Job", name) for name in (*WORKERS, "ann", "trainer")}

    finish(ground, "trainer")
    wait_for_pods(ground, "ann", 1)
    resumed = wait_for_pods(ground, "score", 2)
    assert {each["metadata"]["labels"]["job-name"] for each in resumed} == {*others}, "the worker that was done is not made again"
    finish(ground, *others, "ann")
    for name in WORKERS:
        assert (job_of(ground, name)["status"]["succeeded"], job_of(ground, name)["status"].get("failed", 0)) == (1, 0)


def test_a_drain_leaves_one_replica_serving_costs_workers_nothing_and_ends_a_session(ground: QueueGround) -> None:
    cluster, served = ground.cluster, standing(ground)
    workers = wait_for_pods(ground, "score", 3)
    assert len(nodes_of([each for each in served if each["metadata"]["name"].startswith("ranker-")])) == 2, "replicas spread over the nodes"

    def counted(found: list[KubeObject]) -> bool:
        return [(each["status"].get("expectedPods"), each["status"].get("currentHealthy")) for each in found] == [(2, 2)]

    cluster.wait_for("policy/v1/PodDisruptionBudget", counted, "the budget to count both replicas", namespace=ground.own("alpha"))
    nodes = [each["metadata"]["name"] for each in cluster.list(NODE)]

    [kept] = drain(ground, nodes)

    assert kept.startswith("ranker-"), "the second replica, as long as the first is not back"
    # Jupyter ends with 0 when it is told to, which is the end of a Job.
    wait_for_job(ground, "ann", lambda each: condition(each, "Complete"), "over")
    wait_until_pending(ground, "score", 3)
    assert names(ready_pods(cluster.list(POD, ground.own("alpha")), "ranker")) == {kept}
    cordon(ground, nodes, back=True)
    back = standing(ground, names(served) - {kept})
    assert kept in names(back)
    cluster.evict(kept, ground.own("alpha"))
    standing(ground, names(served))

    wait_for_pods(ground, "score", 3, instead_of=uids(workers))
    for name in WORKERS:
        assert_goes_on(job_of(ground, name))
    finish(ground, *WORKERS)


def test_what_ran_on_nodes_that_are_gone_comes_back_on_others_a_session_too(ground: QueueGround) -> None:
    served = standing(ground)
    queued = [*wait_for_pods(ground, "score", 3), *wait_for_pods(ground, "ann", 1)]
    for node in sorted(nodes_of([*served, *queued])):
        ground.cluster.delete(NODE, node)
    ground.add_nodes("l4-spot", 1)
    ground.add_nodes("l4-desk", 2)

    standing(ground, names(served))
    for name in (*WORKERS, "ann"):
        # The pod of a lost node has failed by it, and has not ended by itself: the session goes on, without its kernels.
        replaced = wait_for_pods(ground, name, 1, instead_of=uids(queued))
        assert nodes_of(replaced).isdisjoint(nodes_of(queued))
        assert_goes_on(job_of(ground, name))
    finish(ground, *WORKERS, "ann")
