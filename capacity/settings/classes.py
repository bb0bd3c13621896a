"""What a stack says of workload classes: single fields of a shipped one, or all of a new one."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from capacity.names import Name
from capacity.records import Record
from capacity.workload_class import CapacityOrder, Description, DisruptionRule, Fallback, GraceSeconds, Priority, RunLimitHours


class ClassSettings(Record):
    """The fields of a workload class; see WorkloadClass. What is left out is as shipped, and must not be left out of a new class.

    `run_limit_hours: null` takes the limit of a shipped class away.
    """

    description: Description | None = None
    priority_class: Name | None = None
    priority: Priority | None = None
    preempts: bool | None = None
    queued: bool | None = None
    fallback: Fallback | None = None
    capacity: Annotated[CapacityOrder | None, Field()] = None
    disruption: DisruptionRule | None = None
    run_limit_hours: RunLimitHours | None = None
    grace_seconds: GraceSeconds | None = None
    checkpoint: bool | None = None
    disruption_budget: bool | None = None
