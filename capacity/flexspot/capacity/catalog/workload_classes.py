"""Workload classes: kinds of work with their priority, needs and interruption policy."""

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
    """The mechanism that moves a class to its next capacity type. Each class has exactly one.

    QUOTA: Kueue, when the quota of a flavor is used up. It does not know about stock-outs: it requeues such a job. STOCK_OUT: the
    autoscaler (Karpenter's weights, GKE's compute class), when the cloud has no capacity left. The queue sees one flavor.
    """

    QUOTA = "quota"
    STOCK_OUT = "stock-out"


class Removal(StrEnum):
    """Condition for an autoscaler to remove a node. EMPTY: nothing runs on it. UNDERUTILIZED: also if its pods fit elsewhere."""

    EMPTY = "empty"
    UNDERUTILIZED = "underutilized"


class DisruptionRule(DescribedRecord):
    """Condition and delay for the autoscaler to remove nodes."""

    remove: Removal
    """`empty`: when nothing runs on a node. `underutilized`: also by moving its pods elsewhere."""

    idle_seconds: Annotated[int, Field(ge=0, le=86_400)]
    """Seconds that the condition must hold before the node is removed."""


HIGHEST_PRIORITY = 1_000_000_000
"""Kubernetes reserves higher values for its own classes."""

SCALE_UP_CUTOFF = -10
"""Below it Cluster Autoscaler creates no node for a pod (its FAQ, expendable pods). GKE has the same limit, Karpenter has none."""

# Any default pod of the cluster would preempt a negative priority.
Priority = Annotated[int, Field(ge=0, le=HIGHEST_PRIORITY)]
RunLimitHours = Annotated[int, Field(ge=1, le=2880)]
GraceSeconds = Annotated[int, Field(ge=0, le=600)]
CapacityOrder = Annotated[tuple[CapacityType, ...], Field(min_length=1)]
Description = Annotated[str, Field(min_length=1, max_length=200)]


class WorkloadClass(Record):
    """One complete class."""

    description: Description
    priority_class: Name
    """PriorityClass of this `priority`."""
    priority: Priority
    preempts: bool
    """If false, it does not preempt other pods."""
    queued: bool
    """True if Kueue admits the work."""
    fallback: Fallback
    capacity: CapacityOrder
    """Capacity types to try, in order."""
    disruption: DisruptionRule
    run_limit_hours: RunLimitHours | None
    """Hours after which a run ends; null for a service that never ends."""
    grace_seconds: GraceSeconds
    """Seconds that its pods need between the signal and the end."""
    checkpoint: bool
    """True if the work saves its progress to a bucket and resumes."""
    disruption_budget: bool
    """True if it gets a PodDisruptionBudget, which limits evictions only."""

    @field_validator("capacity")
    @classmethod
    def _each_capacity_type_once(cls, order: CapacityOrder) -> CapacityOrder:
        return each_once(order)


def each_once(order: CapacityOrder) -> CapacityOrder:
    """Return the order itself. Raises ValueError if it contains a capacity type twice."""
    if len(set(order)) < len(order):
        raise ValueError("names a capacity type twice")
    return order


class _ClassFile(Record):
    """The data file of the shipped classes."""

    as_of: date
    classes: dict[Name, WorkloadClass]


@cache
def shipped_classes() -> dict[str, WorkloadClass]:
    """Return the classes that every stack has, by name."""
    return dict(read_records(_SHIPPED, _ClassFile).classes)
