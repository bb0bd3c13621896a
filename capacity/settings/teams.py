"""Teams, the cohorts that they lend to and borrow from, and how their work is let in."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from capacity.catalog.data_files import DescribedRecord
from capacity.catalog.workload_classes import CapacityOrder, Description, DisruptionRule, Fallback, GraceSeconds, Priority, RunLimitHours
from capacity.settings.storage import WorkQueue
from capacity.values.images import how_it_moves
from capacity.values.names import GROUP, IAM_ROLE, IMAGE, LabelValue, Name


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

    rules_file: str | None = None
    """A file, by its path from the stack file's folder, with the organisation's levels and parameters of rules, which of them nobody may
    suppress and what is accepted, as `flexspot lint` reads it; default: rules as shipped."""


class Stop(StrEnum):
    """Whether a queue admits work. NONE: it does. HOLD: what runs goes on, nothing new starts. DRAIN: what runs is stopped too."""

    NONE = "none"
    HOLD = "hold"
    DRAIN = "drain"


def _pinned(image: str) -> str:
    if problem := how_it_moves(image):
        raise ValueError(f"{problem}; name a release, better a digest (IMAGE@sha256:...)")
    return image


class StockOuts(DescribedRecord):
    """What becomes of queued work when the cloud has no machines for a pool."""

    watch: bool = False
    """Whether a pod beside Kueue closes the flavor of a pool for which the autoscaler has found no machines, so that queues go on to the
    team's next pool. Without it a job is admitted to the first one again and again, until it is given up. On EKS and on GKE's node pools.
    """

    hold_minutes: Annotated[int, Field(ge=5, le=1440)] = 30
    """For how long after the cloud's last refusal the flavor stays closed, in minutes."""

    image: Annotated[str, Field(pattern=IMAGE), AfterValidator(_pinned)] = "public.ecr.aws/docker/library/python:3.13.7-slim-trixie"
    """The pod's image, with Python 3.9 or later as `python3`. Default: Docker's official one, from Amazon's public registry."""


class Queueing(DescribedRecord):
    """The platform's queues."""

    stop: Stop = Stop.NONE
    """Holds or drains every team's queue, for maintenance; of this and a team's own the stricter one counts."""

    existing_kueue: bool = False
    """Whether the cluster has its Kueue already (v1beta2, fair sharing on), so that none is installed. The local control plane always
    brings its own."""

    stock_outs: StockOuts = StockOuts()
    """Whether queues go on to the next pool when the cloud has no machines for the first."""


class ClassSettings(DescribedRecord):
    """The fields of a workload class. What is left out is as shipped, and must not be left out of a new class."""

    description: Description | None = None
    """What kind of work it is, for people."""

    priority_class: Name | None = None
    """The name of its PriorityClass."""

    priority: Priority | None = None
    """The value of that PriorityClass; higher goes first."""

    preempts: bool | None = None
    """Whether its pods may take nodes from pods of lower priorities. False for queued classes: whom queued work preempts Kueue decides, by
    quota, and a scheduler that did it too would take what is guaranteed to another team."""

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


Gpus = Annotated[int, Field(ge=0, le=1_000_000)]
GpusOfPools = dict[Name, Gpus]
"""GPUs by name of a pool."""


RESERVED_GROUPS = ("system:", "eks:", "aws:", "amazon:", "iam:")
"""What no group of an access entry begins with. EKS user guide, "Create access entries"
(https://docs.aws.amazon.com/eks/latest/userguide/creating-access-entries.html, read 2026-11-24)."""


def _of_people(group: str) -> str:
    if group.startswith("system:"):
        raise ValueError("is a group of the cluster's own; name a group of people: every user is in some of the cluster's")
    if group.startswith("arn:") and not re.fullmatch(IAM_ROLE, group):
        raise ValueError("is no role; name the role that people take, arn:aws:iam::ACCOUNT:role/NAME: a user or a session is none")
    return group


Group = Annotated[str, Field(pattern=GROUP), AfterValidator(_of_people)]
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
    """The cohort above; default: the platform's."""

    weight: Weight = 1
    """Its part when idle GPUs are shared out, against the others'."""

    shares: GpusOfPools = Field(default_factory=dict)
    """GPUs of queued pools that belong to the group and to no team of it, by pool."""

    borrowing_limits: GpusOfPools = Field(default_factory=dict)
    """GPUs of a pool that the whole group may take from the rest, by pool; default: all."""

    lending_limits: GpusOfPools = Field(default_factory=dict)
    """GPUs of a pool that the whole group may give to the rest, by pool; default: all."""


class CpuWork(DescribedRecord):
    """What of the room for work without GPUs is a team's own; lent while unused. 0: it may borrow alone."""

    vcpu: Annotated[int, Field(ge=0, le=10_000)]
    """vCPU of all such work of the team at once."""

    memory_gib: Annotated[int, Field(ge=0, le=40_000)]
    """Memory of all such work of the team at once, in GiB."""


class TeamSettings(DescribedRecord):
    """A team, and how many GPUs of which pools are its own."""

    name: Name
    """The team's name, and that of its namespace."""

    cohort: Name | None = None
    """The cohort that the team is in; default: the platform's."""

    weight: Weight = 1
    """Its part when idle GPUs are shared out, against the others'."""

    shares: GpusOfPools = Field(default_factory=dict)
    """GPUs of queued pools that are the team's own, by pool: guaranteed, lent while unused. 0: it may borrow alone. A pool that is not
    named is not open to it."""

    borrowing_limits: GpusOfPools = Field(default_factory=dict)
    """GPUs of a pool that the team may take from others, by pool; default: all."""

    lending_limits: GpusOfPools = Field(default_factory=dict)
    """GPUs of a pool that the team may give to others, by pool; default: all."""

    unqueued: GpusOfPools = Field(default_factory=dict)
    """GPUs that the team's classes without queue (services) may use, by pool; no queue gives them away."""

    cpu_work: CpuWork | None = None
    """vCPU and memory of nodes without GPUs that are the team's own, for work in its queue `cpu`; a quarter is for launchers, which are
    pods without GPUs of work that has some. Default: an equal part of what others leave of three quarters of `other_work`."""

    stop: Stop = Stop.NONE
    """Holds or drains the team's queues, for maintenance."""

    work_queue: WorkQueue | None = None
    """A queue of work items in the cloud; default: none."""

    monthly_budget_usd: MonthlyUsd | None = None
    """The team's budget in US dollars a month; default: none."""

    projects: Annotated[tuple[LabelValue, ...], Field(max_length=100)] = ()
    """Projects that the team's work may be billed to, by the label flexspot.dev/project; work that names another is refused. Default:
    any."""

    submitters: Groups = ()
    """Groups whose members start and end work in the team's namespace, read its logs and reach it by port-forward. On EKS also roles of
    IAM, by ARN: whoever takes one is such a member, by an access entry that the stack makes; it must have none yet."""

    viewers: Groups = ()
    """Groups whose members look into the team's namespace; on EKS also roles of IAM, as in `submitters`."""

    max_pods: Count | None = None
    """Pods in the namespace at once, at most; one that has ended counts no more. Default: two for each GPU that the team may hold, at least
    200; what is written is raised to one for each."""

    max_jobs: Count = 1000
    """Jobs in the namespace at once, at most, also those that wait and those that have ended: give Jobs a
    ttlSecondsAfterFinished."""

    max_volumes: Count = 50
    """Volume claims in the namespace at once, at most; two are the team's checkpoints and the datasets."""

    max_storage_gib: StorageGib = 2048
    """Storage of all claims together, in GiB, at most; a bucket's claim counts as 1 GiB."""
