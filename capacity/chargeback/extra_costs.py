"""Storage and traffic: what the clouds' bills say of them, given in a file, because no metric in the cluster knows it."""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from capacity.chargeback.owners import NONE
from capacity.records import Record, read_records

if TYPE_CHECKING:
    from pathlib import Path


class ExtraKind(StrEnum):
    """STORAGE is data that is kept, in buckets or on disks; EGRESS is data that leaves a zone, a region or the cloud."""

    STORAGE = "storage"
    EGRESS = "egress"


class ExtraCost(Record):
    """What a team is billed for one of these in the period, in US dollars and cents; `what` says what it is, such as a bucket's name."""

    team: Annotated[str, Field(min_length=1)]
    kind: ExtraKind
    usd: Annotated[Decimal, Field(ge=0, decimal_places=2)]
    project: str = NONE
    what: str = ""


class ExtraCostFile(Record):
    """The file: a list `costs`."""

    costs: list[ExtraCost]


def read_extra_costs(path: Path) -> tuple[ExtraCost, ...]:
    """What the file says. Raises DataFileError with every problem at once."""
    return tuple(read_records(path, ExtraCostFile).costs)
