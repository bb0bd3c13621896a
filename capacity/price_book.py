"""The price book: what one machine costs an hour, in which region and capacity type, and who says so."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from capacity.capacity_type import CapacityType
from capacity.machines import Cloud
from capacity.records import Record, read_records

_PRICES = Path(__file__).parent / "prices"

PriceKey = tuple[str, str, CapacityType]
"""Machine name, region, capacity type."""


class PriceSource(Record):
    """Where prices were read and when. `verified` is false for a figure that was never checked against the cloud's own list."""

    citation: Annotated[str, Field(min_length=10)]
    as_of: date
    verified: bool


class Price(Record):
    """The price of one machine for one hour, in US dollars; `source` names an entry of the file's sources."""

    machine: str
    region: str
    capacity_type: CapacityType
    usd_per_hour: Annotated[Decimal, Field(gt=0)]
    source: str


class PriceFile(Record):
    """A price file: the prices of one cloud, each with a source."""

    cloud: Cloud
    sources: dict[str, PriceSource]
    prices: list[Price]

    @model_validator(mode="after")
    def _every_price_has_a_source_and_stands_once(self) -> PriceFile:
        seen: set[PriceKey] = set()
        for price in self.prices:
            if price.source not in self.sources:
                raise ValueError(f"{price.machine}: source {price.source!r} is not one of {', '.join(self.sources)}")
            key = (price.machine, price.region, price.capacity_type)
            if key in seen:
                raise ValueError(f"{' '.join(key)} has two prices")
            seen.add(key)
        return self


def read_prices(path: Path) -> dict[PriceKey, Price]:
    """The prices of a file, by machine, region and capacity type. Raises DataFileError when the file breaks its schema."""
    return {(price.machine, price.region, price.capacity_type): price for price in read_records(path, PriceFile).prices}


@cache
def prices_of(cloud: Cloud) -> dict[PriceKey, Price]:
    """The shipped prices of `cloud`."""
    return read_prices(_PRICES / f"{cloud}.yaml")
