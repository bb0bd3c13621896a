"""Settings of teams, cohorts, workload classes, queues and admission."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from flexspot.capacity.catalog.data_files import DescribedRecord
from flexspot.capacity.catalog.workload_classes import (
    CapacityOrder,
    Description,
    DisruptionRule,
    Fallback,
    GraceSeconds,
    Priority,
    RunLimitHours,
)
from flexspot.capacity.settings.storage import WorkQueueSettings
from flexspot.capacity.values.names import GROUP, IAM_ROLE, IMAGE, LabelValue, Name, unpinned_reason


class AdmissionMode(StrEnum):
    """Treatment of objects in teams' namespaces that break a rule. In all other namespaces the sender gets a warning, except with NONE.

    ENFORCE: they are rejected. WARN: they are admitted with a warning. NONE: the API server gets no rules.
    """

    ENFORCE = "enforce"
    WARN = "warn"
    NONE = "none"


class Admission(DescribedRecord):
    """The rules that the API server enforces."""

    mode: AdmissionMode = AdmissionMode.ENFORCE
    """Treatment of objects in teams' namespaces that break a rule. `enforce`: they are rejected. `warn`: they are admitted with a
    warning. `none`: nothing. In all other namespaces the sender gets a warning, except with `none`."""

    default_owner_labels: bool | None = None
    """Copy the owner labels of a team's namespace to work in it that has none; requires Kubernetes 1.36. Default: true if the stack's
    version supports it."""

    rules_file: str | None = None
    """Path, relative to the stack file's folder, of a file with your organisation's rule levels, rule parameters, rules that may not be
    suppressed, and accepted findings, in the format that `flexspot lint` reads. Default: the rules as shipped."""


class Stop(StrEnum):
    """Admission state of a queue.

    NONE: it admits. HOLD: running work continues, nothing new starts. DRAIN: running work is also stopped.
    """

    NONE = "none"
    HOLD = "hold"
    DRAIN = "drain"


def _pinned(image: str) -> str:
    if problem := unpinned_reason(image):
        raise ValueError(f"{problem}; use a version tag or, better, a digest (IMAGE@sha256:...)")
    return image


class StockOuts(DescribedRecord):
    """Treatment of queued work when the cloud has no machines for a pool."""

    watch: bool = False
    """Run a pod next to Kueue that closes the flavor of a pool for which the autoscaler found no machines, so that queues use the team's
    next pool. Without it, Kueue admits a job to the first pool again and again until it gives up. Works on EKS and on GKE node pools."""

    hold_minutes: Annotated[int, Field(ge=5, le=1440)] = 30
    """Minutes that the flavor stays closed after the cloud's last refusal."""

    image: Annotated[str, Field(pattern=IMAGE), AfterValidator(_pinned)] = "public.ecr.aws/docker/library/python:3.13.7-slim-trixie"
    """The pod's image, with Python 3.9 or later as `python3`. Default: Docker's official image, from Amazon's public registry."""


class Queueing(DescribedRecord):
    """The platform's queues."""

    stop: Stop = Stop.NONE
    """Holds or drains the queues of all teams, for maintenance. If a team sets its own `stop`, the stricter of the two applies."""

    existing_kueue: bool = False
    """True if the cluster already has Kueue (v1beta2, with fair sharing enabled), so that none is installed. The local control plane
    always installs its own."""

    stock_outs: StockOuts = StockOuts()
    """Use of the next pool when the cloud has no machines for the first."""


class ClassSettings(DescribedRecord):
    """The fields of a workload class. An omitted field keeps the shipped value; a new class must set all fields."""

    description: Description | None = None
    """Description of the work, for people."""

    priority_class: Name | None = None
    """Name of its PriorityClass."""

    priority: Priority | None = None
    """Value of that PriorityClass; higher values go first."""

    preempts: bool | None = None
    """True if its pods may preempt pods of lower priority. Set to false for queued classes: Kueue decides by quota whom queued work
    preempts, and preemption by the scheduler would take capacity that is guaranteed to another team."""

    queued: bool | None = None
    """True if Kueue admits it. If false, it starts at once."""

    fallback: Fallback | None = None
    """Trigger that moves it to its next capacity type. `quota`: Kueue, when a flavor's quota is used up. `stock-out`: the autoscaler,
    when the cloud has no capacity left."""

    capacity: Annotated[CapacityOrder | None, Field()] = None
    """Capacity types, in the order to try them."""

    disruption: DisruptionRule | None = None
    """When the autoscaler may remove nodes that it runs on."""

    run_limit_hours: RunLimitHours | None = None
    """Hours after which a run is ended; null: no limit."""

    grace_seconds: GraceSeconds | None = None
    """Seconds that its pods need between the termination signal and the end; limited to the notice that the capacity type gives."""

    checkpoint: bool | None = None
    """True if it writes checkpoints to a bucket and resumes from them."""

    disruption_budget: bool | None = None
    """True if its services get a PodDisruptionBudget, which only limits evictions."""


Gpus = Annotated[int, Field(ge=0, le=1_000_000)]
GpusOfPools = dict[Name, Gpus]
"""GPUs by pool name."""


