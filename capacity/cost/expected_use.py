"""What a month is expected to be like: how much of its pools each class uses, and what of the cloud is used that no plan knows."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from capacity.catalog.capacity_type import CapacityType
from capacity.catalog.data_files import DataFileError, Record, Source, read_records
from capacity.catalog.price_book import HOURS_OF_A_MONTH
from capacity.values.errors import ExitCode, ExplainedError
from capacity.values.names import Name

_SHIPPED = Path(__file__).with_name("expected_use.yaml")

Percent = Annotated[Decimal, Field(ge=0, le=100)]
Hours = Annotated[Decimal, Field(ge=0, le=HOURS_OF_A_MONTH)]
Gib = Annotated[int, Field(ge=0, le=1_000_000_000)]
LoadBalancers = Annotated[int, Field(ge=0, le=10_000)]


class ClassUse(Record):
    """How much of its pools a class uses, in percent of their ceilings, in `hours_per_month` hours of a month.

    `used_percent` is of the pools of the capacity type that stands first in its route, `later_percent` of those after it, and
    `by_capacity_type` of a type wherever it stands. Where classes share a pool, each is given an equal part of it.
    """

    used_percent: Percent
    later_percent: Percent
    by_capacity_type: dict[CapacityType, Percent] = Field(default_factory=dict)
    hours_per_month: Hours
    source: str = "given"

    def share(self, capacity_type: CapacityType, *, first: bool) -> Decimal:
        """The part of a ceiling that is used on average over the whole month, 0 to 1."""
        percent = self.by_capacity_type.get(capacity_type, self.used_percent if first else self.later_percent)
        return percent / 100 * self.hours_per_month / HOURS_OF_A_MONTH


class ExpectedUse(Record):
    """A whole month. `system_nodes_percent` is of the way from least to most, `other_work_percent` of the room; GiB and counts as named."""

    as_of: date
    sources: dict[str, Source]
    classes: dict[Name, ClassUse]
    other_classes: ClassUse
    system_nodes_percent: Percent
    other_work_percent: Percent
    bucket_gib: Gib
    internet_gib: Gib
    nat_gib: Gib
    load_balancers: LoadBalancers

    def of_class(self, name: str) -> ClassUse:
        """The use of a class, or of any class of one's own."""
        return self.classes.get(name, self.other_classes)


@cache
def shipped_use() -> ExpectedUse:
    """What is expected where nobody says otherwise."""
    return read_records(_SHIPPED, ExpectedUse)


class OwnClassUse(Record):
    """What a file of one's own says of a class; the fields of ClassUse, each of which may be left out."""

    used_percent: Percent | None = None
    later_percent: Percent | None = None
    by_capacity_type: dict[CapacityType, Percent] | None = None
    hours_per_month: Hours | None = None


class OwnUse(Record):
    """A file of one's own; the fields of ExpectedUse, each of which may be left out."""

    classes: dict[Name, OwnClassUse] = Field(default_factory=dict)
    other_classes: OwnClassUse = OwnClassUse()
    system_nodes_percent: Percent | None = None
    other_work_percent: Percent | None = None
    bucket_gib: Gib | None = None
    internet_gib: Gib | None = None
    nat_gib: Gib | None = None
    load_balancers: LoadBalancers | None = None


def read_use_file(path: Path) -> ExpectedUse:
    """The shipped expectations, with what a file of one's own says in their place, field by field.

    Raises ExplainedError for what is no such file, naming each field that is not understood.
    """
    try:
        own = read_records(path, OwnUse)
    except (DataFileError, OSError, UnicodeDecodeError) as error:
        remedy = "write it as capacity/cost/expected_use.yaml is written, with only the fields that differ."
        raise ExplainedError(f"{path} cannot be used.", remedy, exit_code=ExitCode.BAD_USAGE, evidence=(str(error),)) from error
    shipped = shipped_use()
    changes = {name: value for name in own.model_fields_set - {"classes", "other_classes"} if (value := getattr(own, name)) is not None}
    other = _with(shipped.other_classes, own.other_classes)
    classes = shipped.classes | {name: _with(shipped.classes.get(name, other), each) for name, each in own.classes.items()}
    return shipped.model_copy(update={**changes, "classes": classes, "other_classes": other})


def _with(use: ClassUse, own: OwnClassUse) -> ClassUse:
    changes = {name: value for name in own.model_fields_set if (value := getattr(own, name)) is not None}
    return use.model_copy(update={**changes, "source": "given"}) if changes else use
