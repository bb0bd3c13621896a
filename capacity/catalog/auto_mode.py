"""EKS Auto Mode: the machines that it launches, the add-ons that it has in itself, how long its nodes live and what they cost."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from capacity.catalog.data_files import Record, Source, read_records, unsourced
from capacity.catalog.versions import Addon

_FILE = Path(__file__).parent / "auto_mode.yaml"


class _Families(Record):
    """Families of EC2's machines, such as g6e."""

    source: str
    names: frozenset[str]


class _Addons(Record):
    """EKS's add-ons."""

    source: str
    names: frozenset[Addon]


class _Lifetime(Record):
    """How long a node lives at most, whatever runs on it."""

    hours: Annotated[int, Field(ge=1)]
    source: str


class NodeFee(Record):
    """What AWS bills for running a node: a part, in percent, of its machine's on-demand price, for machines of some categories or all."""

    categories: tuple[str, ...]
    percent: Annotated[Decimal, Field(gt=Decimal(0), lt=Decimal(100))]
    source: str


class AutoMode(Record):
    """The data file."""

    sources: dict[str, Source]
    families: _Families
    addons_in_itself: Annotated[_Addons, Field(alias="addons")]
    node_lifetime: _Lifetime
    fees: Annotated[tuple[NodeFee, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _sourced_and_complete(self) -> AutoMode:
        rows = [
            ("families", self.families.source),
            ("addons", self.addons_in_itself.source),
            ("node_lifetime", self.node_lifetime.source),
            *((f"fees.{number}", each.source) for number, each in enumerate(self.fees)),
        ]
        if wrong := unsourced(rows, self.sources):
            raise ValueError(wrong)
        if [number for number, each in enumerate(self.fees) if not each.categories] != [len(self.fees) - 1]:
            raise ValueError("fees: the last row, and no other, is of all categories")
        return self

    @property
    def addons(self) -> frozenset[Addon]:
        """The add-ons that it has in itself: none of them is installed."""
        return self.addons_in_itself.names

    def launches(self, machine: str) -> bool:
        """Whether it launches a machine such as g6e.xlarge, by AWS's list of the day."""
        family, _, size = machine.partition(".")
        return family in self.families.names and size not in {"nano", "micro", "small"}

    def fee_of(self, machine: str) -> NodeFee:
        """The fee on a node with a machine such as g6e.xlarge."""
        category = re.match("[a-z]*", machine)
        return next(each for each in self.fees if not each.categories or (category and category[0] in each.categories))


@cache
def auto_mode() -> AutoMode:
    """What is known of EKS Auto Mode."""
    return read_records(_FILE, AutoMode)
