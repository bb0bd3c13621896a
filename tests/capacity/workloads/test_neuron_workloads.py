"""Work of a class on AWS's own accelerators asks for their devices, and for no GPU."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from workload_plans import IMAGE, pod_specs

from capacity.plan.build import build_plan
from capacity.settings.stack_file import parse_settings
from capacity.workloads.kinds import objects_of
from capacity.workloads.requests import WorkloadError

if TYPE_CHECKING:
    from capacity.plan.model import Plan

NEURON = "aws.amazon.com/neuron"
CLASS = """
description: Training on Trainium.
priority_class: own-neuron
priority: 500
preempts: false
queued: true
fallback: quota
capacity: [spot]
disruption: {remove: empty, idle_seconds: 120}
run_limit_hours: 10
grace_seconds: 60
checkpoint: true
disruption_budget: false
"""


@cache
def plan() -> Plan:
    training: dict[str, Any] = yaml.safe_load(CLASS)
    serving = training | {"priority_class": "own-chat", "queued": False, "run_limit_hours": None}
    settings = {
        "cloud": "local",
        "environment": "test",
        "owner": "ann",
        "classes": {"neuron": training, "chat": serving},
        "pools": [
            {"name": "l4", "machine": "g6.xlarge", "capacity_type": "spot", "max_nodes": 4, "serves": ["training"]},
            {"name": "trn", "machine": "trn1.32xlarge", "capacity_type": "spot", "max_nodes": 2, "serves": ["neuron"]},
            {"name": "inf", "machine": "inf2.xlarge", "capacity_type": "spot", "max_nodes": 3, "serves": ["chat"]},
        ],
        "teams": [{"name": "red", "shares": {"l4": 4, "trn": 16}, "unqueued": {"inf": 2}}],
    }
    return build_plan(parse_settings(settings, "test"))


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
