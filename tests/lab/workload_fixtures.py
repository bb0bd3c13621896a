"""Rendered jobs on a platform of queues: submit them, end their pods, check Kubernetes' counts. Not a test.

An annotation of the lab sets exit codes, or a test writes them into a pod's status as a kubelet would.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import NotFoundError
from queue_fixtures import FOUR_L4, condition_of, queues_of
from torchrun_ends import KILLED

from flexspot.capacity.workloads.kinds import objects_of
from flexspot.capacity.workloads.requests import NAME_LABEL
from flexspot.lab.cluster import POD, condition, status_of
from flexspot.lab.exercise.play import JOB, NODE, UNTIL_RELEASED, WORKLOAD, release, run_time_of_pods, running_pods

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    from queue_fixtures import QueuePlatform
    from queue_objects import Register

    from flexspot.lab.cluster import Cluster, KubeObject

NODES = 2
_LONG_AGO = "2026-01-01T00:00:00Z"

_TOO_MANY = 429
_EXIT_CODE = "pod-terminate.stage.kwok.x-k8s.io/exit-code"


def spot_platform(
    cluster: Cluster, register: Register, nodes: int = NODES, serves: tuple[str, ...] = ("training", "best-effort"), **settings: Any
) -> AbstractContextManager[QueuePlatform]:
    """Yield two teams that own four GPUs each on two nodes of four; training has a higher priority than best effort."""
    pool = {"name": "l4-spot", "machine": FOUR_L4, "node_sharing": True, "capacity_type": "spot", "max_nodes": NODES, "serves": [*serves]}
    teams = [{"name": name, "shares": {"l4-spot": 4}} for name in ("alpha", "beta")]
    return queues_of(cluster, register, {"l4-spot": nodes}, pools=[pool], teams=teams, **settings)


def submit(platform: QueuePlatform, kind: str, name: str, *, team: str = "alpha", exit_code: int | None = None, **fields: Any) -> None:
    """Create the objects of the kind. Its pods run until they are released, and then exit with `exit_code`."""
    written = {"name": name, "team": platform.own(team), "workload_class": "training", "image": "trainer:1", "cpu": "1", "memory": "1Gi"}
    for each in objects_of(platform.plan, kind, {**written, **fields}):
        jobs = [each] if each["kind"] == "Job" else [replicated["template"] for replicated in each["spec"].get("replicatedJobs", ())]
        for job in jobs:
            how = job["spec"]["template"]["metadata"].setdefault("annotations", {})
            how |= run_time_of_pods(UNTIL_RELEASED)
            if exit_code is not None:
                how[_EXIT_CODE] = str(exit_code)
        platform.cluster.create(each)


def pods_of(pods: list[KubeObject], job: str) -> list[KubeObject]:
    """Return the running pods of a Job, or of all Jobs of a workload."""
    return [each for each in running_pods(pods) if is_of(each, job)]


def is_of(pod: KubeObject, job: str) -> bool:
    """Return whether a pod belongs to a Job, or to one of the Jobs of the workload with that name."""
    labels = pod["metadata"]["labels"]
    return job in (labels.get("job-name"), labels.get(NAME_LABEL))


def wait_for_pods(  # noqa: PLR0913 -- which pods, and how they are waited for
    platform: QueuePlatform, job: str, count: int, team: str = "alpha", *, instead_of: tuple[str, ...] = (), without_back_off: bool = False
) -> list[KubeObject]:
    """Return the running pods of a Job as soon as there are `count`, and none of them has a uid in `instead_of`.

    `without_back_off`: the Job controller does not back off from ended pods of team alpha.
    """

    def found(pods: list[KubeObject]) -> list[KubeObject] | None:
        if without_back_off:
            skip_back_off(platform, job)
        running = pods_of(pods, job)
        return running if len(running) == count and not {each["metadata"]["uid"] for each in running} & {*instead_of} else None

    what = f"{count} pods of {job} to run, other than {len(instead_of)}"
    return platform.cluster.wait_for(POD, found, what, namespace=platform.own(team), timeout_seconds=150)


def uids(pods: list[KubeObject]) -> tuple[str, ...]:
    return tuple(each["metadata"]["uid"] for each in pods)


def end(platform: QueuePlatform, pod: KubeObject, exit_code: int, **status: Any) -> None:
    """Let the program of a running pod end by itself, or as `status` specifies."""
    _write_end(platform, pod, exit_code, phase="Failed" if exit_code else "Succeeded", **status)


def _write_end(platform: QueuePlatform, pod: KubeObject, exit_code: int, *, at: str | None = None, **status: Any) -> None:
    ended = {"exitCode": exit_code, "reason": "Error" if exit_code else "Completed", **({"finishedAt": at} if at else {})}
    container = {"name": "main", "image": "trainer:1", "imageID": "", "ready": False, "restartCount": 0, "state": {"terminated": ended}}
    change = {"status": {"containerStatuses": [container], **status}}
    platform.cluster.patch(POD, pod["metadata"]["name"], change, pod["metadata"]["namespace"], subresource="status")


def skip_back_off(platform: QueuePlatform, job: str) -> None:
    """Let the Job controller see the ended pods of a Job of team alpha as ended long ago.

    It waits 10 s before it replaces an ended pod, doubled for each end before, up to ten minutes.
    """
    for pod in platform.cluster.list(POD, platform.own("alpha")):
        if is_of(pod, job) and pod["status"]["phase"] == "Failed":
            ended = [
                each["state"]["terminated"]["exitCode"]
                for each in pod["status"].get("containerStatuses", ())
                if "terminated" in each["state"]
            ]
            # The Job controller deletes a counted pod with its node, also between the list and this call.
            with suppress(NotFoundError):
                _write_end(platform, pod, *(ended or [KILLED]), at=_LONG_AGO)


def job_of(platform: QueuePlatform, name: str) -> KubeObject:
    """Return a Job of team alpha."""
    found = platform.cluster.get(JOB, name, platform.own("alpha"))
    assert found is not None, f"{name} is gone"
    return found


def wait_for_job(platform: QueuePlatform, name: str, look: Callable[[KubeObject], object], what: str) -> KubeObject:
    """Return a Job of team alpha as soon as `look` returns a true value for it."""

    def found(jobs: list[KubeObject]) -> KubeObject | None:
        return next((each for each in jobs if each["metadata"]["name"] == name and look(each)), None)

    return platform.cluster.wait_for(JOB, found, f"Job {name}: {what}", namespace=platform.own("alpha"))


def wait_for_failure(platform: QueuePlatform, name: str) -> tuple[str, int]:
    """Return the reason and the number of counted failures of a Job, as soon as it has finally failed."""
    job = wait_for_job(platform, name, lambda each: condition(each, "Failed"), "failed")
    failed = condition(job, "Failed")
    assert failed is not None
    return str(failed["reason"]), counted(job)


def counted(job: KubeObject) -> int:
    """Return the failures that a Job has counted."""
    return int(job["status"].get("failed", 0))


def assert_continues(job: KubeObject) -> None:
    """Assert that an interruption was not counted and has not ended the Job."""
    assert (counted(job), condition(job, "Failed"), condition(job, "Complete")) == (0, None, None)


def finish(platform: QueuePlatform, *jobs: str) -> None:
    """Let the pods of the named Jobs of team alpha finish their work, and those of no service. Return once the Jobs are Complete."""
    for job in jobs:
        release(platform.cluster, platform.own("alpha"), job)
    platform.wait_for_completion("alpha", *jobs)


def set_clock_back(platform: QueuePlatform, workload: KubeObject, what: str) -> None:
    """Let Kueue see a condition of a Workload as months old, so that tests need not wait for its timeout."""
    conditions = workload["status"]["conditions"]
    old = [{**each, "lastTransitionTime": _LONG_AGO} if each["type"] == what else each for each in conditions]
    change = {"status": {"conditions": old}}
    platform.cluster.patch(WORKLOAD, workload["metadata"]["name"], change, platform.own("alpha"), subresource="status")


_COUNTED_FROM = {"WaitForStart": "Admitted", "WaitForRecovery": "PodsReady"}
"""The condition from which Kueue counts the waiting time for pods, by the reason of the wait."""


def time_out_waiting(platform: QueuePlatform, job: str, reason: str) -> None:
    """Let Kueue's wait for a Job of team alpha time out whose pods are not all ready. `reason` is the reason in its Workload."""

    def waits(workload: KubeObject) -> bool:
        ready = condition_of(workload, "PodsReady")
        return ready is not None and (ready["status"], ready["reason"]) == ("False", reason)

    set_clock_back(platform, platform.wait_for_workload("alpha", job, waits, "waits for a pod"), _COUNTED_FROM[reason])


