"""The fake nodes' pods end as a kubelet would end them; the decisions of Jobs depend on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from provider_driver import fake_node, pod_spec

from flexspot.lab.cluster import POD, condition
from flexspot.lab.exercise.play import JOB, UNTIL_RELEASED, run_time_of_pods, running_pods

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.lab.cluster import Cluster, KubeObject

pytestmark = pytest.mark.lab

TERMINATE = "pod-terminate.stage.kwok.x-k8s.io/"
UNTIL_KILLED = run_time_of_pods(UNTIL_RELEASED)


@pytest.fixture
def node(cluster: Cluster, namespace: str) -> Iterator[str]:
    with fake_node(cluster, f"node-{namespace}") as name:
        yield name


def job_on(node: str, namespace: str, annotations: dict[str, str]) -> KubeObject:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "trainer", "namespace": namespace},
        "spec": {
            "backoffLimit": 0,
            "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]},
            "template": {
                "metadata": {"annotations": UNTIL_KILLED | annotations},
                "spec": {"restartPolicy": "Never", **pod_spec(node)},
            },
        },
    }


def test_an_evicted_pod_fails_and_its_job_replaces_it_without_counting_a_failure(cluster: Cluster, namespace: str, node: str) -> None:
    cluster.create(job_on(node, namespace, {}))
    [first] = cluster.wait_for(POD, running_pods, "the trainer's first pod", namespace=namespace)

    cluster.evict(first["metadata"]["name"], namespace)

    def replaced(pods: list[KubeObject]) -> bool:
        return any(pod["metadata"]["uid"] != first["metadata"]["uid"] for pod in running_pods(pods))

    cluster.wait_for(POD, replaced, "a replacement of the evicted pod", namespace=namespace)
    job = cluster.get(JOB, "trainer", namespace)
    assert job is not None
    assert job["status"].get("failed", 0) == 0, "backoffLimit 0 would have ended the Job at the first counted failure"


def test_an_evicted_pod_that_exits_with_zero_completes_its_job_with_the_work_unfinished(
    cluster: Cluster, namespace: str, node: str
) -> None:
    # The trap in the course's advice to exit with 0 on SIGTERM. Kept here so that the lab shows it as a real cluster does.
    cluster.create(job_on(node, namespace, {f"{TERMINATE}exit-code": "0"}))
    [first] = cluster.wait_for(POD, running_pods, "the trainer's first pod", namespace=namespace)

    cluster.evict(first["metadata"]["name"], namespace)

    cluster.wait_for(JOB, lambda jobs: any(condition(job, "Complete") for job in jobs), "the wrong completion", namespace=namespace)
