"""Queued capacity (DWS) on GKE, end to end: the product's queues and Kueue's provisioning controller, the lab's stand-in for GKE."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from dws_provisioner import (
    JOB_ANNOTATION,
    OUTCOME_ANNOTATION,
    PROVISIONING_CLASS,
    PROVISIONING_REQUEST,
    REQUEST_LABEL,
    Outcome,
    provisioner,
)
from queue_fixtures import GKE, QueuePlatform, queues_of

from flexspot.lab.cluster import POD, condition
from flexspot.lab.exercise.play import JOB, NODE, running_pods
from flexspot.policies.admission.guarantee import NAME

if TYPE_CHECKING:
    from collections.abc import Generator

    from queue_objects import Register

    from flexspot.lab.cluster import Cluster, KubeObject

pytestmark = pytest.mark.lab

RETRIES = 1


def retry_soon(each: KubeObject) -> None:
    """Set one retry after a second: the shipped three start after a minute."""
    if each["kind"] == "ProvisioningRequestConfig":
        each["spec"]["retryStrategy"] = {"backoffLimitCount": RETRIES, "backoffBaseSeconds": 1, "backoffMaxSeconds": 1}


@contextmanager
def queued_platform(cluster: Cluster, register: Register) -> Generator[QueuePlatform]:
    """Yield four nodes of eight H100 that DWS gives to training, and a node of L4 on Spot for training and notebooks."""
    pools = [
        {"name": "h100-queued", "machine": "a3-highgpu-8g", "capacity_type": "queued", "max_nodes": 4, "serves": ["training"]},
        {"name": "l4-spot", "machine": "g2-standard-48", "capacity_type": "spot", "max_nodes": 1, "serves": ["training", "interactive"]},
    ]
    teams = [{"name": "alpha", "shares": {"h100-queued": 32, "l4-spot": 4}}]
    with (
        provisioner(cluster),
        # The annotation by which a Job sets the outcomes is like those that the policy refuses.
        queues_of(cluster, register, {"l4-spot": 1}, retry_soon, pools=pools, teams=teams, without=(NAME,), **GKE) as platform,
    ):
        yield platform


def submit(platform: QueuePlatform, outcomes: str, pods: int = 2) -> None:
    """Submit a training Job of whole H100 nodes, with the outcomes of its requests."""
    annotations = {JOB_ANNOTATION: outcomes, "provreq.kueue.x-k8s.io/maxRunDurationSeconds": "86400"}
    platform.submit("alpha", "gang", gpus=8, pods=pods, annotations=annotations)


def wait_for_request(platform: QueuePlatform, attempt: int, outcome: str) -> KubeObject:
    """Return the request of an attempt once it has a condition."""

    def look(requests: list[KubeObject]) -> KubeObject | None:
        named = [each for each in requests if each["metadata"]["name"].endswith(f"-{attempt}")]
        return next((each for each in named if condition(each, outcome)), None)

    what = f"request of attempt {attempt} {outcome}"
    return platform.cluster.wait_for(PROVISIONING_REQUEST, look, what, namespace=platform.own("alpha"))


def tell(platform: QueuePlatform, request: KubeObject, outcome: Outcome) -> None:
    """Change the outcome of a request."""
    change = {"metadata": {"annotations": {OUTCOME_ANNOTATION: outcome.value}}}
    platform.cluster.patch(PROVISIONING_REQUEST, request["metadata"]["name"], change, request["metadata"]["namespace"])


def wait_for_gang(platform: QueuePlatform, pods: int) -> list[KubeObject]:
    """Return the pods of the gang once all of them run."""

    def look(found: list[KubeObject]) -> list[KubeObject] | None:
        running = running_pods(found)
        return running if len(running) == pods else None

    return platform.cluster.wait_for(POD, look, f"{pods} running pods of the gang", namespace=platform.own("alpha"))


def the_check(workload: KubeObject) -> KubeObject:
    """Return the state of a Workload's only admission check."""
    [check] = workload["status"]["admissionChecks"]
    return check


def wait_for_no_request(platform: QueuePlatform) -> None:
    def none(found: list[KubeObject]) -> bool:
        return not found

    platform.cluster.wait_for(PROVISIONING_REQUEST, none, "the request to be deleted", namespace=platform.own("alpha"))
    platform.cluster.wait_for(NODE, none, "the request's nodes to be deleted", labels=REQUEST_LABEL)


