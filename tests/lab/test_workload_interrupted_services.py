"""Queue workers, model servers and notebooks, in both forms, during drains, losses of nodes, and preemption."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from service_fixtures import WORKERS, declare_every_kind, names, nodes_of, ready_pods, service_platform, wait_for_ready
from workload_fixtures import (
    assert_continues,
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

    from queue_fixtures import QueuePlatform
    from queue_objects import Register

    from flexspot.lab.cluster import Cluster, KubeObject

pytestmark = [
    pytest.mark.lab,
    pytest.mark.waits,
    pytest.mark.nightly(
        tested_by="test_a_server_is_a_service_replicas_and_a_budget_that_lets_one_go, "
        "test_replicas_spread_over_zones_and_nodes_but_never_wait_for_one, "
        "test_each_worker_of_a_queued_class_is_a_job_that_ends_when_there_is_no_more_work, "
        "test_a_queued_notebook_is_a_suspended_pattern_of_jobs, "
        "test_an_eviction_a_lost_node_and_the_end_of_another_pod_cost_a_gang_none_of_its_retries"
    ),
]

STANDING = {"ranker": 2, "pull": 1, "desk": 1}
"""The platform's services, and the number of pods of each."""


@pytest.fixture
def platform(cluster: Cluster, register: Register) -> Iterator[QueuePlatform]:
    """Yield every kind on one node of the queue, which is full, and two of the services."""
    with service_platform(cluster, register, homes=2) as deployed:
        declare_every_kind(deployed)
        wait_for_pods(deployed, "score", 3)
        wait_for_pods(deployed, "ann", 1)
        yield deployed


def standing(platform: QueuePlatform, without: frozenset[str] = frozenset()) -> list[KubeObject]:
    """Return the pods of the services, as soon as all of them are ready."""
    return [pod for name, count in STANDING.items() for pod in wait_for_ready(platform, name, count, without)]


def preemption_of(platform: QueuePlatform, job: str) -> Any:
    found = condition(platform.workloads("alpha")[job], "Preempted")
    return found and found["reason"]


def test_preemption_suspends_workers_and_sessions_that_return_and_standing_services_have_no_queue(platform: QueuePlatform) -> None:
    served = standing(platform)
    first, *others = WORKERS
    [done] = wait_for_pods(platform, first, 1)
    end(platform, done, 0)
    wait_for_job(platform, first, lambda each: condition(each, "Complete"), "a worker has found the queue empty")

    submit(platform, "checkpointed-job", "trainer", gpus=4)
    wait_for_pods(platform, "trainer", 1)

    for name in (*others, "ann"):
        job = wait_for_job(platform, name, lambda each: each["spec"]["suspend"] and not each["status"].get("active"), "suspended")
        assert_continues(job)
        assert preemption_of(platform, name) == "InClusterQueue"
    assert {*uids(standing(platform))} == {*uids(served)}
    owners = [owner for each in platform.cluster.list(WORKLOAD, platform.own("alpha")) for owner in each["metadata"]["ownerReferences"]]
    assert {(each["kind"], each["name"]) for each in owners} == {("Job", name) for name in (*WORKERS, "ann", "trainer")}

    finish(platform, "trainer")
    wait_for_pods(platform, "ann", 1)
    resumed = wait_for_pods(platform, "score", 2)
    assert {each["metadata"]["labels"]["job-name"] for each in resumed} == {*others}, "the worker that was done is not made again"
    finish(platform, *others, "ann")
    for name in WORKERS:
        assert (job_of(platform, name)["status"]["succeeded"], job_of(platform, name)["status"].get("failed", 0)) == (1, 0)


def test_a_drain_leaves_one_replica_serving_costs_workers_nothing_and_ends_a_session(platform: QueuePlatform) -> None:
    cluster, served = platform.cluster, standing(platform)
    workers = wait_for_pods(platform, "score", 3)
    assert len(nodes_of([each for each in served if each["metadata"]["name"].startswith("ranker-")])) == 2, "replicas spread over the nodes"

    def counted(found: list[KubeObject]) -> bool:
        return [(each["status"].get("expectedPods"), each["status"].get("currentHealthy")) for each in found] == [(2, 2)]

    cluster.wait_for("policy/v1/PodDisruptionBudget", counted, "the budget to count both replicas", namespace=platform.own("alpha"))
    nodes = [each["metadata"]["name"] for each in cluster.list(NODE)]

    [kept] = drain(platform, nodes)

    assert kept.startswith("ranker-"), "the second replica, as long as the first is not back"
    # Jupyter exits with 0 on SIGTERM, which completes the Job.
    wait_for_job(platform, "ann", lambda each: condition(each, "Complete"), "over")
    wait_until_pending(platform, "score", 3)
    assert names(ready_pods(cluster.list(POD, platform.own("alpha")), "ranker")) == {kept}
    cordon(platform, nodes, back=True)
    back = standing(platform, names(served) - {kept})
    assert kept in names(back)
    cluster.evict(kept, platform.own("alpha"))
    standing(platform, names(served))

    wait_for_pods(platform, "score", 3, instead_of=uids(workers))
    for name in WORKERS:
        assert_continues(job_of(platform, name))
    finish(platform, *WORKERS)


def test_pods_of_lost_nodes_return_on_others_including_a_session(platform: QueuePlatform) -> None:
    served = standing(platform)
    queued = [*wait_for_pods(platform, "score", 3), *wait_for_pods(platform, "ann", 1)]
    for node in sorted(nodes_of([*served, *queued])):
        platform.cluster.delete(NODE, node)
    platform.add_nodes("l4-spot", 1)
    platform.add_nodes("l4-desk", 2)

    standing(platform, names(served))
    for name in (*WORKERS, "ann"):
        # The pod of a lost node has failed because of it, and has not ended by itself: the session continues, without its kernels.
        replaced = wait_for_pods(platform, name, 1, instead_of=uids(queued))
        assert nodes_of(replaced).isdisjoint(nodes_of(queued))
        assert_continues(job_of(platform, name))
    finish(platform, *WORKERS, "ann")
