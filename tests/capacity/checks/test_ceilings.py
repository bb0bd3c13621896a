"""Ceilings of a pool that contradict one another."""

from __future__ import annotations

from typing import Any

from resolved_fixtures import told
from settings_documents import LEFT_OUT

from capacity.plan.checks.pool_options import (
    the_floor_is_below_the_ceiling,
    vcpu_and_memory_leave_the_gpus_in_reach,
)

A100: dict[str, Any] = {"pools.0.machine": "p4d.24xlarge", "pools.0.max_nodes": LEFT_OUT}
"""Eight GPUs a node, 96 vCPU, 1152 GiB."""


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


def test_a_ceiling_in_gpus_is_of_no_more_nodes_than_one_in_nodes_can_be() -> None:
    assert told(the_floor_is_below_the_ceiling, "eks", A100 | {"pools.0.max_gpus": 5001 * 8}) == [
        "refused: ceiling-above-any-cluster at pools.0.max_gpus"
    ]
    assert told(the_floor_is_below_the_ceiling, "eks", A100 | {"pools.0.max_gpus": 5000 * 8}) == []