RESERVED_GROUPS = ("system:", "eks:", "aws:", "amazon:", "iam:")
"""Prefixes that groups of an access entry must not have. EKS user guide, "Create access entries"
(https://docs.aws.amazon.com/eks/latest/userguide/creating-access-entries.html, read 2026-11-24)."""


def _group_of_people(group: str) -> str:
    if group.startswith("system:"):
        raise ValueError("is a group of the cluster itself, and some of these contain every user; name a group of people")
    if group.startswith("arn:") and not re.fullmatch(IAM_ROLE, group):
        raise ValueError("is not a role; name the role that people assume (arn:aws:iam::ACCOUNT:role/NAME), not a user or a session")
    return group


Group = Annotated[str, Field(pattern=GROUP), AfterValidator(_group_of_people)]
Groups = Annotated[tuple[Group, ...], Field(max_length=20)]

Weight = Annotated[int, Field(ge=1, le=1000)]
Count = Annotated[int, Field(ge=1, le=100_000)]
StorageGib = Annotated[int, Field(ge=1, le=10_000_000)]
MonthlyUsd = Annotated[int, Field(ge=1, le=10_000_000_000)]


class CohortSettings(DescribedRecord):
    """A department or other group of teams."""

    name: Name
    """The cohort's name."""

    parent: Name | None = None
    """The parent cohort. Default: the platform's."""

    weight: Weight = 1
    """Its weight, relative to the others, when idle GPUs are shared."""

    shares: GpusOfPools = Field(default_factory=dict)
    """GPUs of queued pools that belong to the group but to none of its teams, by pool."""

    borrowing_limits: GpusOfPools = Field(default_factory=dict)
    """Maximum GPUs that the whole group may borrow from the rest, by pool. Default: no limit."""

    lending_limits: GpusOfPools = Field(default_factory=dict)
    """Maximum GPUs that the whole group may lend to the rest, by pool. Default: no limit."""


class CpuWork(DescribedRecord):
    """A team's own share of the capacity for work without GPUs, lent while unused. 0: the team can only borrow."""

    vcpu: Annotated[int, Field(ge=0, le=10_000)]
    """vCPU of all such work of the team together."""

    memory_gib: Annotated[int, Field(ge=0, le=40_000)]
    """Memory of all such work of the team together, in GiB."""


class TeamSettings(DescribedRecord):
    """A team, and its own GPUs in each pool."""

    name: Name
    """Name of the team and of its namespace."""

    cohort: Name | None = None
    """The team's cohort. Default: the platform's."""

    weight: Weight = 1
    """Its weight, relative to the others, when idle GPUs are shared."""

    shares: GpusOfPools = Field(default_factory=dict)
    """The team's own GPUs in queued pools, by pool: guaranteed, and lent while unused. 0: the team can only borrow. The team cannot use
    a pool that is not listed."""

    borrowing_limits: GpusOfPools = Field(default_factory=dict)
    """Maximum GPUs that the team may borrow from others, by pool. Default: no limit."""

    lending_limits: GpusOfPools = Field(default_factory=dict)
    """Maximum GPUs that the team may lend to others, by pool. Default: no limit."""

    unqueued: GpusOfPools = Field(default_factory=dict)
    """GPUs that the team's classes without a queue (services) may use, by pool; no queue lends these GPUs."""

    cpu_work: CpuWork | None = None
    """The team's own vCPU and memory on nodes without GPUs, for work in its queue `cpu`. A quarter of it is for launchers: pods without
    GPUs that belong to GPU work. Default: an equal part of what other teams' settings leave of three quarters of `other_work`."""

    stop: Stop = Stop.NONE
    """Holds or drains the team's queues, for maintenance."""

    work_queue: WorkQueueSettings | None = None
    """A queue of work items in the cloud. Default: none."""

    monthly_budget_usd: MonthlyUsd | None = None
    """The team's monthly budget in US dollars. Default: none."""

    projects: Annotated[tuple[LabelValue, ...], Field(max_length=100)] = ()
    """Projects that the team may bill work to, by the label flexspot.dev/project. Work that names another project is rejected. Default:
    any."""

    submitters: Groups = ()
    """Groups whose members can start and end work in the team's namespace, read its logs and use port-forward. On EKS also IAM roles, by
    ARN: the stack creates an access entry for each, so a role must not have one yet, and anyone who assumes the role is a member."""

    viewers: Groups = ()
    """Groups whose members can view the team's namespace. On EKS also IAM roles, as in `submitters`."""

    max_pods: Count | None = None
    """Maximum pods in the namespace at a time; finished pods do not count. A value below one pod per GPU that the team may hold is
    raised to that. Default: two per GPU, at least 200."""

    max_jobs: Count = 1000
    """Maximum Jobs in the namespace at a time, including waiting and finished ones: set ttlSecondsAfterFinished on Jobs."""

    max_volumes: Count = 50
    """Maximum PersistentVolumeClaims in the namespace at a time; two of them are for the team's checkpoints and the datasets."""

    max_storage_gib: StorageGib = 2048
    """Maximum storage of all claims together, in GiB; a bucket's claim counts as 1 GiB."""
