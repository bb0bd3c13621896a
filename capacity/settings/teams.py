"""Teams and the cohorts that they lend to and borrow from."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from capacity.catalog.data_files import Record
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


class CohortSettings(Record):
    """A department or other group of teams. `parent` is another cohort; default: the platform's.

    `shares` are GPUs of queued pools that belong to the group and to no team of it. `borrowing_limits` and `lending_limits` say how many
    GPUs of a pool the whole group may take from, and give to, the rest; default: all. `weight` is its part when the rest is shared out.
    """

    name: Name
    parent: Name | None = None
    weight: Weight = 1
    shares: GpusOfPools = Field(default_factory=dict)
    borrowing_limits: GpusOfPools = Field(default_factory=dict)
    lending_limits: GpusOfPools = Field(default_factory=dict)


class TeamSettings(Record):
    """A team, and how many GPUs of which pools are its own.

    `shares` are of queued pools: guaranteed, lent while unused; 0 means that it may borrow alone. A pool not named is not open to it.
    `borrowing_limits` and `lending_limits` are as for a cohort. `unqueued` are the GPUs that its classes without queue (services) may use;
    no queue gives them away. `weight` counts when idle GPUs are shared out. `stop` holds or drains the team's queue, for maintenance.
    `work_queue` is a cloud queue of work items, default: none. `monthly_budget_usd` is in US dollars.

    `submitters` and `viewers` are groups whose members may start work, or look, in the team's namespace; default: none. `max_pods`,
    `max_jobs`, `max_volumes` and `max_storage_gib` are the most that the namespace may hold at once. A pod that has ended counts no more;
    a Job counts until it is deleted, while it waits in the queue too. Default of `max_pods`: two for each GPU that the team may hold, at
    least 200; what is written is raised to one for each, so that nothing is refused that a queue has admitted.
    """

    name: Name
    cohort: Name | None = None
    weight: Weight = 1
    shares: GpusOfPools = Field(default_factory=dict)
    borrowing_limits: GpusOfPools = Field(default_factory=dict)
    lending_limits: GpusOfPools = Field(default_factory=dict)
    unqueued: GpusOfPools = Field(default_factory=dict)
    stop: Stop = Stop.NONE
    work_queue: WorkQueue | None = None
    monthly_budget_usd: MonthlyUsd | None = None
    submitters: Groups = ()
    viewers: Groups = ()
    max_pods: Count | None = None
    max_jobs: Count = 1000
    max_volumes: Count = 50
    max_storage_gib: StorageGib = 2048
