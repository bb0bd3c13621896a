"""Playing the exercise for a person to watch: each step is reported once the API server shows that it happened."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lab.errors import LabError
from lab.exercise.jobs import (
    HIGH,
    JOB,
    LOCAL_QUEUE,
    LOW,
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

    from lab.cluster import Cluster, KubeObject


@dataclass(frozen=True)
class ExerciseSetup:
    """What the exercise is played on. `objects` are applied before and removed afterwards; a deployed stack brings its own."""

    queue: str | None
    low: str
    high: str
    objects: list[KubeObject]


def setup_on(cluster: Cluster) -> ExerciseSetup:
    """The queues of the deployed local stack where there are any, else the exercise's own plain objects."""
    if cluster.get(LOCAL_QUEUE, "default", "team-alpha") and cluster.get(LOCAL_QUEUE, "default", "team-beta"):
        return ExerciseSetup("default", "gpu-development", "gpu-training", [])
    return ExerciseSetup(None, LOW, HIGH, platform_objects())


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
            f"if you can spare them: `.tools/bin/kubectl --kubeconfig {cluster.kubeconfig} delete jobs --all -n TEAM` for both teams,"
            " then play again.",
        )
    setup = setup_on(cluster)
    try:
        cluster.apply(*setup.objects)
        whose = "of the local stack" if not setup.objects else "made for the exercise"
        happened(f"a Spot NodePool {whose} of at most 4 GPUs, now 0 nodes; team-alpha and team-beta own 2 GPUs each in one cohort")
        for number in range(1, 5):
            cluster.create(gpu_job(f"low-priority-job-{number}", "team-alpha", setup.low, queue=setup.queue))
        pods = wait_for_running(cluster, "team-alpha", 4)
        nodes = {pod["spec"]["nodeName"] for pod in pods}
        happened(f"team-alpha's four low-priority Jobs run on {len(nodes)} new Spot nodes: 2 GPUs of its own, 2 borrowed")
        cluster.create(gpu_job("high-priority-job", "team-beta", setup.high, queue=setup.queue))
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
        clean_up(cluster, setup.objects)


def clean_up(cluster: Cluster, objects: list[KubeObject] | None = None) -> None:
    """Removes the exercise's Jobs and `objects` (by default those of its own platform), and returns once all of it is gone."""
    for team in ("team-alpha", "team-beta"):
        for job in cluster.list(JOB, team):
            cluster.delete(JOB, job["metadata"]["name"], team)
    objects = platform_objects() if objects is None else objects
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
    wait_for_no_nodes(cluster)
