"""AWS's quotas that a platform's nodes and gateways count against, as data with a source."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from flexspot.capacity.catalog.data_files import Record, SourcedFile, read_records

_FILE = Path(__file__).parent / "aws_quotas.yaml"

_FAMILY = re.compile(r"([a-z]+)\d*")


class Counts(StrEnum):
    """What a quota counts. VCPU: those of running machines. ADDRESSES: Elastic IP addresses."""

    VCPU = "vcpu"
    ADDRESSES = "addresses"


class Market(StrEnum):
    """How machines are bought, as far as quotas tell them apart; one on an on-demand capacity reservation counts as ON_DEMAND."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"


class AwsQuota(Record):
    """One quota of EC2 in a region, by its code in Service Quotas. `default` is what an account has that never asked for more."""

    code: Annotated[str, Field(pattern=r"^L-[0-9A-F]{8}$")]
    name: str
    counts: Counts
    market: Market | None = None
    families: tuple[str, ...] = ()
    default: Annotated[int, Field(ge=0)]
    source: str

    @model_validator(mode="after")
    def _machines_have_a_market(self) -> Self:
        if (self.counts is Counts.VCPU) != bool(self.market and self.families):
            raise ValueError(f"{self.code} counts {self.counts}: a quota of vCPU has market and families, another has neither")
        return self


class AwsQuotaFile(SourcedFile):
    """The quotas, each with a source."""

    quotas: tuple[AwsQuota, ...]

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        if len({each.code for each in self.quotas}) < len(self.quotas):
            raise ValueError("a code stands twice")
        return self


@cache
def aws_quotas() -> tuple[AwsQuota, ...]:
    """All quotas that are known."""
    return read_records(_FILE, AwsQuotaFile).quotas


def quota_of_machine(machine: str, market: Market) -> AwsQuota | None:
    """The quota that a machine such as g6.xlarge counts against; None where no source says which."""
    found = _FAMILY.match(machine)
    names = {found.group(0), found.group(1)} if found else set[str]()
    return next((each for each in aws_quotas() if each.market is market and names & {*each.families}), None)


def address_quota() -> AwsQuota:
    """The quota of Elastic IP addresses."""
    return next(each for each in aws_quotas() if each.counts is Counts.ADDRESSES)
