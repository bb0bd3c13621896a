"""Rendered jobs on a platform of queues: submitting them, ending their pods, seeing what Kubernetes counted. Not a test.

What ends with which exit code is said by an annotation of the lab's, or written into a pod's status as a kubelet would.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from queue_fixtures import FOUR_L4, queues_of

from capacity.workloads.kinds import objects_of
from lab.cluster import POD, condition
from lab.exercise.jobs import JOB, UNTIL_RELEASED, run_time_of_pods, running_pods

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from queue_fixtures import QueueGround
    from queue_objects import Register

    from lab.cluster import Cluster, KubeObject

NODES = 2

_EXIT_CODE = "pod-terminate.stage.kwok.x-k8s.io/exit-code"


def spot_platform(
    cluster: Cluster, register: Register, nodes: int = NODES, serves: tuple[str, ...] = ("training", "best-effort"), **settings: Any
) -> AbstractContextManager[QueueGround]:
    """Two teams that own four GPUs each on two nodes of four; training is worth more than best effort."""
    pool = {"name": "l4-spot", "machine": FOUR_L4, "capacity_type": "spot", "max_nodes": NODES, "serves": [*serves]}
    teams = [{"name": name, "shares": {"l4-spot": 4}} for name in ("alpha", "beta")]
    return queues_of(cluster, register, {"l4-spot": nodes}, pools=[pool], teams=teams, **settings)


def submit(ground: QueueGround, kind: str, name: str, *, team: str = "alpha", exit_code: int | None = None, **fields: Any) -> None:
    """Creates what the kind is made of; its pods run until they are let go, and end with `exit_code` when they are told to."""
    written = {"name": name, "team": ground.own(team), "workload_class": "training", "image": "trainer:1", "cpu": "1", "memory": "1Gi"}
    for each in objects_of(ground.plan, kind, {**written, **fields}):
        if each["kind"] == "Job":
            how = each["spec"]["template"]["metadata"].setdefault("annotations", {})
            how |= run_time_of_pods(UNTIL_RELEASED)
            if exit_code is not None:
                how[_EXIT_CODE] = str(exit_code)
        ground.cluster.create(each)


def pods_of(pods: list[KubeObject], job: str) -> list[KubeObject]:
    """Those of the pods that are a Job's and run."""
    return [each for each in running_pods(pods) if each["metadata"]["labels"]["job-name"] == job]


def wait_for_pods(ground: QueueGround, job: str, count: int, team: str = "alpha", *, instead_of: tuple[str, ...] = ()) -> list[KubeObject]:
    """The running pods of a Job as soon as there are so many, and none of them is one of those with the uids `instead_of`."""

    def found(pods: list[KubeObject]) -> list[KubeObject] | None:
        running = pods_of(pods, job)
        return running if len(running) == count and not {each["metadata"]["uid"] for each in running} & {*instead_of} else None

    what = f"{count} pods of {job} to run, other than {len(instead_of)}"
    return ground.cluster.wait_for(POD, found, what, namespace=ground.own(team), timeout_seconds=150)


def uids(pods: list[KubeObject]) -> tuple[str, ...]:
    return tuple(each["metadata"]["uid"] for each in pods)


def fail(ground: QueueGround, pod: KubeObject, exit_code: int) -> None:
    """Has the program of a running pod end by itself."""
    ended = {"exitCode": exit_code, "reason": "Error"}
    container = {"name": "main", "image": "trainer:1", "imageID": "", "ready": False, "restartCount": 0, "state": {"terminated": ended}}
    status = {"status": {"phase": "Failed", "containerStatuses": [container]}}
    ground.cluster.patch(POD, pod["metadata"]["name"], status, pod["metadata"]["namespace"], subresource="status")


def job_of(ground: QueueGround, name: str) -> KubeObject:
    """A Job of team alpha."""
    found = ground.cluster.get(JOB, name, ground.own("alpha"))
    assert found is not None, f"{name} is gone"
    return found


def wait_for_job(ground: QueueGround, name: str, look: Callable[[KubeObject], object], what: str) -> KubeObject:
    """A Job of team alpha as soon as `look` sees something in it."""

    def found(jobs: list[KubeObject]) -> KubeObject | None:
        return next((each for each in jobs if each["metadata"]["name"] == name and look(each)), None)

    return ground.cluster.wait_for(JOB, found, f"Job {name}: {what}", namespace=ground.own("alpha"))


def wait_for_failure(ground: QueueGround, name: str) -> tuple[str, int]:
    """Why a Job has failed for good, and how many failures it counted, as soon as it has."""
    job = wait_for_job(ground, name, lambda each: condition(each, "Failed"), "failed")
    failed = condition(job, "Failed")
    assert failed is not None
    return str(failed["reason"]), counted(job)


def counted(job: KubeObject) -> int:
    """The failures that a Job has counted."""
    return int(job["status"].get("failed", 0))
