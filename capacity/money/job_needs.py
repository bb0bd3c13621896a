"""What somebody says of a job when asking how to get capacity for it."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import Field, model_validator

from capacity.machines import Cloud
from capacity.records import Record

Hours = Annotated[float, Field(gt=0, le=100_000, allow_inf_nan=False)]
Wait = Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)]
Usd = Annotated[Decimal, Field(gt=0)]


class JobNeeds(Record):
    """One job. What is None is taken from the rules' assumptions, or does not apply.

    `work_hours` is its length on `nodes` machines without interruptions. `interruptible`: it may be stopped at any time and started again.
    `checkpoint_minutes` is how long the work stands still for one checkpoint (None: it has none); `piece_hours` is the longest piece of
    work that can be done again on its own (a trial of a sweep, a batch), which needs no checkpoint. `user_facing`: users wait for its
    answers. `interactive`: somebody works in it by fits and starts, as in a notebook. `start_within_hours` and `deadline_hours` count from
    now. `steady`: it runs around the clock for a year. `shared`: several teams want the capacity. `guaranteed`: the team must be sure of
    its share. `data_region` and `data_gib`: where its data is, and how much of it each start reads. Prices are for one machine and hour,
    waits are what to expect.
    """

    cloud: Cloud
    region: str
    machine: str
    work_hours: Hours
    nodes: Annotated[int, Field(ge=1, le=100_000)] = 1
    interruptible: bool = True
    checkpoint_minutes: Wait | None = None
    piece_hours: Hours | None = None
    user_facing: bool = False
    interactive: bool = False
    start_within_hours: Wait | None = None
    deadline_hours: Hours | None = None
    late_share_allowed: Annotated[float, Field(ge=0, lt=1)] = 0.05
    steady: bool = False
    shared: bool = False
    guaranteed: bool = False
    data_region: str | None = None
    data_gib: Annotated[int, Field(ge=0)] = 0
    interruptions_per_node_hour: Annotated[float, Field(ge=0, le=60, allow_inf_nan=False)] | None = None
    restart_minutes: Wait | None = None
    spot_wait_hours: Wait | None = None
    flex_start_wait_hours: Wait | None = None
    on_demand_usd_per_hour: Usd | None = None
    spot_usd_per_hour: Usd | None = None
    flex_start_usd_per_hour: Usd | None = None

    @model_validator(mode="after")
    def _the_deadline_leaves_room_for_the_work(self) -> JobNeeds:
        if self.deadline_hours is not None and self.deadline_hours < self.work_hours:
            raise ValueError(
                f"deadline_hours {self.deadline_hours} is before the {self.work_hours} hours of work are done; "
                "move the deadline, or use more nodes and give the shorter work_hours"
            )
        return self
