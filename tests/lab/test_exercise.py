"""The course's exercise, corrected, with plain objects on real Kubernetes, Kueue and Karpenter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from flexspot.lab.cluster import POD, condition
from flexspot.lab.exercise.play import (
    HIGH,
    JOB,
    LOW,
    NODE,
    WORKLOAD,
    gpu_job,
    job_of,
    platform_objects,
    release,
    running_pods,
    wait_for_completion,
    wait_for_preemption,
    wait_for_running,
)

if TYPE_CHECKING:
    from flexspot.lab.cluster import Cluster, KubeObject

pytestmark = pytest.mark.lab


def reasons(cluster: Cluster, workload: KubeObject) -> set[str]:
    events = cluster.list("v1/Event", workload["metadata"]["namespace"])
    return {event["reason"] for event in events if event["involvedObject"]["name"] == workload["metadata"]["name"]}


def test_a_team_gets_its_guaranteed_share_back_from_a_borrower_and_the_preempted_job_completes(exercise_cluster: Cluster) -> None:
    cluster = exercise_cluster
    assert cluster.list(NODE) == [], "the exercise starts from no node"

    cluster.apply(*platform_objects())
    for number in range(1, 5):
        cluster.create(gpu_job(f"low-priority-job-{number}", "team-alpha", LOW))
    pods = wait_for_running(cluster, "team-alpha", 4)

    nodes = cluster.list(NODE)
    assert {node["metadata"]["labels"]["karpenter.sh/capacity-type"] for node in nodes} == {"spot"}
    assert sum(int(node["status"]["capacity"]["nvidia.com/gpu"]) for node in nodes) == 4, "the pool's ceiling is reached"
    assert {pod["spec"]["nodeName"] for pod in pods} == {node["metadata"]["name"] for node in nodes}

    cluster.create(gpu_job("high-priority-job", "team-beta", HIGH))
    preempted_workload, preempted = wait_for_preemption(cluster, "team-alpha")
    wait_for_running(cluster, "team-beta", 1)
    wait_for_running(cluster, "team-alpha", 3)

    assert preempted["reason"] == "InCohortReclamation"
    assert "due to reclamation within the cohort" in preempted["message"]
    assert {"Preempted", "EvictedDueToPreempted"} <= reasons(cluster, preempted_workload)
    victim = cluster.get(JOB, job_of(preempted_workload), "team-alpha")
    assert victim is not None
    assert victim["spec"]["suspend"] is True, "the preempted Job waits in its queue"
    assert len(cluster.list(NODE)) == 4, "the freed GPU was used again; no fifth node was made"

    release(cluster, "team-beta")
    wait_for_completion(cluster, "team-beta", 1)
    wait_for_running(cluster, "team-alpha", 4)

    requeued = cluster.get(WORKLOAD, preempted_workload["metadata"]["name"], "team-alpha")
    assert requeued is not None
    assert condition(requeued, "Admitted"), "the preempted Workload was admitted again"
    release(cluster, "team-alpha")
    wait_for_completion(cluster, "team-alpha", 4)


def test_a_higher_priority_job_preempts_a_lower_one_of_its_own_queue(exercise_cluster: Cluster) -> None:
    cluster = exercise_cluster
    # Beta uses its own two GPUs, so alpha cannot borrow and its third Job must preempt or wait.
    cluster.apply(*platform_objects())
    for number in range(1, 3):
        cluster.create(gpu_job(f"beta-{number}", "team-beta", LOW))
        cluster.create(gpu_job(f"alpha-low-{number}", "team-alpha", LOW))
    wait_for_running(cluster, "team-alpha", 2)
    betas = wait_for_running(cluster, "team-beta", 2)

    cluster.create(gpu_job("alpha-high", "team-alpha", HIGH))
    preempted_workload, preempted = wait_for_preemption(cluster, "team-alpha")
    running = wait_for_running(cluster, "team-alpha", 2)

    assert preempted["reason"] == "InClusterQueue"
    assert job_of(preempted_workload) in {"alpha-low-1", "alpha-low-2"}
    while {pod["metadata"]["labels"]["job-name"] for pod in running} == {"alpha-low-1", "alpha-low-2"}:
        running = wait_for_running(cluster, "team-alpha", 2)
    assert "alpha-high" in {pod["metadata"]["labels"]["job-name"] for pod in running}
    assert not any(condition(workload, "Preempted") for workload in cluster.list(WORKLOAD, "team-beta")), "the other team is left alone"
    assert {pod["metadata"]["uid"] for pod in running_pods(cluster.list(POD, "team-beta"))} == {pod["metadata"]["uid"] for pod in betas}

    for team in ("team-alpha", "team-beta"):
        release(cluster, team)
    wait_for_completion(cluster, "team-beta", 2)
    wait_for_running(cluster, "team-alpha", 1)
    release(cluster, "team-alpha")
    wait_for_completion(cluster, "team-alpha", 3)
