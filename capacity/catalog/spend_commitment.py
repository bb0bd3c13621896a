"""Commitments of so many US dollars an hour: AWS' Savings Plans and Google's Compute flexible committed-use discounts.

Sources, all read 2026-11-27: docs.aws.amazon.com/savingsplans/latest/userguide/sp-applying.html; docs.cloud.google.com/docs/cuds-
multiprice, by which since 2026-01-21 the commitment of a flexible discount is an amount at discounted prices, as AWS' always was.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated

from pydantic import Field, model_validator

from capacity.catalog.data_files import Record
from capacity.catalog.machines import Cloud
from capacity.catalog.price_changes import moment_problem
from capacity.values.quantities import SECONDS_OF_AN_HOUR


class SpendKind(StrEnum):
    """What the commitment is called by its cloud. Of AWS' two the narrower one is applied first."""

    EC2_INSTANCE_SAVINGS_PLAN = "ec2-instance-savings-plan"
    COMPUTE_SAVINGS_PLAN = "compute-savings-plan"
    COMPUTE_FLEXIBLE_CUD = "compute-flexible-cud"

    @property
    def cloud(self) -> Cloud:
        """Whose it is."""
        return Cloud.GCP if self is SpendKind.COMPUTE_FLEXIBLE_CUD else Cloud.AWS


class SpendRate(Record):
    """What an hour of a machine costs under the commitment, in US dollars. Of machines without a rate it pays nothing."""

    machine: str
    region: str
    usd_per_hour: Annotated[Decimal, Field(gt=Decimal(0))]


class SpendCommitment(Record):
    """`usd_per_hour` that are billed from `start` until before `end`, whatever runs, and pay for machines on demand at `rates`.

    Without `start` or `end` it is for as long as anybody asks; both have an offset and are starts of clock-hours, by which it is applied.
    `name` is the cloud's own id, or a word of one's own.
    """

    name: Annotated[str, Field(min_length=1)]
    kind: SpendKind
    usd_per_hour: Annotated[Decimal, Field(gt=Decimal(0))]
    rates: Annotated[tuple[SpendRate, ...], Field(min_length=1)]
    start: datetime | None = None
    end: datetime | None = None
    source: str

    @model_validator(mode="after")
    def _it_is_of_whole_hours(self) -> SpendCommitment:
        for name, moment in (("start", self.start), ("end", self.end)):
            if problem := moment_problem(moment, name):
                raise ValueError(f"the commitment {self.name}: {problem}")
            if moment is not None and moment.timestamp() % SECONDS_OF_AN_HOUR:
                raise ValueError(f"the commitment {self.name}: the {name} {moment} is no start of a clock-hour; it is applied hour by hour")
        if self.start is not None and self.end is not None and self.end <= self.start:
            raise ValueError(f"the commitment {self.name} ends at {self.end}, which is not after its start {self.start}")
        return self

    @model_validator(mode="after")
    def _every_rate_stands_once(self) -> SpendCommitment:
        places = [(each.machine, each.region) for each in self.rates]
        if twice := sorted(each for each in set(places) if places.count(each) > 1):
            raise ValueError(f"the commitment {self.name} has two rates of {twice[0][0]} in {twice[0][1]}")
        return self

    @property
    def what(self) -> str:
        """What it is, in words."""
        return f"{self.kind} {self.name}, {self.usd_per_hour} USD an hour"

    def holds(self, start: int, end: int) -> tuple[int, int]:
        """The part of a time, in seconds since 1970 UTC, in which it holds; the end is the start where it does not."""
        first = start if self.start is None else max(start, int(self.start.timestamp()))
        last = end if self.end is None else min(end, int(self.end.timestamp()))
        return first, max(first, last)

    def rate_of(self, machine: str, region: str) -> Decimal | None:
        """What an hour of a machine costs under it; None: it pays nothing of it."""
        return next((each.usd_per_hour for each in self.rates if (each.machine, each.region) == (machine, region)), None)
