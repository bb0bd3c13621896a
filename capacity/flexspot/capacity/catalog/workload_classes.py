"""Workload classes: what kinds of work a platform takes, and what each kind is worth, needs and may be done to."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.data_files import DescribedRecord, Record, read_records
from flexspot.capacity.values.names import Name

_SHIPPED = Path(__file__).parent / "classes.yaml"


class Fallback(StrEnum):
    """What moves a class to its next capacity type. Each class has one decider, never two.

    QUOTA: Kueue, when the quota of a flavor is used up. It does not know about stock-outs: it requeues such a job. STOCK_OUT: the
    autoscaler (Karpenter's weights, GKE's compute class), when the cloud has no capacity left. The queue sees one flavor.
    """

    QUOTA = "quota"
    STOCK_OUT = "stock-out"


class Removal(StrEnum):
    """When an autoscaler may remove a node. EMPTY: when nothing runs on it. UNDERUTILIZED: also by moving its pods elsewhere."""

    EMPTY = "empty"
    UNDERUTILIZED = "underutilized"


class DisruptionRule(DescribedRecord):
    """When the autoscaler removes nodes."""

    remove: Removal
    """`empty`: when nothing runs on a node. `underutilized`: also by moving its pods elsewhere."""

    idle_seconds: Annotated[int, Field(ge=0, le=86_400)]
    """Seconds that the condition must hold before the node is removed."""


HIGHEST_PRIORITY = 1_000_000_000
"""Kubernetes keeps higher values for its own classes."""

SCALE_UP_CUTOFF = -10
"""Below it Cluster Autoscaler makes no node for a pod (its FAQ, expendable pods); GKE's has the same, Karpenter has none."""

# Below 0 any default pod of the cluster would preempt it.
Priority = Annotated[int, Field(ge=0, le=HIGHEST_PRIORITY)]
RunLimitHours = Annotated[int, Field(ge=1, le=2880)]
GraceSeconds = Annotated[int, Field(ge=0, le=600)]
CapacityOrder = Annotated[tuple[CapacityType, ...], Field(min_length=1)]
Description = Annotated[str, Field(min_length=1, max_length=200)]


class WorkloadClass(Record):
    """One class, complete.

    `priority_class` is the PriorityClass of that `priority`; with `preempts` false it takes nothing from others. `queued` work is admitted
    by Kueue. `capacity` is the order of capacity types to try. `run_limit_hours` ends a run (null: a service that never ends).
    `grace_seconds` is how long its pods want between the signal and the end. `checkpoint` work writes what it has done to a bucket and
    resumes; `disruption_budget` gives it a PodDisruptionBudget, which binds evictions alone.
    """

    description: Description
    priority_class: Name
    priority: Priority
    preempts: bool
    queued: bool
    fallback: Fallback
    capacity: CapacityOrder
    disruption: DisruptionRule
    run_limit_hours: RunLimitHours | None
    grace_seconds: GraceSeconds
    checkpoint: bool
    disruption_budget: bool

    @field_validator("capacity")
    @classmethod
    def _each_capacity_type_once(cls, order: CapacityOrder) -> CapacityOrder:
        return each_once(order)


def each_once(order: CapacityOrder) -> CapacityOrder:
    """The order itself. Raises ValueError when a capacity type stands in it twice."""
    if len(set(order)) < len(order):
        raise ValueError("names a capacity type twice")
    return order


class _ClassFile(Record):
    """The data file of the shipped classes."""

    as_of: date
    classes: dict[Name, WorkloadClass]


@cache
def shipped_classes() -> dict[str, WorkloadClass]:
    """The classes that every stack has, by name."""
    return dict(read_records(_SHIPPED, _ClassFile).classes)
