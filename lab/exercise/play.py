"""Playing the exercise for a person to watch: each step is reported once the API server shows that it happened."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from lab.errors import LabError
from lab.exercise.jobs import (
    HIGH,
    JOB,
    LOW,
    NODE,
    gpu_job,
    job_of,
    platform_objects,
    release,
    wait_for_completion,
    wait_for_no_nodes,
    wait_for_preemption,
    wait_for_running,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from lab.cluster import Cluster


def play(cluster: Cluster, tell: Callable[[float, str], None]) -> None:
    """Plays the exercise from an empty lab and cleans up after itself; `tell` is given the seconds since the beginning and what happened.

    Raises WaitTimeoutError when a step does not happen.
    """
    begun = time.monotonic()

    def happened(what: str) -> None:
        tell(time.monotonic() - begun, what)

    if cluster.list(JOB, "team-alpha") or cluster.list(JOB, "team-beta"):
        raise LabError(
            "there are Jobs of team-alpha or team-beta on the lab already, so the exercise would not start from nothing.",
            f"if you can spare them: `.tools/bin/kubectl --kubeconfig {cluster.kubeconfig} delete namespace team-alpha team-beta`,"
            " then play again.",
        )
    try:
        cluster.apply(*platform_objects())
        happened("a Spot NodePool of at most 4 GPUs, now 0 nodes; team-alpha and team-beta own 2 GPUs each in one cohort")
        for number in range(1, 5):
            cluster.create(gpu_job(f"low-priority-job-{number}", "team-alpha", LOW))
        pods = wait_for_running(cluster, "team-alpha", 4)
        nodes = {pod["spec"]["nodeName"] for pod in pods}
        happened(f"team-alpha's four low-priority Jobs run on {len(nodes)} new Spot nodes: 2 GPUs of its own, 2 borrowed")
        cluster.create(gpu_job("high-priority-job", "team-beta", HIGH))
        workload, preempted = wait_for_preemption(cluster, "team-alpha")
        happened(f"team-beta asks for a GPU of its share: {job_of(workload)} is preempted ({preempted['reason']})")
        wait_for_running(cluster, "team-beta", 1)
        happened("team-beta's high-priority Job runs; the preempted Job waits in its queue")
        release(cluster, "team-beta")
        wait_for_completion(cluster, "team-beta", 1)
        wait_for_running(cluster, "team-alpha", 4)
        happened("team-beta's Job is done; the preempted Job was admitted again and runs")
        release(cluster, "team-alpha")
        wait_for_completion(cluster, "team-alpha", 4)
        happened("all of team-alpha's Jobs are complete, the preempted one included")
        wait_for_no_nodes(cluster)
        happened("Karpenter removed the empty nodes: nothing costs anything any more")
    finally:
        clean_up(cluster)


def clean_up(cluster: Cluster) -> None:
    """Removes everything that the exercise made, and returns once it is gone."""
    objects = platform_objects()
    for each in reversed(objects):
        kind = f"{each['apiVersion']}/{each['kind']}"
        cluster.delete(kind, each["metadata"]["name"], each["metadata"].get("namespace"))
    for kind in {f"{each['apiVersion']}/{each['kind']}" for each in objects}:
        names = {each["metadata"]["name"] for each in objects if kind == f"{each['apiVersion']}/{each['kind']}"}
        cluster.wait_for(
            kind,
            lambda found, names=names: not names & {each["metadata"]["name"] for each in found},
            f"deletion of {', '.join(sorted(names))}",
            timeout_seconds=180,
        )
    cluster.wait_for(NODE, lambda nodes: not nodes, "removal of every node", timeout_seconds=180)
