"""GpuNodePool: a Karpenter NodePool with taints, labels and a ceiling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from components.karpenter.gpu_node_pool import GpuNodePool, GpuNodePoolArgs

NODE_POOL = "kubernetes:karpenter.sh/v1:NodePool"

Register = Callable[[Callable[[], object]], Any]


def args(**changes: Any) -> GpuNodePoolArgs:
    arguments: GpuNodePoolArgs = {
        "pool": "l4-spot",
        "machines": ["g6.xlarge"],
        "capacity_types": ["spot"],
        "node_labels": {"karpenter.sh/capacity-type": "spot", "karpenter.k8s.aws/instance-gpu-name": "l4"},
        "labels": {"flexspot.dev/owner": "ann"},
        "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}],
        "max_gpus": 4,
        "max_nodes": 4,
        "node_class": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "lab"},
    }
    arguments.update(changes)  # pyright: ignore[reportCallIssue, reportArgumentType] -- what is wrong on purpose, too
    return arguments


def test_a_pool_has_its_ceiling_its_taints_and_labels_that_are_known_before_boot(register: Register) -> None:
    [pool] = register(lambda: GpuNodePool("l4-spot", args())).of(NODE_POOL)

    spec = pool["spec"]
    assert spec["limits"] == {"nvidia.com/gpu": "4", "nodes": "4"}
    assert spec["template"]["spec"]["taints"] == [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
    requirements = {each["key"]: each["values"] for each in spec["template"]["spec"]["requirements"]}
    assert requirements == {
        "karpenter.sh/capacity-type": ["spot"],
        "node.kubernetes.io/instance-type": ["g6.xlarge"],
        "karpenter.k8s.aws/instance-gpu-name": ["l4"],
    }
    assert pool["metadata"] == {"name": "l4-spot", "labels": {"flexspot.dev/owner": "ann"}}


def test_running_work_is_not_disturbed_by_expiry_drift_or_consolidation(register: Register) -> None:
    [pool] = register(lambda: GpuNodePool("l4-spot", args())).of(NODE_POOL)

    assert pool["spec"]["template"]["spec"]["expireAfter"] == "Never"
    assert pool["spec"]["disruption"]["consolidationPolicy"] == "WhenEmpty"
    assert {"nodes": "0", "reasons": ["Drifted", "Underutilized"]} in pool["spec"]["disruption"]["budgets"]


def test_the_component_itself_carries_what_policies_need_even_when_its_children_are_unknown(register: Register) -> None:
    [component] = register(lambda: GpuNodePool("l4-spot", args())).of("flexspot:index:GpuNodePool")

    assert component["max_gpus"] == 4
    assert component["taints"][0]["key"] == "nvidia.com/gpu"


@pytest.mark.parametrize(
    "change,problem",
    [
        ({"max_gpus": 0}, "gpu-pool-without-limit: GpuNodePool l4-spot has max_gpus=0, max_nodes=4; a GPU pool has a ceiling"),
        ({"max_nodes": 0}, "max_gpus=4, max_nodes=0; a GPU pool has a ceiling"),
        ({"machines": []}, "machines is empty; name at least one instance type"),
        ({"taints": []}, "gpu-pool-without-taint: GpuNodePool l4-spot has taints on none; add one on nvidia.com/gpu"),
        ({"taints": [{"key": "team", "value": "x", "effect": "NoSchedule"}]}, "has taints on team; add one on nvidia.com/gpu"),
    ],
)
def test_what_cannot_be_safe_is_refused_before_anything_is_registered(change: dict[str, Any], problem: str, register: Register) -> None:
    refused: list[str] = []

    def declare() -> None:
        with pytest.raises(ValueError, match="GpuNodePool l4-spot") as error:
            GpuNodePool("l4-spot", args(**change))
        refused.append(str(error.value))

    registered = register(declare)

    assert problem in refused[0]
    assert registered.resources == []
