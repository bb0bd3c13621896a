"""How work is let in: its classes, its queues, and what the API server does with what breaks the platform's rules."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from capacity.catalog.data_files import DescribedRecord
from capacity.catalog.workload_classes import CapacityOrder, Description, DisruptionRule, Fallback, GraceSeconds, Priority, RunLimitHours
from capacity.values.names import Name


class AdmissionMode(StrEnum):
    """What is done in the teams' namespaces. In all others whoever sends what breaks a rule is warned, unless it is NONE.

    ENFORCE: what breaks a rule is refused. WARN: it is taken, and its sender is warned. NONE: the API server gets no rules.
    """

    ENFORCE = "enforce"
    WARN = "warn"
    NONE = "none"


class Admission(DescribedRecord):
    """The rules that the API server itself holds."""

    mode: AdmissionMode = AdmissionMode.ENFORCE
    """What is done in teams' namespaces with what breaks a rule: refused, taken with a warning, or nothing. In all others its sender is
    warned, unless it is `none`."""

    default_owner_labels: bool | None = None
    """Whether work in a team's namespace gets the namespace's owner labels where it has none, which Kubernetes 1.36 can; default: where the
    version of the stack can."""


class Stop(StrEnum):
    """Whether a queue admits work. NONE: it does. HOLD: what runs goes on, nothing new starts. DRAIN: what runs is stopped too."""

    NONE = "none"
    HOLD = "hold"
    DRAIN = "drain"


class Queueing(DescribedRecord):
    """The platform's queues."""

    stop: Stop = Stop.NONE
    """Holds or drains every team's queue, for maintenance; of this and a team's own the stricter one counts."""

    existing_kueue: bool = False
    """Whether the cluster has its Kueue already (v1beta2, fair sharing on), so that none is installed. The local control plane always
    brings its own."""


class ClassSettings(DescribedRecord):
    """The fields of a workload class. What is left out is as shipped, and must not be left out of a new class."""

    description: Description | None = None
    """What kind of work it is, for people."""

    priority_class: Name | None = None
    """The name of its PriorityClass."""

    priority: Priority | None = None
    """The value of that PriorityClass; higher goes first."""

    preempts: bool | None = None
    """Whether it may take nodes and quota from lower priorities."""

    queued: bool | None = None
    """Whether Kueue admits it; if not, it starts at once."""

    fallback: Fallback | None = None
    """Who moves it on to its next capacity type: `quota`, Kueue, when a flavor's quota is used up; `stock-out`, the autoscaler, when the
    cloud has none left."""

    capacity: Annotated[CapacityOrder | None, Field()] = None
    """Capacity types in the order in which they are tried."""

    disruption: DisruptionRule | None = None
    """When nodes that it runs on may go."""

    run_limit_hours: RunLimitHours | None = None
    """Hours after which a run ends; null: none ever does."""

    grace_seconds: GraceSeconds | None = None
    """Seconds that its pods want between the signal and the end; cut to the notice that its capacity gives."""

    checkpoint: bool | None = None
    """Whether it writes what it has done to a bucket, and resumes."""

    disruption_budget: bool | None = None
    """Whether its services get a PodDisruptionBudget, which binds evictions alone."""
