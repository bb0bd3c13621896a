"""AWS' price list and Spot price history, as their APIs answer.

https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_pricing_GetProducts.html: each product is JSON in a text.
https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSpotPriceHistory.html: the newest price of each zone comes first.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from statistics import median_low
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def product_filters(machine: str, region: str) -> list[dict[str, str]]:
    """What get_products must be asked for Linux on shared hardware at list price; without them Windows, hosts and blocks come too."""
    asked = {
        "instanceType": machine,
        "regionCode": region,
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
        "marketoption": "OnDemand",
    }
    return [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in asked.items()]


def on_demand_usd(products: Iterable[str]) -> Decimal | None:
    """US dollars an hour of the machine that products are of. None where there is no price, or more than one: nobody knows which."""
    found: set[Decimal] = set()
    for each in products:
        product: dict[str, Any] = json.loads(each)
        for term in product.get("terms", {}).get("OnDemand", {}).values():
            for dimension in term.get("priceDimensions", {}).values():
                usd = _decimal(dimension.get("pricePerUnit", {}).get("USD"))
                if dimension.get("unit") == "Hrs" and usd:
                    found.add(usd.normalize())
    return found.pop() if len(found) == 1 else None


def spot_usd(history: Iterable[Mapping[str, Any]], region: str) -> dict[str, Decimal]:
    """US dollars an hour by machine: the median of what the region's zones cost last, of two the lower. Local zones are left out."""
    zone = re.compile(re.escape(region) + "[a-z]")
    newest: dict[tuple[str, str], tuple[Any, Decimal]] = {}
    for each in history:
        key, usd = (each["InstanceType"], each["AvailabilityZone"]), _decimal(each["SpotPrice"])
        if usd and zone.fullmatch(each["AvailabilityZone"]) and (key not in newest or each["Timestamp"] > newest[key][0]):
            newest[key] = each["Timestamp"], usd
    by_machine: dict[str, list[Decimal]] = {}
    for (machine, _), (_, usd) in newest.items():
        by_machine.setdefault(machine, []).append(usd)
    return {machine: median_low(prices).normalize() for machine, prices in by_machine.items()}


def _decimal(text: object) -> Decimal | None:
    try:
        usd = Decimal(str(text))
    except InvalidOperation:
        return None
    return usd if usd.is_finite() and usd > 0 else None
