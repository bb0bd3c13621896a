"""A Job that Kueue preempts between the end of its last pod and its own: what Kueue 0.19 makes of it, and what the guarantee does about it.

That moment is a part of a second. Here a pod with a finalizer makes it long: Kubernetes writes the end of a Job when all its pods are gone.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from admission_ground import holding
from kubernetes.client.exceptions import ApiException
from queue_objects import admission_objects
from workload_ground import end, job_of, spot_platform, wait_for_job, wait_for_pods

from lab.cluster import POD, condition
from lab.exercise.play import JOB, running_pods

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from queue_fixtures import QueueGround
    from queue_objects import Register

    from lab.cluster import Cluster, KubeObject

pytestmark = [pytest.mark.lab, pytest.mark.waits]

HELD = "flexspot.dev/held-by-a-test"
BY_THE_FIRST_POD = {"completionMode": "Indexed", "successPolicy": {"rules": [{"succeededIndexes": "0", "succeededCount": 1}]}}


@pytest.fixture
def ground(cluster: Cluster, register: Register) -> Iterator[QueueGround]:
    """One node of four GPUs, two for each team."""
    with spot_platform(cluster, register, nodes=1) as made:
        yield made


@contextmanager
def ending_job(ground: QueueGround) -> Generator[None]:
    """Alpha has borrowed all eight GPUs, on two nodes, for a Job that its first pod has ended, while the second pod is on its way out.

    Leaving, the second pod goes.
    """
    ground.add_nodes("l4-spot", 1)
    job = ground.job("alpha", "borrower", "best-effort", pods=2, gpus=4)
    job["spec"] |= BY_THE_FIRST_POD
    ground.cluster.create(job)
    first, second = sorted(wait_for_pods(ground, "borrower", 2), key=index)
    finalizers = second["metadata"].get("finalizers", [])
    _write_finalizers(ground, second, [*finalizers, HELD])
    end(ground, first, 0)
    wait_for_job(ground, "borrower", lambda each: condition(each, "SuccessCriteriaMet"), "decided")
    try:
        yield
    finally:
        _write_finalizers(ground, second, [])


def index(pod: KubeObject) -> str:
    return str(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"])


def _write_finalizers(ground: QueueGround, pod: KubeObject, finalizers: list[str]) -> None:
    ground.cluster.patch(POD, pod["metadata"]["name"], {"metadata": {"finalizers": finalizers}}, pod["metadata"]["namespace"])


def wait_for_preemption(ground: QueueGround) -> None:
    ground.submit("beta", "owner", gpus=4)
    ground.wait_for_workload("alpha", "borrower", lambda each: condition(each, "Preempted"), "preempted")


def test_kueue_alone_suspends_such_a_job_which_can_end_no_more_and_keeps_its_quota(ground: QueueGround) -> None:
    """When this fails, Kueue or Kubernetes has mended it: flexspot-guarantee-ending has no more use."""
    with ending_job(ground):
        wait_for_preemption(ground)
        stopped = wait_for_job(
            ground, "borrower", lambda each: each["spec"].get("suspend") and "startTime" not in each["status"], "suspended"
        )

    assert condition(stopped, "SuccessCriteriaMet")
    ground.cluster.wait_for(POD, lambda pods: not running_pods(pods), "the end of the pods", namespace=ground.own("alpha"))
    ended = {"type": "Complete", "status": "True", "reason": "CompletionsReached"}
    conditions = [*job_of(ground, "borrower")["status"]["conditions"], ended]
    with pytest.raises(ApiException, match="startTime is required for finished job"):
        ground.cluster.patch(JOB, "borrower", {"status": {"conditions": conditions}}, ground.own("alpha"), subresource="status")


def test_with_the_guarantee_it_ends_first_and_the_owner_has_the_gpus(ground: QueueGround, cluster: Cluster, register: Register) -> None:
    with holding(cluster, admission_objects(ground.plan, register), ground.own("alpha")):
        with ending_job(ground):
            wait_for_preemption(ground)
            assert not job_of(ground, "borrower")["spec"].get("suspend")

        ground.wait_for_completion("alpha", "borrower")
        ground.wait_for_running("beta", "owner")
