"""Workloads on TPUs and on AWS's own accelerators: they request these devices, whole hosts and slices of TPUs, and no GPU."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from plan_settings import gke, local, own_class, plan_of, pool, team
from workload_plans import IMAGE, pod_specs

from flexspot.capacity.workloads.kinds import objects_of
from flexspot.capacity.workloads.requests import WorkloadError

if TYPE_CHECKING:
    from flexspot.capacity.plan.model import Plan


TPU = "google.com/tpu"


@cache
def plan(slice_capacity: str = "spot") -> Plan:
    zone = {"zones": ["us-central1-a"]}
    pools = [
        pool("slice", "ct5lp-hightpu-4t", slice_capacity, 4, "jax", tpu_topology="4x4", **zone),
        pool("hosts", "ct5lp-hightpu-4t", "spot", 2, "tune", **zone),
        pool("serving", "ct6e-standard-8t", "spot", 2, "answers", **zone),
    ]
    classes = {
        "jax": own_class("jax", checkpoint=True, capacity=[slice_capacity]),
        "tune": own_class("tune"),
        "answers": own_class("answers", queued=False, run_limit_hours=None),
    }
    red = team("red", shares={"slice": 16, "hosts": 8}, unqueued={"serving": 16})
    return plan_of(gke(*pools, classes=classes, teams=[red]))


def made(kind: str, workload_class: str, of: Plan | None = None, **fields: Any) -> list[dict[str, Any]]:
    wanted = {"name": "gemma", "team": "red", "workload_class": workload_class, "image": IMAGE, **fields}
    return list(objects_of(of or plan(), kind, wanted))


@pytest.mark.parametrize("capacity", ["spot", "flex-start"])
@pytest.mark.parametrize("kind", ["checkpointed-job", "flex-start-job"])
def test_a_job_of_a_slice_is_one_pod_a_host_that_takes_all_its_chips(kind: str, capacity: str) -> None:
    if (kind, capacity) == ("flex-start-job", "spot"):
        with pytest.raises(WorkloadError, match="has no queued capacity"):
            made(kind, "jax", plan(capacity), pods=4, gpus=4)
        return
    [job] = made(kind, "jax", plan(capacity), pods=4, gpus=4)

    # GKE's webhook sets TPU_WORKER_ID and TPU_WORKER_HOSTNAMES from these ("Deploy TPU workloads in GKE Standard", read 2026-11-26).
    assert (job["spec"]["completionMode"], job["spec"]["completions"], job["spec"]["parallelism"]) == ("Indexed", 4, 4)
    [pod] = pod_specs(job)
    assert pod["subdomain"]
    resources = pod["containers"][0]["resources"]
    assert (resources["requests"][TPU], resources["limits"][TPU]) == ("4", "4")
    assert "nvidia.com" not in str(pod)
    assert TPU in {each["key"] for each in pod["tolerations"]}


@pytest.mark.parametrize("pods", [1, 2, 3, 5, 8])
def test_a_job_of_a_part_of_a_slice_or_of_more_than_one_is_refused(pods: int) -> None:
    with pytest.raises(WorkloadError, match=r"is not a whole slice of class jax \(slice has 4\).*request 4 pods"):
        made("checkpointed-job", "jax", pods=pods, gpus=4)


@pytest.mark.parametrize("gpus", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("workload_class,kind", [("jax", "checkpointed-job"), ("tune", "queued-job")])
def test_a_pod_of_a_part_of_a_host_is_refused(kind: str, workload_class: str, gpus: int) -> None:
    with pytest.raises(WorkloadError, match=r"has 4 to use as a whole\), and a pod runs on one node; request 4 per pod"):
        made(kind, workload_class, pods=4, gpus=gpus)


def test_a_batch_on_single_hosts_is_pods_that_each_take_one() -> None:
    jobs = made("queued-job", "tune", pods=3, gpus=4)

    assert [pod["containers"][0]["resources"]["limits"][TPU] for job in jobs for pod in pod_specs(job)] == ["4"] * 3


def test_a_service_takes_whole_hosts_and_no_more_than_its_team_has() -> None:
    pods = [spec for each in made("model-server", "answers", gpus=8, replicas=2) for spec in pod_specs(each)]

    assert {pod["containers"][0]["resources"]["limits"][TPU] for pod in pods} == {"8"}
    with pytest.raises(WorkloadError, match="team red can use 16 for class answers"):
        made("model-server", "answers", gpus=8, replicas=3)


NEURON = "aws.amazon.com/neuron"


@cache
def neuron_plan() -> Plan:
    classes = {"neuron": own_class("neuron", checkpoint=True), "chat": own_class("chat", queued=False, run_limit_hours=None)}
    pools = [
        pool("l4", "g6.xlarge", "spot", 4, "training"),
        pool("trn", "trn1.32xlarge", "spot", 2, "neuron"),
        pool("inf", "inf2.xlarge", "spot", 3, "chat"),
    ]
    red = team("red", shares={"l4": 4, "trn": 16}, unqueued={"inf": 2})
    return plan_of(local(*pools, classes=classes, teams=[red]))


def made_of_neuron(kind: str, workload_class: str, **fields: Any) -> list[dict[str, Any]]:
    """Return the pods' specs of a workload."""
    wanted = {"name": "bert", "team": "red", "workload_class": workload_class, "image": IMAGE, **fields}
    return [spec for each in objects_of(neuron_plan(), kind, wanted) for spec in pod_specs(each)]


@pytest.mark.parametrize("kind", ["queued-job", "checkpointed-job"])
def test_a_job_of_a_neuron_class_asks_for_neuron_devices_and_tolerates_their_taint(kind: str) -> None:
    [pod] = made_of_neuron(kind, "neuron", gpus=16)

    resources = pod["containers"][0]["resources"]
    assert (resources["requests"][NEURON], resources["limits"][NEURON]) == ("16", "16")
    assert "nvidia.com/gpu" not in str(pod)
    assert NEURON in {each["key"] for each in pod["tolerations"]}


def test_a_gpu_job_in_a_stack_with_neuron_devices_requests_only_gpus() -> None:
    [pod] = made_of_neuron("queued-job", "training", gpus=1)

    assert pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert "neuron" not in str(pod)


def test_a_service_may_have_as_many_devices_as_its_team_has_without_a_queue_and_no_more() -> None:
    pods = made_of_neuron("model-server", "chat", gpus=1, replicas=2)

    assert {pod["containers"][0]["resources"]["limits"][NEURON] for pod in pods} == {"1"}
    with pytest.raises(WorkloadError, match="team red can use 2 for class chat"):
        made_of_neuron("model-server", "chat", gpus=1, replicas=3)


def test_a_pod_gets_no_more_devices_than_its_machine_has() -> None:
    with pytest.raises(WorkloadError, match=r"does not fit a node of class neuron \(trn has 16\)"):
        made_of_neuron("queued-job", "neuron", gpus=17)