def wait_until_deactivated(platform: QueuePlatform, why: str) -> KubeObject:
    """Return the gang's Workload once Kueue has deactivated it with the reason. Its Job is suspended then, and nothing of it is left."""

    def given_up(workload: KubeObject) -> bool:
        evicted = condition(workload, "Evicted")
        return evicted is not None and evicted["reason"] == "DeactivatedDueToAdmissionCheck" and why in evicted["message"]

    workload = platform.wait_for_workload("alpha", "gang", given_up, f"given up because {why!r}")
    assert workload["spec"]["active"] is False
    platform.wait_for_event("alpha", workload["metadata"]["name"], why)

    def suspended(jobs: list[KubeObject]) -> bool:
        return [job["spec"]["suspend"] for job in jobs] == [True] and not jobs[0]["status"].get("active")

    platform.cluster.wait_for(JOB, suspended, "the Job to be suspended", namespace=platform.own("alpha"))
    assert running_pods(platform.cluster.list(POD, platform.own("alpha"))) == []
    return workload


def test_a_queued_job_waits_for_its_request_and_starts_all_pods_together(cluster: Cluster, register: Register) -> None:
    with queued_platform(cluster, register) as platform:
        submit(platform, "accepted", pods=3)
        request = wait_for_request(platform, 1, "Accepted")
        assert request["spec"]["provisioningClassName"] == PROVISIONING_CLASS
        assert request["spec"]["parameters"]["maxRunDurationSeconds"] == "86400"
        assert [each["count"] for each in request["spec"]["podSets"]] == [3]

        waiting = platform.wait_for_workload(
            "alpha", "gang", lambda each: "not enough resources" in the_check(each)["message"], "shown as waiting"
        )
        assert the_check(waiting)["state"] == "Pending"
        assert condition(waiting, "QuotaReserved")
        assert condition(waiting, "Admitted") is None
        assert cluster.list(POD, platform.own("alpha")) == []

        tell(platform, request, Outcome.PROVISIONED)
        pods = wait_for_gang(platform, 3)

        provisioned = wait_for_request(platform, 1, "Provisioned")
        resize_request = provisioned["status"]["provisioningClassDetails"]["ResizeRequestName"]
        nodes = {each["metadata"]["name"] for each in cluster.list(NODE, labels=f"{REQUEST_LABEL}={resize_request}")}
        assert {pod["spec"]["nodeName"] for pod in pods} == nodes, "a node of the request for each pod"
        assert len(nodes) == 3
        for pod in pods:
            assert pod["spec"]["nodeSelector"][REQUEST_LABEL] == resize_request
            annotations = pod["metadata"]["annotations"]
            assert annotations["autoscaling.x-k8s.io/consume-provisioning-request"] == request["metadata"]["name"]
            assert pod["metadata"]["creationTimestamp"] >= condition(provisioned, "Provisioned")["lastTransitionTime"]  # pyrefly: ignore[unsupported-operation] -- it is there
        assert condition(platform.workloads("alpha")["gang"], "Admitted")

        platform.finish("alpha", "gang")
        wait_for_no_request(platform)


@pytest.mark.nightly(
    tested_by="test_a_queued_job_waits_for_its_request_and_starts_all_pods_together, "
    "test_requests_are_of_gkes_queued_class_for_pods_with_gpus_whose_nodes_are_their_own"
)
@pytest.mark.parametrize("outcome,said", [("refused", "does not have enough resources"), ("booking-expired", "no pod used it")])
def test_a_failed_request_is_repeated_and_the_job_runs(outcome: str, said: str, cluster: Cluster, register: Register) -> None:
    with queued_platform(cluster, register) as platform:
        submit(platform, f"{outcome},provisioned")
        pods = wait_for_gang(platform, 2)

        workload = platform.workloads("alpha")["gang"]
        assert the_check(workload)["retryCount"] == 1
        platform.wait_for_event("alpha", workload["metadata"]["name"], said)
        second = wait_for_request(platform, 2, "Provisioned")
        assert {pod["spec"]["nodeSelector"][REQUEST_LABEL] for pod in pods} == {
            second["status"]["provisioningClassDetails"]["ResizeRequestName"]
        }
        platform.finish("alpha", "gang")
        wait_for_no_request(platform)


@pytest.mark.nightly(
    tested_by="test_a_queued_job_waits_for_its_request_and_starts_all_pods_together, test_deactivated_workloads_are_not_deleted"
)
def test_capacity_that_is_revoked_under_a_running_job_suspends_it_with_the_reason(cluster: Cluster, register: Register) -> None:
    with queued_platform(cluster, register) as platform:
        submit(platform, "provisioned")
        wait_for_gang(platform, 2)

        tell(platform, wait_for_request(platform, 1, "Provisioned"), Outcome.CAPACITY_REVOKED)
        wait_until_deactivated(platform, "The run duration of the request has passed")
        # The events of a Job that ran show the same. For one that never ran, only its Workload shows it.
        platform.wait_for_event("alpha", "gang", "The run duration of the request has passed")
