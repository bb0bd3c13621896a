"""A Karpenter and a GPU operator of somebody else's: what is taken, and that a plan installs none of its own beside them."""

from __future__ import annotations

from typing import Any

import pytest
from resolved_fixtures import CLASS, plan_of, pool, told

from capacity.plan.checks.existing_parts import a_gpu_operator_is_where_it_works, another_karpenter_is_on_its_own_cluster
from capacity.plan.checks.versions import karpenter_works_with_the_version

THEIRS: dict[str, Any] = {"cluster.existing": "ml", "cluster.existing_karpenter": {"node_role": "KarpenterNodeRole-ml"}}
OPERATOR: dict[str, Any] = {"cluster.existing_gpu_operator": True}


def test_a_cluster_with_both_of_its_own_is_taken_without_a_word_and_neither_is_installed() -> None:
    plan = plan_of("eks", THEIRS | OPERATOR)

    assert plan.warnings == ()
    assert plan.versions.charts.keys() == {"kueue"}
    assert plan_of("eks", {"cluster.existing": "ml"}).versions.charts.keys() == {
        "kueue",
        "karpenter",
        "nvidia-device-plugin",
        "dcgm-exporter",
    }


def test_a_gpu_operator_may_come_to_a_cluster_that_the_stack_makes() -> None:
    assert told(a_gpu_operator_is_where_it_works, "eks", OPERATOR) == []
    assert plan_of("eks", OPERATOR).versions.charts.keys() == {"kueue", "karpenter"}


@pytest.mark.parametrize("change", [{"cluster.node_repair": True}, {"cluster.nodes": {"kubelet": {"max_pods": 50}}}])
def test_what_is_of_node_classes_and_not_of_the_controller_stays_ours(change: dict[str, Any]) -> None:
    assert told(another_karpenter_is_on_its_own_cluster, "eks", THEIRS | change) == []


def test_the_version_of_somebody_elses_karpenter_is_not_judged_by_the_one_that_would_be_installed() -> None:
    assert told(karpenter_works_with_the_version, "eks", THEIRS | {"cluster.version": "1.25"}) == []


def test_a_gpu_operator_without_a_gpu_of_nvidias_is_warned_of() -> None:
    neuron = {
        "pools": [pool("trn", "trn1.32xlarge", "spot", "neuron")],
        "classes": {"neuron": {**CLASS, "priority_class": "neuron", "priority": 7}},
        "teams": [{"name": "red", "shares": {"trn": 16}}],
    }

    assert told(a_gpu_operator_is_where_it_works, "eks", OPERATOR | neuron) == [
        "warned: gpu-operator-not-used at cluster.existing_gpu_operator"
    ]
