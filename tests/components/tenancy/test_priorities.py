"""Priorities and WorkloadPriorities: their resources, and invalid arguments of both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tenancy_args import CLASSES, LABELS

from flexspot.components.tenancy.priorities import Priorities, WorkloadPriorities

if TYPE_CHECKING:
    from component_types import Outputs, Refusal, Register

CLASS = "kubernetes:scheduling.k8s.io/v1:PriorityClass"
WORKLOAD_CLASS = "kubernetes:kueue.x-k8s.io/v1beta2:WorkloadPriorityClass"


def test_a_class_that_preempts_nothing_waits_for_free_capacity(register: Register) -> None:
    made = register(lambda: Priorities("priorities", {"classes": CLASSES, "labels": LABELS})).of(CLASS)

    policies = {each["metadata"]["name"]: each["preemptionPolicy"] for each in made}
    assert policies == {"gpu-training": "PreemptLowerPriority", "gpu-best-effort": "Never"}
    assert not [each for each in made if "globalDefault" in each], "what names no class is no GPU work"


def test_queued_work_has_the_same_names_and_values_next_to_the_metadata_and_in_no_spec(register: Register) -> None:
    made = register(lambda: WorkloadPriorities("work", {"classes": CLASSES, "labels": LABELS})).of(WORKLOAD_CLASS)

    assert made[1] == {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "WorkloadPriorityClass",
        "metadata": {"name": "gpu-training", "labels": LABELS},
        "value": 100_000,
        "description": "Trains.",
    }


@pytest.mark.parametrize("component", [Priorities, WorkloadPriorities])
def test_names_are_listed_with_the_highest_first(component: Any, outputs: Outputs) -> None:
    found = outputs(lambda: component("work", {"classes": CLASSES, "labels": LABELS}))

    assert found == {"names": ["gpu-training", "gpu-best-effort"]}


@pytest.mark.parametrize("component", [Priorities, WorkloadPriorities])
def test_the_lowest_value_for_which_nodes_are_created_is_accepted(component: Any, register: Register) -> None:
    lowest = {**CLASSES[0], "value": -10}

    made = register(lambda: component("work", {"classes": [lowest], "labels": LABELS})).resources

    assert [inputs["value"] for token, _, inputs in made if token.startswith("kubernetes:")] == [-10]


@pytest.mark.parametrize("component", [Priorities, WorkloadPriorities])
@pytest.mark.parametrize(
    "classes,problem",
    [
        ([{**CLASSES[0], "value": -11}], "classes.gpu-best-effort.value (is -11): Cluster Autoscaler creates no nodes for pods below -10"),
        ([{**CLASSES[0], "value": 1_000_000_001}], "classes.gpu-best-effort.value (is 1000000001): Kubernetes reserves values above"),
        ([{**CLASSES[0], "name": "system-mine"}], "classes.system-mine: has a reserved name"),
        ([CLASSES[0], CLASSES[0]], "classes.gpu-best-effort: is listed twice"),
    ],
)
def test_a_mistake_is_refused_before_anything_is_registered(classes: list[Any], problem: str, component: Any, refusal: Refusal) -> None:
    assert problem in refusal(component, "work", {"classes": classes, "labels": LABELS})
