"""The shipped workload classes, and what a class must not be."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from capacity.catalog.capacity_type import CapacityType
from capacity.catalog.workload_classes import Fallback, Removal, WorkloadClass, shipped_classes

CLASSES = shipped_classes()


def changed(**fields: Any) -> WorkloadClass:
    return WorkloadClass.model_validate(CLASSES["training"].model_dump() | fields)


@pytest.mark.parametrize(
    "name,priority_class,priority,preempts",
    [
        ("inference", "gpu-production", 1_000_000, True),
        ("training", "gpu-training", 100_000, False),
        ("interactive", "gpu-development", 10_000, False),
        ("best-effort", "gpu-best-effort", 1_000, False),
        ("spot-low", "spot-workload-low", 100, False),
    ],
)
def test_a_class_has_the_priority_of_the_course(name: str, priority_class: str, priority: int, *, preempts: bool) -> None:
    found = CLASSES[name]

    assert (found.priority_class, found.priority, found.preempts) == (priority_class, priority, preempts)


def test_no_class_is_below_the_pods_that_say_nothing() -> None:
    # The guide's -5 for Spot work would let every default pod preempt it.
    assert len(CLASSES) == 5
    assert min(each.priority for each in CLASSES.values()) > 0


def test_on_demand_stands_only_in_the_order_of_inference_and_last() -> None:
    assert {name for name, each in CLASSES.items() if CapacityType.ON_DEMAND in each.capacity} == {"inference"}
    assert CLASSES["inference"].capacity == (CapacityType.RESERVED, CapacityType.ON_DEMAND)


def test_inference_alone_waits_in_no_queue_and_moves_on_at_a_stock_out() -> None:
    assert {name for name, each in CLASSES.items() if not each.queued} == {"inference"}
    assert {name for name, each in CLASSES.items() if each.fallback is Fallback.STOCK_OUT} == {"inference"}


def test_only_services_have_replicas_that_may_be_moved_and_a_budget_for_it() -> None:
    for name, each in CLASSES.items():
        service = each.run_limit_hours is None
        assert (name == "inference") == service == each.disruption_budget == (each.disruption.remove is Removal.UNDERUTILIZED)


def test_whoever_may_run_longer_than_a_day_on_spot_writes_checkpoints() -> None:
    long = {name for name, each in CLASSES.items() if CapacityType.SPOT in each.capacity and (each.run_limit_hours or 25) > 24}

    assert long == {"training"} == {name for name, each in CLASSES.items() if each.checkpoint}


@pytest.mark.parametrize(
    "field,value,problem",
    [
        ("capacity", ["spot", "spot"], "names a capacity type twice"),
        ("capacity", [], "at least 1 item"),
        ("priority", -1, "greater than or equal to 0"),
        ("priority", 1_000_000_001, "less than or equal to 1000000000"),
        ("priority_class", "GPU", "should match pattern"),
        ("grace_seconds", 601, "less than or equal to 600"),
        ("run_limit_hours", 0, "greater than or equal to 1"),
        ("disruption", {"remove": "never", "idle_seconds": 1}, "should be 'empty' or 'underutilized'"),
        ("colour", "red", "Extra inputs are not permitted"),
    ],
)
def test_a_class_that_cannot_be_is_refused(field: str, value: object, problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        changed(**{field: value})


def test_a_class_that_can_be_is_not() -> None:
    assert changed(run_limit_hours=None, priority=0).run_limit_hours is None
