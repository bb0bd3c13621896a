"""Work on TPUs asks for whole hosts and whole slices, as GKE schedules them, and is refused anything that would wait for ever."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from plan_settings import gke, own_class, plan_of, pool, team
from workload_plans import IMAGE, pod_specs

from capacity.workloads.kinds import objects_of
from capacity.workloads.requests import WorkloadError

if TYPE_CHECKING:
    from capacity.plan.model import Plan

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

    # What GKE's webhook makes TPU_WORKER_ID and TPU_WORKER_HOSTNAMES of ("Deploy TPU workloads in GKE Standard", read 2026-11-26).
    assert (job["spec"]["completionMode"], job["spec"]["completions"], job["spec"]["parallelism"]) == ("Indexed", 4, 4)
    [pod] = pod_specs(job)
    assert pod["subdomain"]
    resources = pod["containers"][0]["resources"]
    assert (resources["requests"][TPU], resources["limits"][TPU]) == ("4", "4")
    assert "nvidia.com" not in str(pod)
    assert TPU in {each["key"] for each in pod["tolerations"]}


@pytest.mark.parametrize("pods", [1, 2, 3, 5, 8])
def test_a_job_of_a_part_of_a_slice_or_of_more_than_one_is_refused(pods: int) -> None:
    with pytest.raises(WorkloadError, match=r"are not all nodes of a slice of class jax \(slice has 4\).*ask for 4 pods"):
        made("checkpointed-job", "jax", pods=pods, gpus=4)


@pytest.mark.parametrize("gpus", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("workload_class,kind", [("jax", "checkpointed-job"), ("tune", "queued-job")])
def test_a_pod_of_a_part_of_a_host_is_refused(kind: str, workload_class: str, gpus: int) -> None:
    with pytest.raises(WorkloadError, match=r"has 4\), and a pod takes all TPU chips of its node.*ask for 4 a pod"):
        made(kind, workload_class, pods=4, gpus=gpus)


def test_a_batch_on_single_hosts_is_pods_that_each_take_one() -> None:
    jobs = made("queued-job", "tune", pods=3, gpus=4)

    assert [pod["containers"][0]["resources"]["limits"][TPU] for job in jobs for pod in pod_specs(job)] == ["4"] * 3


def test_a_service_takes_whole_hosts_and_no_more_than_its_team_has() -> None:
    pods = [spec for each in made("model-server", "answers", gpus=8, replicas=2) for spec in pod_specs(each)]

    assert {pod["containers"][0]["resources"]["limits"][TPU] for pod in pods} == {"8"}
    with pytest.raises(WorkloadError, match="team red can have 16 for class answers"):
        made("model-server", "answers", gpus=8, replicas=3)
