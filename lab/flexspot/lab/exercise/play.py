"""The exercise: its Jobs, submitted and finished, played for a person to watch."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kubernetes.client.exceptions import ApiException

from flexspot.lab.cluster import NOT_FOUND, POD, KubeObject, WaitTimeoutError, condition, read_objects, status_of
from flexspot.lab.progress import LabError

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexspot.lab.cluster import Cluster


JOB = "batch/v1/Job"
NODE = "v1/Node"
LOCAL_QUEUE = "kueue.x-k8s.io/v1beta2/LocalQueue"
WORKLOAD = "kueue.x-k8s.io/v1beta2/Workload"

LOW = "low-priority-gpu"
HIGH = "high-priority-gpu"

UNTIL_RELEASED = "24h"

_FOLDER = Path(__file__).parent
_RUN_TIME = "pod-complete.stage.kwok.x-k8s.io/"
_RELEASED = "lab.flexspot.dev/released"
_RELEASES = 4


def platform_objects() -> list[KubeObject]:
    """Return the NodePool, queues, namespaces and priorities of platform.yaml, in the order in which they are applied."""
    return read_objects(_FOLDER / "platform.yaml")


def gpu_job(name: str, team: str, priority: str, *, queue: str | None = None, run_time: str = UNTIL_RELEASED) -> KubeObject:
    """Return a one-GPU Job in `queue` of the namespace `team`, by default the exercise's queue, `TEAM-queue`.

    Its pod runs for `run_time`, a Go duration, by default until `release`.
    """
    [job] = read_objects(_FOLDER / "job.yaml")
    job["metadata"] = {"name": name, "namespace": team, "labels": {"kueue.x-k8s.io/queue-name": queue or f"{team}-queue"}}
    job["spec"]["template"]["spec"]["priorityClassName"] = priority
    job["spec"]["template"]["metadata"]["annotations"] = run_time_of_pods(run_time)
    return job


def release(cluster: Cluster, team: str, job: str | None = None) -> None:
    """Let every running pod of the team, or of one of its Jobs, finish its work now. Return once they have."""
    running = [each for each in running_pods(cluster.list(POD, team)) if job is None or each["metadata"]["labels"].get("job-name") == job]
    released = {pod["metadata"]["uid"]: pod["metadata"]["name"] for pod in running}

    def still_running(pods: list[KubeObject]) -> dict[str, str]:
        return {pod["metadata"]["uid"]: pod["metadata"]["name"] for pod in running_pods(pods) if pod["metadata"]["uid"] in released}

    left = released
    # KWOK may process an older state of a pod after a newer one, if the pod has only just started. Then the release is repeated.
    for attempt in range(_RELEASES):
        for name in left.values():
            try:
                cluster.patch(POD, name, {"metadata": {"annotations": {**run_time_of_pods("0s"), _RELEASED: str(attempt)}}}, team)
            except ApiException as error:
                # A pod that is gone, because it was preempted in the meantime, has nothing left to finish.
                if status_of(error) != NOT_FOUND:
                    raise
        try:
            cluster.wait_for(POD, lambda pods: not still_running(pods), f"the end of pods of {team}", namespace=team, timeout_seconds=15)
        except WaitTimeoutError:
            left = still_running(cluster.list(POD, team))
        else:
            return
    raise WaitTimeoutError(f"released pods still run: {', '.join(sorted(left.values()))}")


def running_pods(pods: list[KubeObject]) -> list[KubeObject]:
    """Return the pods that run and are not being deleted."""
    return [pod for pod in pods if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]]


def wait_for_running(cluster: Cluster, team: str, count: int) -> list[KubeObject]:
    """Return exactly `count` running pods of the team, as soon as they run."""

    def look(pods: list[KubeObject]) -> list[KubeObject] | None:
        running = running_pods(pods)
        return running if len(running) == count else None

    return cluster.wait_for(POD, look, f"{count} running pod(s) of {team}", namespace=team)


def wait_for_completion(cluster: Cluster, team: str, count: int, timeout_seconds: float = 90) -> None:
    """Return once `count` Jobs of the team are Complete.

    Raises AssertionError as soon as one has failed, WaitTimeoutError after `timeout_seconds`.
    """

    def look(jobs: list[KubeObject]) -> bool:
        failed = [job["metadata"]["name"] for job in jobs if condition(job, "Failed")]
        if failed:
            raise AssertionError(f"Job(s) failed that should have survived: {', '.join(failed)}")
        return sum(condition(job, "Complete") is not None for job in jobs) == count

    cluster.wait_for(JOB, look, f"completion of {count} Job(s) of {team}", namespace=team, timeout_seconds=timeout_seconds)


def wait_for_preemption(cluster: Cluster, team: str) -> tuple[KubeObject, KubeObject]:
    """Return the first preempted Workload of the team and its Preempted condition."""

    def look(workloads: list[KubeObject]) -> tuple[KubeObject, KubeObject] | None:
        for workload in workloads:
            if preempted := condition(workload, "Preempted"):
                return workload, preempted
        return None

    return cluster.wait_for(WORKLOAD, look, f"preemption of a Workload of {team}", namespace=team)


def job_of(workload: KubeObject) -> str:
    """Return the name of the Job that owns a Workload."""
    return str(next(owner["name"] for owner in workload["metadata"]["ownerReferences"] if owner["kind"] == "Job"))


def wait_for_no_nodes(cluster: Cluster) -> None:
    """Return once Karpenter has removed every node."""
    cluster.wait_for(NODE, lambda nodes: not nodes, "removal of every node", timeout_seconds=180)


def run_time_of_pods(duration: str) -> dict[str, Any]:
    """Return the annotations with which fake pods of Jobs run for `duration`, a Go duration, and then succeed."""
    # If the jitter is not set to the same value, KWOK draws a time between the delay and its default jitter.
    return {f"{_RUN_TIME}delay": duration, f"{_RUN_TIME}jitter-delay": duration}


@dataclass(frozen=True)
class ExerciseSetup:
    """Objects and names of the exercise."""

    queue: str | None
    low: str
    high: str
    objects: list[KubeObject]
    """Applied before the exercise and removed afterwards. Empty if a deployed stack has its own."""


def setup_on(cluster: Cluster) -> ExerciseSetup:
    """Return the queues of the deployed local stack if there are any, else the exercise's own plain objects."""
    if cluster.get(LOCAL_QUEUE, "default", "team-alpha") and cluster.get(LOCAL_QUEUE, "default", "team-beta"):
        return ExerciseSetup("default", "gpu-development", "gpu-training", [])
    return ExerciseSetup(None, LOW, HIGH, platform_objects())


def play(cluster: Cluster, report: Callable[[float, str], None]) -> None:
    """Play the exercise on an empty lab and clean up. `report` gets the seconds since the start and a message about each step.

    Raises WaitTimeoutError when a step does not happen.
    """
    started = time.monotonic()

    def happened(what: str) -> None:
        report(time.monotonic() - started, what)

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
    """Remove the exercise's Jobs and `objects` (by default those of its own platform). Return once all of them are gone."""
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
