"""How a job is, in one word and in the words of whoever holds it up, out of objects as Kubernetes and Kueue write them."""

from __future__ import annotations

from typing import Any

import pytest

from infra.jobs.state import State, states

Object = dict[str, Any]


def job(name: str = "bert", *, uid: str = "u1", suspend: bool = False, parallelism: int = 2, **status: Any) -> Object:
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "uid": uid,
            "creationTimestamp": "2026-11-26T07:00:00Z",
            "labels": {"app.kubernetes.io/name": "bert", "flexspot.dev/class": "training"},
        },
        "spec": {
            "suspend": suspend,
            "parallelism": parallelism,
            "completions": parallelism,
            "template": {"spec": {"containers": [container]}},
        },
        "status": status,
    }


def workload(*conditions: Object, active: bool = True, uid: str = "u1") -> Object:
    return {
        "metadata": {"ownerReferences": [{"uid": uid, "kind": "Job"}]},
        "spec": {"active": active},
        "status": {"conditions": [*conditions]},
    }


def said(kind: str, status: str, reason: str, message: str) -> Object:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def pending(**status: Any) -> Object:
    labels = {"batch.kubernetes.io/job-name": "bert"}
    return {"metadata": {"name": "bert-0", "labels": labels}, "status": {"phase": "Pending", **status}}


NO_QUOTA = said("QuotaReserved", "False", "Pending", "couldn't assign flavors to pod set main: insufficient unused quota")
GIVEN_UP = said("Evicted", "True", "Deactivated", "exceeded the maximum number of re-queuing retries")
NO_NODE = {"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}]}
NO_IMAGE = {"containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}}]}


@pytest.mark.parametrize(
    "one,of_kueue,pods,state,why",
    [
        (job(suspend=True), [], [], State.WAITING, "Kueue has not looked at it yet"),
        (job(suspend=True), [workload(NO_QUOTA)], [], State.WAITING, NO_QUOTA["message"]),
        (job(suspend=True), [workload(GIVEN_UP, active=False)], [], State.WAITING, "Kueue has given it up: Deactivated: exceeded the max"),
        (
            *(job(suspend=True, active=2), [workload(said("Evicted", "True", "Preempted", "to make room for beta"))]),
            *([], State.STOPPING, "Preempted: to make room for beta"),
        ),
        (job(active=2), [], [], State.STARTING, "its pods are being made"),
        (job(active=2), [], [pending(**NO_NODE)], State.STARTING, "no node yet: 0/3 nodes are available"),
        (job(active=2), [], [pending(**NO_IMAGE)], State.STARTING, "ImagePullBackOff: not found"),
        (job(active=2, ready=1), [], [pending(**NO_NODE)], State.RUNNING, "no node yet: 0/3 nodes are available"),
        (job(active=2, ready=2), [], [], State.RUNNING, ""),
        (job(conditions=[said("Complete", "True", "CompletionsReached", "")]), [], [], State.DONE, ""),
        (
            job(conditions=[said("Failed", "True", "BackoffLimitExceeded", "it has failed 4 times")]),
            *([], [], State.FAILED, "BackoffLimitExceeded: it has failed 4 times"),
        ),
    ],
)
def test_a_job_is_in_one_state_and_says_why(one: Object, of_kueue: list[Object], pods: list[Object], state: State, why: str) -> None:
    [found] = states([one], of_kueue, pods)

    assert (found.state, found.why.startswith(why), bool(found.why)) == (state, True, bool(why))
    assert (found.work, found.workload_class, found.of, found.gpus) == ("bert", "training", 2, 16)


def test_what_a_workload_or_a_pod_of_another_job_says_is_not_its_own() -> None:
    other = pending(**NO_NODE)
    other["metadata"]["labels"] = {"batch.kubernetes.io/job-name": "berta"}

    [waits, starts] = states([job(suspend=True), job("later", uid="u2", active=1)], [workload(NO_QUOTA, uid="u9")], [other])

    assert waits.why == "Kueue has not looked at it yet"
    assert starts.why == "its pods are being made"


def test_a_jobset_stands_for_the_jobs_that_it_makes() -> None:
    made = job("gang-pods-0", uid="u3")
    made["metadata"]["ownerReferences"] = [{"kind": "JobSet", "uid": "u4"}]
    template = {"spec": {key: made["spec"][key] for key in ("parallelism", "completions", "template")}}
    gang = {
        "kind": "JobSet",
        "metadata": {"name": "gang", "uid": "u4", "labels": {}},
        "spec": {"suspend": False, "replicatedJobs": [{"name": "pods", "replicas": 1, "template": template}]},
        "status": {
            "replicatedJobsStatus": [{"name": "pods", "ready": 0}],
            "conditions": [said("Completed", "True", "AllJobsCompleted", "")],
        },
    }

    [found] = states([made, gang], [])

    assert (found.name, found.kind, found.state, found.gpus) == ("gang", "JobSet", State.DONE, 16)


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "aws.amazon.com/neuron"])
def test_devices_of_every_kind_are_counted(resource: str) -> None:
    made = job()
    made["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] = {resource: "8", "cpu": "4"}

    assert [each.gpus for each in states([made], [])] == [16]
