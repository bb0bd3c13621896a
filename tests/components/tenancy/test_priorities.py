"""Priorities and WorkloadPriorities: what they register, and what both refuse."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from tenancy_args import CLASSES, LABELS

from components.tenancy.priorities import Priorities, WorkloadPriorities

Register = Callable[[Callable[[], object]], Any]

CLASS = "kubernetes:scheduling.k8s.io/v1:PriorityClass"
WORKLOAD_CLASS = "kubernetes:kueue.x-k8s.io/v1beta2:WorkloadPriorityClass"


def test_a_class_that_preempts_nothing_waits_for_free_room(register: Register) -> None:
    made = register(lambda: Priorities("priorities", {"classes": CLASSES, "labels": LABELS})).of(CLASS)

    policies = {each["metadata"]["name"]: each["preemptionPolicy"] for each in made}
    assert policies == {"gpu-training": "PreemptLowerPriority", "gpu-best-effort": "Never"}


def test_no_class_is_the_clusters_default(register: Register) -> None:
    made = register(lambda: Priorities("priorities", {"classes": CLASSES, "labels": LABELS})).of(CLASS)

    assert not [each for each in made if "globalDefault" in each]


def test_queued_work_has_the_same_names_and_values_beside_the_metadata_and_in_no_spec(register: Register) -> None:
    made = register(lambda: WorkloadPriorities("work", {"classes": CLASSES, "labels": LABELS})).of(WORKLOAD_CLASS)

    assert made[1] == {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "WorkloadPriorityClass",
        "metadata": {"name": "gpu-training", "labels": LABELS},
        "value": 100_000,
        "description": "Trains.",
    }


@pytest.mark.parametrize("component", [Priorities, WorkloadPriorities])
def test_names_are_told_with_the_highest_first(component: Any, register: Register) -> None:
    found: list[Any] = []

    def declare() -> None:
        component("work", {"classes": CLASSES, "labels": LABELS}).names.apply(found.append)

    made = [name for token, name, _ in register(declare).resources if token.startswith("kubernetes:")]
    assert found == [["gpu-training", "gpu-best-effort"]]
    assert made == ["work-gpu-best-effort", "work-gpu-training"]


@pytest.mark.parametrize("component", [Priorities, WorkloadPriorities])
def test_the_last_value_for_which_nodes_are_made_is_taken(component: Any, register: Register) -> None:
    lowest = {**CLASSES[0], "value": -10}

    made = register(lambda: component("work", {"classes": [lowest], "labels": LABELS})).resources

    assert [inputs["value"] for token, _, inputs in made if token.startswith("kubernetes:")] == [-10]


@pytest.mark.parametrize("component", [Priorities, WorkloadPriorities])
@pytest.mark.parametrize(
    "classes,told",
    [
        ([{**CLASSES[0], "value": -11}], "class gpu-best-effort has value -11; below -10 Cluster Autoscaler makes no node"),
        ([{**CLASSES[0], "value": 1_000_000_001}], "class gpu-best-effort has value 1000000001; Kubernetes keeps what is above"),
        ([{**CLASSES[0], "name": "system-mine"}], "class system-mine has a name of the cluster's own"),
        ([CLASSES[0], CLASSES[0]], "class gpu-best-effort stands twice"),
    ],
)
def test_a_mistake_is_refused_before_anything_is_registered(classes: list[Any], told: str, component: Any, register: Register) -> None:
    def declare() -> None:
        with pytest.raises(ValueError, match=re.escape(f"{component.__name__} work: {told}")):
            component("work", {"classes": classes, "labels": LABELS})

    assert register(declare).resources == []
