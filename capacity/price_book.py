"""The price book: what one machine costs an hour, in which region and capacity type, and who says so."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from capacity.capacity_type import CapacityType
from capacity.machines import Cloud
from capacity.records import DataFileError, Record, Source, read_records, unsourced

_PRICES = Path(__file__).parent / "prices"

PriceKey = tuple[str, str, CapacityType]
"""Machine name, region, capacity type."""


class Price(Record):
    """The price of one machine, GPUs included, for one hour in US dollars; `source` names an entry of the file's sources."""

    machine: str
    region: str
    capacity_type: CapacityType
    usd_per_hour: Annotated[Decimal, Field(gt=0)]
    source: str


class PriceFile(Record):
    """A price file: the prices of one cloud, each with a source."""

    cloud: Cloud
    sources: dict[str, Source]
    prices: list[Price]

    @model_validator(mode="after")
    def _every_price_has_a_source_and_stands_once(self) -> PriceFile:
        if problem := unsourced(((price.machine, price.source) for price in self.prices), self.sources):
            raise ValueError(problem)
        seen: set[PriceKey] = set()
        for price in self.prices:
            key = (price.machine, price.region, price.capacity_type)
            if key in seen:
                raise ValueError(f"{' '.join(key)} has two prices")
            seen.add(key)
        return self


@dataclass(frozen=True)
class PriceBook:
    """The prices of one cloud. `sources` are those of the rows, by the name that a row gives."""

    cloud: Cloud
    prices: dict[PriceKey, Price]
    sources: dict[str, Source]

    def find(self, machine: str, region: str, capacity_type: CapacityType) -> Price | None:
        """The price, or None: nothing is known, which is not the same as nothing to pay."""
        return self.prices.get((machine, region, capacity_type))

    def source_of(self, price: Price) -> Source:
        """Where a price is from."""
        return self.sources[price.source]

    def overridden_by(self, path: Path) -> PriceBook:
        """The book with the rows of a file of one's own before its own. Raises DataFileError for a file of another cloud or schema."""
        file = read_records(path, PriceFile)
        if file.cloud is not self.cloud:
            raise DataFileError(f"{path.name} has prices of {file.cloud}, but those of {self.cloud} are needed")
        # The file's sources get its name, because both files may call a source the same.
        sources = {f"{path.name}: {name}": source for name, source in file.sources.items()}
        rows = [price.model_copy(update={"source": f"{path.name}: {price.source}"}) for price in file.prices]
        return PriceBook(self.cloud, self.prices | _by_key(rows), self.sources | sources)


def _by_key(prices: list[Price]) -> dict[PriceKey, Price]:
    return {(price.machine, price.region, price.capacity_type): price for price in prices}


def read_prices(path: Path) -> PriceBook:
    """The prices of a file. Raises DataFileError when the file breaks its schema."""
    file = read_records(path, PriceFile)
    return PriceBook(file.cloud, _by_key(file.prices), file.sources)


@cache
def prices_of(cloud: Cloud) -> PriceBook:
    """The shipped prices of `cloud`."""
    return read_prices(_PRICES / f"{cloud}.yaml")
