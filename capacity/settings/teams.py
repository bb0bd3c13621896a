"""Teams and the cohorts that they lend to and borrow from."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from capacity.catalog.data_files import DescribedRecord
from capacity.settings.queueing import Stop
from capacity.settings.storage import WorkQueue
from capacity.values.names import GROUP, Name

Gpus = Annotated[int, Field(ge=0, le=1_000_000)]
GpusOfPools = dict[Name, Gpus]
"""GPUs by name of a pool."""


def _of_people(group: str) -> str:
    if group.startswith("system:"):
        raise ValueError("is a group of the cluster's own; name a group of people: every user is in some of the cluster's")
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

    stop: Stop = Stop.NONE
    """Holds or drains the team's queue, for maintenance."""

    work_queue: WorkQueue | None = None
    """A queue of work items in the cloud; default: none."""

    monthly_budget_usd: MonthlyUsd | None = None
    """The team's budget in US dollars a month; default: none."""

    submitters: Groups = ()
    """Groups whose members start and end work in the team's namespace, read its logs and reach it by port-forward."""

    viewers: Groups = ()
    """Groups whose members look into the team's namespace."""

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
