"""Fresh prices: what the clouds' own lists say, and a price file with those rows in it. Pure: the clouds are asked elsewhere."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from statistics import median_low
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import model_validator

from capacity.catalog.capacity_type import CapacityType
from capacity.catalog.data_files import Record, Source, read_records, unsourced
from capacity.catalog.price_book import Price, PriceFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from capacity.catalog.machines import Cloud, Machine
    from capacity.catalog.price_book import PriceKey


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


COMPUTE_ENGINE = "services/6F81-5844-456A"
"""The name of the service whose SKUs these are."""

_MEBIBYTES = 1024
_UNITS = frozenset({"h", "GiBy.h"})


class MalformedCatalogError(ValueError):
    """A reply of another form than the API has."""


@dataclass(frozen=True)
class Sku:
    """A part, its price an hour (of a core, a GPU, or a GiB of memory) in US dollars, and where it is sold so."""

    description: str
    regions: tuple[str, ...]
    usage_unit: str
    usd: Decimal


class FamilySkus(Record):
    """What the parts of a family are called."""

    family: str
    core: str
    ram: str
    source: str


class SkuFile(Record):
    """The data file."""

    sources: dict[str, Source]
    families: list[FamilySkus]
    gpus: dict[str, str]

    @model_validator(mode="after")
    def _rows_are_sourced(self) -> SkuFile:
        if problem := unsourced(((each.family, each.source) for each in self.families), self.sources):
            raise ValueError(problem)
        return self


class SkuPrices:
    """Looks prices up by part, region and way of buying."""

    def __init__(self, skus: Iterable[Sku]) -> None:
        self._usd: dict[tuple[str, str], set[Decimal]] = {}
        for sku in skus:
            part = sku.description.partition(" running in ")[0]
            if sku.usage_unit in _UNITS and sku.usd > 0:
                for region in sku.regions:
                    self._usd.setdefault((part, region), set()).add(sku.usd)

    def of_machine(self, machine: Machine, region: str, capacity_type: CapacityType) -> Decimal | None:
        """US dollars an hour, to six decimals. None where the name of a part is not known, or one has no price, or more than one."""
        file, family = _names(), machine.name.rpartition("-")[0]
        names = next((each for each in file.families if each.family == family), None)
        if names is None or machine.local_ssd_gb or capacity_type not in {CapacityType.ON_DEMAND, CapacityType.SPOT}:
            return None
        spot = capacity_type is CapacityType.SPOT
        prefix = "Spot Preemptible " if spot else ""
        parts = [(f"{prefix}{names.core}", Decimal(machine.vcpu)), (f"{prefix}{names.ram}", Decimal(machine.memory_mib) / _MEBIBYTES)]
        if machine.gpu is not None:
            gpu = file.gpus.get(machine.gpu.name, "")
            parts.append((f"{gpu} attached to Spot Preemptible VMs" if spot else gpu, Decimal(machine.gpu.count)))
        sums = [usd * amount if (usd := self._one(part, region)) is not None else None for part, amount in parts]
        known = [each for each in sums if each is not None]
        return sum(known, Decimal(0)).quantize(Decimal("0.000001")).normalize() if len(known) == len(sums) else None

    def _one(self, part: str, region: str) -> Decimal | None:
        found = self._usd.get((part, region), set[Decimal]())
        return next(iter(found)) if len(found) == 1 else None


def skus_of_page(page: Mapping[str, Any]) -> Iterator[Sku]:
    """The SKUs of one page of the API that are priced in US dollars. Raises MalformedCatalogError."""
    try:
        for each in page.get("skus", []):
            # The newest price comes last, and of its tiers the last is what is paid above free amounts.
            expression: dict[str, Any] = each["pricingInfo"][-1]["pricingExpression"] if each.get("pricingInfo") else {}
            if tiers := expression.get("tieredRates"):
                price = tiers[-1]["unitPrice"]
                if price["currencyCode"] == "USD":
                    # Zeros are left out of the API's JSON, and whole numbers of 64 bits are text.
                    usd = Decimal(int(price.get("units", 0))) + Decimal(int(price.get("nanos", 0))).scaleb(-9)
                    yield Sku(each["description"], tuple(each.get("serviceRegions", ())), expression["usageUnit"], usd)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MalformedCatalogError("an SKU of another form than the catalog's reference has") from error


@cache
def _names() -> SkuFile:
    return read_records(Path(__file__).parent / "gcp_skus.yaml", SkuFile)


_HEADER = """\
# Prices of one's own, before the shipped ones: `prices_file` of a stack and `--prices` of commands take this file.
# `flexspot prices refresh` writes it. It replaces rows that it asked for, keeps all others, and keeps no comments.
"""


@dataclass(frozen=True)
class PriceChange:
    """A row that is new (`before` is None) or has another price; US dollars an hour. Rows of pools are nobody's to refresh."""

    key: PriceKey
    before: Decimal | None
    after: Decimal


def with_fresh_rows(file: PriceFile | None, cloud: Cloud, rows: Iterable[Price], sources: dict[str, Source]) -> PriceFile:
    """`file` with the fresh rows in place of its own of the same machine, region and capacity type, and the sources that rows name.

    What a contract says of pools, discounts and commitments is on no list, and stays.
    """
    known = PriceFile(cloud=cloud, sources={}) if file is None else file
    by_key = {_key(each): each for each in known.prices if each.pool is None} | {_key(each): each for each in rows}
    prices = [*(by_key[key] for key in sorted(by_key)), *(each for each in known.prices if each.pool is not None)]
    used = {each.source for each in (*prices, *known.services, *known.families, *known.discounts, *known.commitments)}
    kept = {name: source for name, source in (known.sources | sources).items() if name in used}
    return known.model_copy(update={"sources": kept, "prices": prices})


def changes(before: PriceFile | None, after: PriceFile) -> list[PriceChange]:
    """What differs, by machine, region and capacity type."""
    known = {} if before is None else {_key(each): each.usd_per_hour for each in before.prices if each.pool is None}
    found = ((_key(each), each.usd_per_hour) for each in after.prices if each.pool is None)
    return [PriceChange(key, known.get(key), usd) for key, usd in found if known.get(key) != usd]


def as_yaml(file: PriceFile) -> str:
    """The file as text, a row a line. Money is quoted, so that no reader takes it for a float."""
    sources = yaml.safe_dump(
        {"sources": {name: each.model_dump(exclude_defaults=True) for name, each in file.sources.items()}}, sort_keys=False, width=120
    )
    parts = [_HEADER, f"cloud: {file.cloud}\n", sources]
    for name in ("services", "families", "prices", "discounts", "commitments"):
        if rows := [_row(each.model_dump(mode="json", exclude_none=True)) for each in getattr(file, name)]:
            parts += [f"{name}:\n", *rows]
    return "".join(parts)


def _row(fields: dict[str, str]) -> str:
    return f"  - {yaml.safe_dump(fields, default_flow_style=True, sort_keys=False, width=10_000).strip()}\n"


def _key(price: Price) -> PriceKey:
    return price.machine, price.region, price.capacity_type
