"""Ceilings of a pool that contradict one another."""

from __future__ import annotations

from typing import Any

import pytest
from resolved_fixtures import told
from settings_documents import LEFT_OUT

from capacity.plan.checks.pool_options import (
    gpu_ceilings_are_whole_nodes,
    node_and_gpu_ceilings_agree,
    the_floor_is_below_the_ceiling,
    vcpu_and_memory_leave_the_gpus_in_reach,
)

A100: dict[str, Any] = {"pools.0.machine": "p4d.24xlarge", "pools.0.max_nodes": LEFT_OUT}
"""Eight GPUs a node, 96 vCPU, 1152 GiB."""


def test_a_gpu_ceiling_is_of_whole_nodes() -> None:
    assert told(gpu_ceilings_are_whole_nodes, "eks", A100 | {"pools.0.max_gpus": 12}) == [
        "refused: gpu-limit-not-a-multiple at pools.0.max_gpus"
    ]
    assert told(gpu_ceilings_are_whole_nodes, "eks", A100 | {"pools.0.max_gpus": 16}) == []
    assert told(gpu_ceilings_are_whole_nodes, "eks") == [], "a ceiling in nodes is always of whole nodes"


def test_a_ceiling_in_nodes_and_one_in_gpus_say_the_same() -> None:
    both: dict[str, Any] = {"pools.0.machine": "p4d.24xlarge", "pools.0.max_nodes": 4}

    assert told(node_and_gpu_ceilings_agree, "eks", both | {"pools.0.max_gpus": 64}) == ["refused: ceilings-disagree at pools.0.max_gpus"]
    assert told(node_and_gpu_ceilings_agree, "eks", both | {"pools.0.max_gpus": 32}) == []
    assert told(node_and_gpu_ceilings_agree, "eks", both) == []


def test_vcpu_and_memory_do_not_end_a_pool_before_its_gpus_do() -> None:
    gpus = A100 | {"pools.0.max_gpus": 16}

    for cap, least in {"max_vcpu": 2 * 96, "max_memory_gib": 2 * 1152}.items():
        assert told(vcpu_and_memory_leave_the_gpus_in_reach, "eks", gpus | {f"pools.0.{cap}": least - 1}) == [
            "refused: gpu-limit-unreachable at pools.0"
        ]
        assert told(vcpu_and_memory_leave_the_gpus_in_reach, "eks", gpus | {f"pools.0.{cap}": least}) == []


def test_the_vcpu_ceiling_counts_for_every_machine_of_a_pool() -> None:
    larger: dict[str, Any] = {"pools.0.alternatives": ["g6.2xlarge"], "pools.0.max_vcpu": 4 * 4}

    assert told(vcpu_and_memory_leave_the_gpus_in_reach, "eks", larger) == ["refused: gpu-limit-unreachable at pools.0"]
    assert told(vcpu_and_memory_leave_the_gpus_in_reach, "eks", larger | {"pools.0.max_vcpu": 4 * 8}) == []


def test_the_nodes_that_are_kept_are_no_more_than_the_ceiling() -> None:
    assert told(the_floor_is_below_the_ceiling, "gke", {"pools.0.min_nodes": 5}) == ["refused: floor-above-ceiling at pools.0.min_nodes"]
    assert told(the_floor_is_below_the_ceiling, "gke", {"pools.0.min_nodes": 4}) == []


@pytest.mark.parametrize("cloud", ["local", "eks"])
def test_karpenter_keeps_no_nodes(cloud: str) -> None:
    assert told(the_floor_is_below_the_ceiling, cloud, {"pools.0.min_nodes": 1}) == ["refused: floor-without-effect at pools.0.min_nodes"]
    assert told(the_floor_is_below_the_ceiling, cloud) == []


def test_a_ceiling_has_room_for_one_node() -> None:
    assert told(gpu_ceilings_are_whole_nodes, "eks", A100 | {"pools.0.max_gpus": 4}) == [
        "refused: gpu-limit-not-a-multiple at pools.0.max_gpus"
    ]
    assert told(gpu_ceilings_are_whole_nodes, "eks", A100 | {"pools.0.max_gpus": 8}) == []


def test_a_ceiling_in_gpus_is_of_no_more_nodes_than_one_in_nodes_can_be() -> None:
    assert told(the_floor_is_below_the_ceiling, "eks", A100 | {"pools.0.max_gpus": 5001 * 8}) == [
        "refused: ceiling-above-any-cluster at pools.0.max_gpus"
    ]
    assert told(the_floor_is_below_the_ceiling, "eks", A100 | {"pools.0.max_gpus": 5000 * 8}) == []
