"""The shipped workload classes, and impossible classes."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from flexspot.capacity.catalog.workload_classes import Removal, WorkloadClass, shipped_classes

CLASSES = shipped_classes()


def changed(**fields: Any) -> WorkloadClass:
    return WorkloadClass.model_validate(CLASSES["training"].model_dump() | fields)


def test_only_services_have_replicas_that_may_be_moved_and_a_budget_for_it() -> None:
    for name, each in CLASSES.items():
        service = each.run_limit_hours is None
        assert (name == "inference") == service == each.disruption_budget == (each.disruption.remove is Removal.UNDERUTILIZED)


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
def test_an_impossible_class_is_refused(field: str, value: object, problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        changed(**{field: value})
