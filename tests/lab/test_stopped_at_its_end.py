"""A Job that Kueue preempts between the end of its last pod and its own end: Kueue 0.19's reaction, and that of the guarantee.

This moment is less than a second. Here a pod that cannot be deleted makes it long: Kubernetes records the end of a Job when all its pods
are gone. There is another moment before, up to a second long: the pod has ended, and Kubernetes, which counts once a second, has not seen
it.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from admission_fixtures import with_policies
from kubernetes.client.exceptions import ApiException
from queue_fixtures import GUARDS
from queue_objects import admission_objects, pool_node
from workload_fixtures import end, job_of, spot_platform, wait_for_job, wait_for_pods

from flexspot.lab.cluster import POD, condition
from flexspot.lab.exercise.play import JOB, NODE, WORKLOAD, running_pods

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from queue_fixtures import QueuePlatform
    from queue_objects import Register

    from flexspot.lab.cluster import Cluster, KubeObject

pytestmark = [pytest.mark.lab, pytest.mark.waits]

FAKE_NODE = "kwok.x-k8s.io/node"

BY_ONE_POD = {"completionMode": "Indexed", "successPolicy": {"rules": [{"succeededCount": 1}]}}


@pytest.fixture
def platform(cluster: Cluster, register: Register) -> Iterator[QueuePlatform]:
    """Yield two teams that own four GPUs each; one node of four with a kubelet, and one without."""
    with spot_platform(cluster, register, nodes=1, without=GUARDS) as deployed:
        pool = next(each for each in deployed.plan.pools if each.name == deployed.own("l4-spot"))
        silent = pool_node(deployed.plan, pool, f"silent-{deployed.suffix}")
        for each in (silent["metadata"]["labels"], silent["metadata"]["annotations"]):
            del each[FAKE_NODE]
        silent["status"]["conditions"] = [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}]
        try:
            cluster.create(silent)
            yield deployed
        finally:
            # Karpenter would wait for a kubelet to end its pods, and other tests for the end of every node.
            cluster.delete(NODE, silent["metadata"]["name"])


@contextmanager
def ending_job(platform: QueuePlatform) -> Generator[None]:
    """Create a Job of alpha on all eight GPUs, half of them borrowed: one pod has ended, the other cannot be deleted.

    The other pod is on the node without a kubelet. It is deleted on exit.
    """
    namespace = platform.own("alpha")
    job = platform.job("alpha", "borrower", "best-effort", pods=2, gpus=4)
    job["spec"] |= BY_ONE_POD
    platform.cluster.create(job)
    [running] = wait_for_pods(platform, "borrower", 1)

    def placed(pods: list[KubeObject]) -> list[KubeObject] | None:
        others = [each for each in pods if each["metadata"]["uid"] != running["metadata"]["uid"] and each["spec"].get("nodeName")]
        return others or None

    [other] = platform.cluster.wait_for(POD, placed, "a pod on the node without a kubelet", namespace=namespace)
    end(platform, running, 0)
    wait_for_job(platform, "borrower", lambda each: condition(each, "SuccessCriteriaMet"), "decided")
    try:
        yield
    finally:
        platform.cluster._resource(POD).delete(name=other["metadata"]["name"], namespace=namespace, body={"gracePeriodSeconds": 0})  # noqa: SLF001 -- `delete` has no grace


def wait_for_preemption(platform: QueuePlatform) -> None:
    """Request the half of the Job's GPUs that still counts, by work of beta and by work of alpha with a higher priority.

    Return once the Job is preempted.
    """
    platform.submit("beta", "owner", gpus=4)
    platform.submit("alpha", "urgent", gpus=4)
    platform.wait_for_workload("alpha", "borrower", lambda each: condition(each, "Preempted"), "preempted")


@pytest.mark.nightly(tested_by="test_with_the_guarantee_it_ends_first_and_frees_its_gpus")
def test_without_the_guarantee_kueue_suspends_the_job_forever_with_its_quota(platform: QueuePlatform) -> None:
    """When this fails, Kueue or Kubernetes has fixed it: flexspot-guarantee-ending is no longer needed."""
    with ending_job(platform):
        wait_for_preemption(platform)
        stopped = wait_for_job(
            platform, "borrower", lambda each: each["spec"].get("suspend") and "startTime" not in each["status"], "suspended"
        )

    assert condition(stopped, "SuccessCriteriaMet")
    platform.cluster.wait_for(POD, lambda pods: not running_pods(pods), "the end of the pods", namespace=platform.own("alpha"))
    ended = {"type": "Complete", "status": "True", "reason": "CompletionsReached"}
    conditions = [*job_of(platform, "borrower")["status"]["conditions"], ended]
    with pytest.raises(ApiException, match="startTime is required for finished job"):
        platform.cluster.patch(JOB, "borrower", {"status": {"conditions": conditions}}, platform.own("alpha"), subresource="status")


def test_with_the_guarantee_it_ends_first_and_frees_its_gpus(platform: QueuePlatform, cluster: Cluster, register: Register) -> None:
    with with_policies(cluster, admission_objects(platform.plan, register), platform.own("alpha")):
        with ending_job(platform):
            wait_for_preemption(platform)
            assert not job_of(platform, "borrower")["spec"].get("suspend")

        platform.wait_for_completion("alpha", "borrower")
        for team, job in (("beta", "owner"), ("alpha", "urgent")):
            platform.wait_for_workload(team, job, lambda each: condition(each, "Admitted"), "admitted")


@pytest.mark.nightly(tested_by="test_a_job_keeps_its_start_time_until_kubernetes_has_counted_its_ended_pods")
def test_with_the_guarantee_a_job_ends_that_is_stopped_before_its_ended_pod_is_counted(cluster: Cluster, register: Register) -> None:
    """Without it about one of four keeps its GPUs forever, with SuccessCriteriaMet and without the start time that Complete needs."""
    with (
        spot_platform(cluster, register, nodes=1, without=GUARDS) as platform,
        with_policies(cluster, admission_objects(platform.plan, register), platform.own("alpha")),
    ):
        for attempt in range(4):
            jobs = [f"ending-{attempt}-{number}" for number in range(4)]
            for job in jobs:
                platform.submit("alpha", job, gpus=1)
            workloads = {
                job: platform.wait_for_workload("alpha", job, lambda each: condition(each, "Admitted"), "admitted") for job in jobs
            }
            running = {job: wait_for_pods(platform, job, 1)[0] for job in jobs}
            for job in jobs:
                end(platform, running[job], 0)
                cluster.patch(WORKLOAD, workloads[job]["metadata"]["name"], {"spec": {"active": False}}, platform.own("alpha"))
            platform.wait_for_completion("alpha", *jobs)
