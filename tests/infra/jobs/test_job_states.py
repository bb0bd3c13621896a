"""States of jobs and their reasons, from objects as Kubernetes and Kueue write them."""

from __future__ import annotations

from typing import Any

import pytest

from flexspot.infra.jobs.state import State, pods_of, states

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


WAITS_FOR_DWS = {"name": "dws", "state": "Pending", "message": "waits for capacity in us-central1"}


def workload(*conditions: Object, active: bool = True, uid: str = "u1", checks: list[Object] | None = None) -> Object:
    return {
        "metadata": {"ownerReferences": [{"uid": uid, "kind": "Job"}]},
        "spec": {"active": active},
        "status": {"conditions": [*conditions], "admissionChecks": checks or []},
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
        (job(suspend=True), [], [], State.WAITING, "Kueue has not processed it yet"),
        (job(suspend=True), [workload(NO_QUOTA)], [], State.WAITING, NO_QUOTA["message"]),
        (job(suspend=True), [workload(GIVEN_UP, active=False)], [], State.WAITING, "Kueue gave up on it: Deactivated: exceeded the max"),
        (
            *(job(suspend=True, active=2), [workload(said("Evicted", "True", "Preempted", "to make room for beta"))]),
            *([], State.STOPPING, "Preempted: to make room for beta"),
        ),
        (
            *(job(suspend=True, active=0, terminating=2), [workload(said("Evicted", "True", "Preempted", "to make room for beta"))]),
            *([], State.STOPPING, "Preempted: to make room for beta"),
        ),
        (
            *(job(suspend=True), [workload(said("QuotaReserved", "True", "QuotaReserved", ""), checks=[WAITS_FOR_DWS])]),
            *([], State.WAITING, "dws: waits for capacity in us-central1"),
        ),
        (job(active=2), [], [], State.STARTING, "its pods are being created"),
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
def test_a_job_has_one_state_and_its_reason(one: Object, of_kueue: list[Object], pods: list[Object], state: State, why: str) -> None:
    [found] = states([one], of_kueue, pods)

    assert (found.state, found.why.startswith(why), bool(found.why)) == (state, True, bool(why))
    assert (found.work, found.workload_class, found.of, found.gpus) == ("bert", "training", 2, 16)


def test_workloads_and_pods_of_other_jobs_are_ignored() -> None:
    other = pending(**NO_NODE)
    other["metadata"]["labels"] = {"batch.kubernetes.io/job-name": "berta"}

    [waits, starts] = states([job(suspend=True), job("later", uid="u2", active=1)], [workload(NO_QUOTA, uid="u9")], [other])

    assert waits.why == "Kueue has not processed it yet"
    assert starts.why == "its pods are being created"


def gang(*parts: Object, **status: Any) -> Object:
    return {
        "kind": "JobSet",
        "metadata": {"name": "gang", "uid": "u4", "labels": {}},
        "spec": {"suspend": False, "replicatedJobs": [*parts]},
        "status": status,
    }


def part(replicas: int = 1) -> Object:
    spec = job()["spec"]
    return {
        "name": "pods",
        "replicas": replicas,
        "template": {"spec": {key: spec[key] for key in ("parallelism", "completions", "template")}},
    }


def ready(number: int) -> Object:
    labels = {"jobset.sigs.k8s.io/jobset-name": "gang"}
    return {
        "metadata": {"name": f"gang-{number}", "labels": labels},
        "status": {"phase": "Running", "conditions": [said("Ready", "True", "", "")]},
    }


def test_a_jobset_represents_the_jobs_that_it_creates() -> None:
    made = job("gang-pods-0", uid="u3")
    made["metadata"]["ownerReferences"] = [{"kind": "JobSet", "uid": "u4"}]

    [found] = states([made, gang(part(), conditions=[said("Completed", "True", "AllJobsCompleted", "")])], [])

    assert (found.name, found.kind, found.state, found.gpus) == ("gang", "JobSet", State.DONE, 16)


def test_a_jobset_runs_when_its_pods_are_ready_whatever_its_job_count() -> None:
    status = {"replicatedJobsStatus": [{"name": "pods", "ready": 1, "active": 1}]}

    [runs] = states([gang(part(2), part(), **status)], [], map(ready, range(6)))
    [starts] = states([gang(part(2), part(), **status)], [], [])

    assert (runs.state, runs.pods, runs.of, runs.gpus) == (State.RUNNING, 6, 6, 48)
    assert (starts.state, starts.pods) == (State.STARTING, 0)


def test_a_suspended_jobset_is_stopping_while_jobs_are_active_and_may_have_no_jobs() -> None:
    stopped = gang(part(), replicatedJobsStatus=[{"name": "pods", "active": 1}])
    stopped["spec"]["suspend"] = True

    [stopping] = states([stopped], [])
    [empty] = states([gang()], [])

    assert stopping.state is State.STOPPING
    assert (empty.of, empty.gpus) == (0, 0)


def test_pods_of_an_earlier_job_of_the_same_name_are_ignored() -> None:
    earlier, own = ({**pending(**NO_NODE)} for _ in range(2))
    earlier["metadata"] = {**earlier["metadata"], "ownerReferences": [{"kind": "Job", "uid": "u0"}]}
    own["metadata"] = {**own["metadata"], "ownerReferences": [{"kind": "Job", "uid": "u1"}]}

    assert pods_of("Job", "bert", "u1", [earlier, own]) == [own]
    assert [each.why for each in states([job(active=2)], [], [earlier])] == ["its pods are being created"]


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "aws.amazon.com/neuron"])
def test_devices_of_every_kind_are_counted(resource: str) -> None:
    made = job()
    made["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] = {resource: "8", "cpu": "4"}

    assert [each.gpus for each in states([made], [])] == [16]
