"""Work of a class on AWS's own accelerators asks for their devices, and for no GPU."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from plan_settings import local, own_class, plan_of, pool, team
from workload_plans import IMAGE, pod_specs

from capacity.workloads.kinds import objects_of
from capacity.workloads.requests import WorkloadError

if TYPE_CHECKING:
    from capacity.plan.model import Plan

NEURON = "aws.amazon.com/neuron"


@cache
def plan() -> Plan:
    classes = {"neuron": own_class("neuron", checkpoint=True), "chat": own_class("chat", queued=False, run_limit_hours=None)}
    pools = [
        pool("l4", "g6.xlarge", "spot", 4, "training"),
        pool("trn", "trn1.32xlarge", "spot", 2, "neuron"),
        pool("inf", "inf2.xlarge", "spot", 3, "chat"),
    ]
    red = team("red", shares={"l4": 4, "trn": 16}, unqueued={"inf": 2})
    return plan_of(local(*pools, classes=classes, teams=[red]))


def made(kind: str, workload_class: str, **fields: Any) -> list[dict[str, Any]]:
    """The pods' specs of a workload."""
    wanted = {"name": "bert", "team": "red", "workload_class": workload_class, "image": IMAGE, **fields}
    return [spec for each in objects_of(plan(), kind, wanted) for spec in pod_specs(each)]


@pytest.mark.parametrize("kind", ["queued-job", "checkpointed-job"])
def test_a_job_of_a_neuron_class_asks_for_neuron_devices_and_tolerates_their_taint(kind: str) -> None:
    [pod] = made(kind, "neuron", gpus=16)

    resources = pod["containers"][0]["resources"]
    assert (resources["requests"][NEURON], resources["limits"][NEURON]) == ("16", "16")
    assert "nvidia.com/gpu" not in str(pod)
    assert NEURON in {each["key"] for each in pod["tolerations"]}


def test_a_job_of_gpus_beside_it_asks_for_gpus_alone() -> None:
    [pod] = made("queued-job", "training", gpus=1)

    assert pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert "neuron" not in str(pod)


def test_a_service_may_have_as_many_devices_as_its_team_has_without_a_queue_and_no_more() -> None:
    pods = made("model-server", "chat", gpus=1, replicas=2)

    assert {pod["containers"][0]["resources"]["limits"][NEURON] for pod in pods} == {"1"}
    with pytest.raises(WorkloadError, match="team red can have 2 for class chat"):
        made("model-server", "chat", gpus=1, replicas=3)


def test_a_pod_gets_no_more_devices_than_its_machine_has() -> None:
    with pytest.raises(WorkloadError, match=r"is more than a node of class neuron has \(trn has 16\)"):
        made("queued-job", "neuron", gpus=17)
