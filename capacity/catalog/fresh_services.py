"""Fresh prices of what is billed besides machines, out of AWS's price list. Pure: AWS is asked elsewhere."""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, model_validator

from capacity.catalog.data_files import Record, Source, read_records, unsourced
from capacity.catalog.price_book import ServiceItem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_REGION = r"(?:(?:[A-Z]{2,3}[0-9]|EU|[a-z]{2}(?:-[a-z]+)+-[0-9])-)?"
"""A region's short name before a usage type: USE1, EU for Ireland, of KMS the whole name. TS- of another product is none."""


class UsageItem(Record):
    """What AWS's price list calls an item; see aws_usage.yaml."""

    item: ServiceItem
    service: str
    family: str | None = None
    usage: str
    unit: str
    units: Annotated[int, Field(ge=1)] = 1
    source: str

    def filters(self, region: str) -> list[dict[str, str]]:
        """What get_products must be asked for."""
        asked = {"regionCode": region} | ({"productFamily": self.family} if self.family else {})
        return [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in asked.items()]

    def is_of(self, usage_type: str) -> bool:
        """Whether a usage type of some region is this one."""
        return re.fullmatch(_REGION + re.escape(self.usage), usage_type) is not None


class UsageFile(Record):
    """The data file."""

    sources: dict[str, Source]
    items: tuple[UsageItem, ...]

    @model_validator(mode="after")
    def _rows_are_sourced(self) -> UsageFile:
        if problem := unsourced(((each.item, each.source) for each in self.items), self.sources):
            raise ValueError(problem)
        return self


@cache
def usage_items() -> tuple[UsageItem, ...]:
    """The items that AWS's price list can be asked for."""
    return read_records(Path(__file__).with_name("aws_usage.yaml"), UsageFile).items


def service_usd(products: Iterable[str], item: UsageItem) -> Decimal | None:
    """US dollars by the item's measure. None where there is no price, or more than one: nobody knows which."""
    found = {usd for each in products if (usd := _first_paid_tier(json.loads(each), item)) is not None}
    return (found.pop() / item.units).normalize() if len(found) == 1 else None


def _first_paid_tier(product: dict[str, Any], item: UsageItem) -> Decimal | None:
    if not item.is_of(str(product.get("product", {}).get("attributes", {}).get("usagetype", ""))):
        return None
    tiers = [(begin, usd) for unit, begin, usd in on_demand_prices(product) if unit.lower() == item.unit.lower()]
    return min(tiers)[1] if tiers else None


def on_demand_prices(product: dict[str, Any]) -> Iterator[tuple[str, Decimal, Decimal]]:
    """What a product of the price list costs, where it costs something: unit, from which amount on, and US dollars."""
    for term in product.get("terms", {}).get("OnDemand", {}).values():
        for dimension in term.get("priceDimensions", {}).values():
            usd, begin = decimal_of(dimension.get("pricePerUnit", {}).get("USD")), decimal_of(dimension.get("beginRange", "0"))
            if usd is not None and usd > 0 and begin is not None:
                yield str(dimension.get("unit", "")), begin, usd


def decimal_of(text: object) -> Decimal | None:
    """The number that a list has; None for what is none."""
    try:
        number = Decimal(str(text))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
