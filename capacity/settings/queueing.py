"""How work is let in: its classes, its queues, and what the API server does with what breaks the platform's rules."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from capacity.catalog.data_files import Record
from capacity.catalog.workload_classes import CapacityOrder, Description, DisruptionRule, Fallback, GraceSeconds, Priority, RunLimitHours
from capacity.values.names import Name


class AdmissionMode(StrEnum):
    """What is done in the teams' namespaces. In all others whoever sends what breaks a rule is warned, unless it is NONE.

    ENFORCE: what breaks a rule is refused. WARN: it is taken, and its sender is warned. NONE: the API server gets no rules.
    """

    ENFORCE = "enforce"
    WARN = "warn"
    NONE = "none"


class Admission(Record):
    """The rules that the API server itself holds.

    `default_owner_labels` gives work in a team's namespace the owner labels of the namespace where it has none of its own, which Kubernetes
    1.36 can; default: true where the version of the stack says so.
    """

    mode: AdmissionMode = AdmissionMode.ENFORCE
    default_owner_labels: bool | None = None


class Stop(StrEnum):
    """Whether a queue admits work. NONE: it does. HOLD: what runs goes on, nothing new starts. DRAIN: what runs is stopped too."""

    NONE = "none"
    HOLD = "hold"
    DRAIN = "drain"


class Queueing(Record):
    """The platform's queues.

    `stop` holds or drains every team's queue, for maintenance; a team's own `stop` adds to it, and the stricter one counts.
    `existing_kueue` says that the cluster has its Kueue already (v1beta2, fair sharing on): then none is installed. The local control plane
    always brings its own.
    """

    stop: Stop = Stop.NONE
    existing_kueue: bool = False


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
