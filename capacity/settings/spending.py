"""What may be spent, what is watched, and prices of one's own."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from capacity.records import Record
from capacity.settings.teams import MonthlyUsd


class Budget(Record):
    """The environment's budget in US dollars a month. `alert_percents` are the parts of it at which somebody is told."""

    monthly_usd: MonthlyUsd
    alert_percents: tuple[Annotated[int, Field(ge=1, le=200)], ...] = (50, 80, 100)


class GpuQuota(Record):
    """What the cloud grants of one GPU in the region, in GPUs. `preemptible` is used by Spot, flex-start and queued capacity together."""

    preemptible: Annotated[int, Field(ge=0)] | None = None
    on_demand: Annotated[int, Field(ge=0)] | None = None


class Observability(Record):
    """What is measured, and from when on somebody is told.

    `idle_gpu_minutes`: an on-demand GPU below 5 % for so long. `queue_wait_minutes`: jobs waiting longer. `min_spot_percent`: Spot is less
    of the running GPUs.
    """

    managed_prometheus: bool = True
    idle_gpu_minutes: Annotated[int, Field(ge=5)] = 60
    queue_wait_minutes: Annotated[int, Field(ge=1)] = 60
    min_spot_percent: Annotated[int, Field(ge=0, le=100)] = 40