def requeue(platform: QueuePlatform, job: str) -> KubeObject:
    """Return the Workload of a Job of team alpha once Kueue has evicted it, queued again without the minute's wait."""

    def backs_off(workload: KubeObject) -> bool:
        requeued = condition_of(workload, "Requeued")
        return requeued is not None and (requeued["status"], requeued["reason"]) == ("False", "PodsReadyTimeout")

    evicted = platform.wait_for_workload("alpha", job, backs_off, "given up waiting")
    # It would be queued again after a minute. Removed, not changed: Kueue does not remove what a test has written.
    change = {"status": {"requeueState": {"requeueAt": None}}}
    platform.cluster.patch(WORKLOAD, evicted["metadata"]["name"], change, platform.own("alpha"), subresource="status")
    return evicted


def wait_until_pending(platform: QueuePlatform, job: str, count: int) -> None:
    """Return once `count` pods of a Job of team alpha have found no node."""

    def waits(pods: list[KubeObject]) -> bool:
        own = [each for each in pods if is_of(each, job)]
        said = [condition_of(each, "PodScheduled") for each in own if each["status"].get("phase") == "Pending"]
        return sum(each is not None and each.get("reason") == "Unschedulable" for each in said) == count

    platform.cluster.wait_for(POD, waits, f"{count} pods of {job} to find no node", namespace=platform.own("alpha"), timeout_seconds=150)


def cordon(platform: QueuePlatform, nodes: Iterable[str], *, back: bool = False) -> None:
    """Cordon nodes as `kubectl cordon` does, or with `back` uncordon them."""
    for node in nodes:
        platform.cluster.patch(NODE, node, {"spec": {"unschedulable": None if back else True}})


def drain(platform: QueuePlatform, nodes: Iterable[str]) -> list[str]:
    """Drain nodes as `kubectl drain` does: cordon them and request the eviction of every pod of team alpha on them.

    Return the names of the pods whose eviction a disruption budget has refused, which kubectl would retry.
    """
    closed = {*nodes}
    cordon(platform, closed)
    refused: list[str] = []
    for pod in running_pods(platform.cluster.list(POD, platform.own("alpha"))):
        if pod["spec"]["nodeName"] not in closed:
            continue
        try:
            platform.cluster.evict(pod["metadata"]["name"], platform.own("alpha"))
        except NotFoundError:
            continue
        except ApiException as error:
            if status_of(error) != _TOO_MANY:
                raise
            refused.append(pod["metadata"]["name"])
    return refused
