"""The exercise's Jobs: submitting them, letting them finish, and reading what Kueue did to them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.cluster import POD, KubeObject, WaitTimeoutError, condition, read_objects

if TYPE_CHECKING:
    from lab.cluster import Cluster

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
    """The NodePool, queues, namespaces and priorities of platform.yaml, in the order in which they are applied."""
    return read_objects(_FOLDER / "platform.yaml")


def gpu_job(name: str, team: str, priority: str, *, queue: str | None = None, run_time: str = UNTIL_RELEASED) -> KubeObject:
    """A one-GPU Job in `queue` of the namespace `team`, by default the exercise's own, `TEAM-queue`.

    Its pod runs for `run_time`, a Go duration, by default until `release`.
    """
    [job] = read_objects(_FOLDER / "job.yaml")
    job["metadata"] = {"name": name, "namespace": team, "labels": {"kueue.x-k8s.io/queue-name": queue or f"{team}-queue"}}
    job["spec"]["template"]["spec"]["priorityClassName"] = priority
    job["spec"]["template"]["metadata"]["annotations"] = run_time_of_pods(run_time)
    return job


def release(cluster: Cluster, team: str, job: str | None = None) -> None:
    """Lets every running pod of the team, or of one Job of it, finish its work now, and returns once they have."""
    running = [each for each in running_pods(cluster.list(POD, team)) if job is None or each["metadata"]["labels"].get("job-name") == job]
    released = {pod["metadata"]["uid"]: pod["metadata"]["name"] for pod in running}

    def still_running(pods: list[KubeObject]) -> dict[str, str]:
        return {pod["metadata"]["uid"]: pod["metadata"]["name"] for pod in running_pods(pods) if pod["metadata"]["uid"] in released}

    left = released
    # KWOK may take up an older state of a pod after a newer one, when it has only just begun to run: then it is told again.
    for attempt in range(_RELEASES):
        for name in left.values():
            cluster.patch(POD, name, {"metadata": {"annotations": {**run_time_of_pods("0s"), _RELEASED: str(attempt)}}}, team)
        try:
            cluster.wait_for(POD, lambda pods: not still_running(pods), f"the end of pods of {team}", namespace=team, timeout_seconds=15)
        except WaitTimeoutError:
            left = still_running(cluster.list(POD, team))
        else:
            return
    raise WaitTimeoutError(f"pods that were let go still run: {', '.join(sorted(left.values()))}")


def running_pods(pods: list[KubeObject]) -> list[KubeObject]:
    """The pods that run and are not being taken away."""
    return [pod for pod in pods if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]]


def wait_for_running(cluster: Cluster, team: str, count: int) -> list[KubeObject]:
    """Exactly `count` running pods of the team, as soon as there are."""

    def look(pods: list[KubeObject]) -> list[KubeObject] | None:
        running = running_pods(pods)
        return running if len(running) == count else None

    return cluster.wait_for(POD, look, f"{count} running pod(s) of {team}", namespace=team)


def wait_for_completion(cluster: Cluster, team: str, count: int) -> None:
    """Returns once `count` Jobs of the team are Complete. Raises AssertionError as soon as one has failed."""

    def look(jobs: list[KubeObject]) -> bool:
        failed = [job["metadata"]["name"] for job in jobs if condition(job, "Failed")]
        if failed:
            raise AssertionError(f"Job(s) failed that should have survived: {', '.join(failed)}")
        return sum(condition(job, "Complete") is not None for job in jobs) == count

    cluster.wait_for(JOB, look, f"completion of {count} Job(s) of {team}", namespace=team)


def wait_for_preemption(cluster: Cluster, team: str) -> tuple[KubeObject, KubeObject]:
    """The first preempted Workload of the team and its Preempted condition."""

    def look(workloads: list[KubeObject]) -> tuple[KubeObject, KubeObject] | None:
        for workload in workloads:
            if preempted := condition(workload, "Preempted"):
                return workload, preempted
        return None

    return cluster.wait_for(WORKLOAD, look, f"preemption of a Workload of {team}", namespace=team)


def job_of(workload: KubeObject) -> str:
    """The name of the Job that a Workload stands for."""
    return str(next(owner["name"] for owner in workload["metadata"]["ownerReferences"] if owner["kind"] == "Job"))


def wait_for_no_nodes(cluster: Cluster) -> None:
    """Returns once Karpenter has removed every node."""
    cluster.wait_for(NODE, lambda nodes: not nodes, "removal of every node", timeout_seconds=180)


def run_time_of_pods(duration: str) -> dict[str, Any]:
    """The annotations by which fake pods of Jobs run for `duration`, a Go duration, and then end well."""
    # Without the jitter set to the same, KWOK draws a time between the delay and its default jitter.
    return {f"{_RUN_TIME}delay": duration, f"{_RUN_TIME}jitter-delay": duration}
