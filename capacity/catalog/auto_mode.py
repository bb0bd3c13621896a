"""EKS Auto Mode: the machines that it launches, the add-ons that it has in itself, how long its nodes live."""

from __future__ import annotations

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


class AutoMode(Record):
    """The data file."""

    sources: dict[str, Source]
    families: _Families
    addons_in_itself: Annotated[_Addons, Field(alias="addons")]
    node_lifetime: _Lifetime

    @model_validator(mode="after")
    def _sourced_and_complete(self) -> AutoMode:
        rows = [
            ("families", self.families.source),
            ("addons", self.addons_in_itself.source),
            ("node_lifetime", self.node_lifetime.source),
        ]
        if wrong := unsourced(rows, self.sources):
            raise ValueError(wrong)
        return self

    @property
    def addons(self) -> frozenset[Addon]:
        """The add-ons that it has in itself: none of them is installed."""
        return self.addons_in_itself.names

    def launches(self, machine: str) -> bool:
        """Whether it launches a machine such as g6e.xlarge, by AWS's list of the day."""
        family, _, size = machine.partition(".")
        return family in self.families.names and size not in {"nano", "micro", "small"}


@cache
def auto_mode() -> AutoMode:
    """What is known of EKS Auto Mode."""
    return read_records(_FILE, AutoMode)
