"""What each capacity type asks of a pool, and what it must not be combined with."""

from __future__ import annotations

from typing import Any

import pytest
from resolved_fixtures import told

from capacity.plan.checks.pool_options import (
    a_capacity_block_is_in_one_zone,
    work_fits_into_the_run_time,
)


@pytest.mark.parametrize("zones", [[], ["us-east-1a", "us-east-1b"]])
def test_a_capacity_block_is_in_one_zone(zones: list[str]) -> None:
    block: dict[str, Any] = {"pools.0.capacity_type": "reserved", "pools.0.reservation": {"kind": "capacity-block", "ids": ["cr-0a1b2c3d"]}}

    assert told(a_capacity_block_is_in_one_zone, "eks", block | {"pools.0.zones": zones}) == [
        "refused: capacity-block-without-zone at pools.0.zones"
    ]
    assert told(a_capacity_block_is_in_one_zone, "eks", block | {"pools.0.zones": ["us-east-1b"]}) == []
    odcr = block | {"pools.0.zones": zones, "pools.0.reservation": {"kind": "on-demand", "ids": ["cr-0a1b2c3d"]}}
    assert told(a_capacity_block_is_in_one_zone, "eks", odcr) == []


def test_a_node_does_not_end_before_work_that_cannot_go_on_elsewhere() -> None:
    half_a_day: dict[str, Any] = {"pools.0.capacity_type": "flex-start", "pools.0.serves": ["spot-low"], "pools.0.max_run_hours": 12}

    assert told(work_fits_into_the_run_time, "gke", half_a_day) == ["refused: run-limit-beyond-nodes at pools.0.serves"]
    assert told(work_fits_into_the_run_time, "gke", half_a_day | {"classes.spot-low.run_limit_hours": 12}) == []


def test_work_with_checkpoints_that_outlives_its_node_gets_a_warning() -> None:
    flex: dict[str, Any] = {"pools.0.capacity_type": "flex-start"}

    assert told(work_fits_into_the_run_time, "gke", flex | {"pools.0.max_run_hours": 24}) == [
        "warned: run-limit-beyond-nodes at pools.0.serves"
    ]
    assert told(work_fits_into_the_run_time, "gke", flex | {"pools.0.max_run_hours": 168}) == []


def test_a_service_that_never_ends_does_not_run_on_flex_start() -> None:
    flex: dict[str, Any] = {"pools.0.capacity_type": "flex-start", "classes.training.checkpoint": False}

    assert told(work_fits_into_the_run_time, "gke", flex | {"classes.training.run_limit_hours": None}) == [
        "refused: run-limit-beyond-nodes at pools.0.serves"
    ]
    assert told(work_fits_into_the_run_time, "gke", flex) == [], "the seven days of training are those of flex-start"
