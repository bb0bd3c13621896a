"""Fresh prices: rows from the replies of the clouds' price lists, and a price file with those rows. Pure: no requests are sent here."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from statistics import median_low
from typing import TYPE_CHECKING, Annotated, Any

import yaml
from pydantic import Field

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.data_files import Record, Source, SourcedFile, read_records
from flexspot.capacity.catalog.machines import Vendor, machines_of
from flexspot.capacity.catalog.price_book import HOURS_OF_A_MONTH, Price, PriceFile, ServiceItem, ServicePrice

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from flexspot.capacity.catalog.machines import Machine
    from flexspot.capacity.catalog.price_book import PriceKey


_REGION = r"(?:(?:[A-Z]{2,3}[0-9]|EU|[a-z]{2}(?:-[a-z]+)+-[0-9])-)?"
"""Prefix of a usage type: a region's short name such as USE1, EU for Ireland, or for KMS the whole name. TS- of another product is not one.
"""


class UsageItem(Record):
    """The names of an item in AWS's price list; see aws_usage.yaml."""

    item: ServiceItem
    service: str
    family: str | None = None
    usage: str
    unit: str
    units: Annotated[int, Field(ge=1)] = 1
    source: str

    def filters(self, region: str) -> list[dict[str, str]]:
        """Return the filters of a get_products request for the item."""
        fields = {"regionCode": region} | ({"productFamily": self.family} if self.family else {})
        return [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in fields.items()]

    def is_of(self, usage_type: str) -> bool:
        """Return whether a usage type of any region is this item."""
        return re.fullmatch(_REGION + re.escape(self.usage), usage_type) is not None


class UsageFile(SourcedFile):
    """The items of AWS's price list, each with a source."""

    items: tuple[UsageItem, ...]


@cache
def usage_items() -> tuple[UsageItem, ...]:
    """Return the items that can be looked up in AWS's price list."""
    return read_records(Path(__file__).with_name("aws_usage.yaml"), UsageFile).items


def service_usd(products: Iterable[str], item: UsageItem) -> Decimal | None:
    """Return US dollars per unit of the item's measure. None if there is no price or several, which are ambiguous."""
    found = {usd for each in products if (usd := _first_paid_tier(json.loads(each), item)) is not None}
    return (found.pop() / item.units).normalize() if len(found) == 1 else None


def _first_paid_tier(product: dict[str, Any], item: UsageItem) -> Decimal | None:
    if not item.is_of(str(product.get("product", {}).get("attributes", {}).get("usagetype", ""))):
        return None
    tiers = [(begin, usd) for unit, begin, usd in _on_demand_prices(product) if unit.lower() == item.unit.lower()]
    return min(tiers)[1] if tiers else None


def _on_demand_prices(product: dict[str, Any]) -> Iterator[tuple[str, Decimal, Decimal]]:
    """Yield the prices above zero of a product in the price list: unit, start of the tier, US dollars."""
    for term in product.get("terms", {}).get("OnDemand", {}).values():
        for dimension in term.get("priceDimensions", {}).values():
            usd, begin = _decimal_of(dimension.get("pricePerUnit", {}).get("USD")), _decimal_of(dimension.get("beginRange", "0"))
            if usd is not None and usd > 0 and begin is not None:
                yield str(dimension.get("unit", "")), begin, usd


def _decimal_of(text: object) -> Decimal | None:
    """Return a number of a list. None for text that is not a finite number."""
    try:
        number = Decimal(str(text))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def product_filters(machine: str, region: str) -> list[dict[str, str]]:
    """Return the get_products filters for Linux on shared hardware at list price. Without them Windows, hosts and blocks are included."""
    fields = {
        "instanceType": machine,
        "regionCode": region,
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
        "marketoption": "OnDemand",
    }
    return [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in fields.items()]


def on_demand_usd(products: Iterable[str]) -> Decimal | None:
    """Return the hourly price of a machine from its products, in US dollars. None if there is no price or several, which are ambiguous."""
    prices = (price for each in products for price in _on_demand_prices(json.loads(each)))
    found = {usd.normalize() for unit, _, usd in prices if unit == "Hrs"}
    return found.pop() if len(found) == 1 else None


def spot_usd(history: Iterable[Mapping[str, Any]], region: str) -> dict[str, Decimal]:
    """Return US dollars an hour by machine: the lower median of the latest price of the region's zones. Local zones are excluded."""
    zone = re.compile(re.escape(region) + "[a-z]")
    newest: dict[tuple[str, str], tuple[Any, Decimal]] = {}
    for each in history:
        key, usd = (each["InstanceType"], each["AvailabilityZone"]), _decimal_of(each["SpotPrice"])
        if usd and usd > 0 and zone.fullmatch(each["AvailabilityZone"]) and (key not in newest or each["Timestamp"] > newest[key][0]):
            newest[key] = each["Timestamp"], usd
    by_machine: dict[str, list[Decimal]] = {}
    for (machine, _), (_, usd) in newest.items():
        by_machine.setdefault(machine, []).append(usd)
    return {machine: median_low(prices).normalize() for machine, prices in by_machine.items()}


def sold_as(machine: Machine) -> tuple[CapacityType, ...]:
    """Return the capacity types of a machine that the clouds' lists have prices for."""
    sold = {CapacityType.ON_DEMAND: machine.on_demand, CapacityType.SPOT: True, CapacityType.FLEX_START: machine.flex_start}
    return tuple(each for each in sold if sold[each])


def listed_items(cloud: Vendor) -> tuple[ServiceItem, ...]:
    """Return the items other than machines that a cloud's list has prices for."""
    return tuple(_names().services) if cloud is Vendor.GCP else tuple(each.item for each in usage_items())


def is_listed(cloud: Vendor, row: Price | ServicePrice) -> bool:
    """Return whether fresh prices can replace a row. Prices of pools, reservations and unlisted items belong to a contract."""
    if isinstance(row, ServicePrice):
        return row.item in listed_items(cloud)
    machine = machines_of(cloud).get(row.machine)
    return row.pool is None and machine is not None and row.capacity_type in sold_as(machine)


COMPUTE_ENGINE = "services/6F81-5844-456A"
"""API name of the service that these SKUs belong to."""

_MEBIBYTES = 1024
_PER_HOUR = {"h": Decimal(1), "GiBy.h": Decimal(1), "GiBy.mo": Decimal(1) / HOURS_OF_A_MONTH}
"""Units in which parts are sold, and the fraction of one that an hour uses."""


class MalformedCatalogError(ValueError):
    """A reply that does not have the API's documented form."""


@dataclass(frozen=True)
class Sku:
    """A part and its price in US dollars per unit: of a core, a GPU, a GiB of memory or of disk."""

    description: str
    regions: tuple[str, ...]
    """Regions that sell the part at this price."""
    usage_unit: str
    usd: Decimal


class FamilySkus(Record):
    """The names of a family's parts. Flex-start names omit the prefix that all flex-start parts share."""

    family: str
    core: str
    ram: str
    flex_start_core: str | None = None
    flex_start_ram: str | None = None
    source: str


class SkuFile(SourcedFile):
    """The SKU names of families, GPUs, local SSD and services, with sources."""

    families: list[FamilySkus]
    gpus: dict[str, str]
    spot_gpus: dict[str, str]
    local_ssd: str
    services: dict[ServiceItem, str]


_FLEX_START = "DWS Defined Duration"
_SPOT = "Spot Preemptible"


class SkuPrices:
    """A lookup of SKU prices by part, region and capacity type."""

    def __init__(self, skus: Iterable[Sku]) -> None:
        self._usd: dict[tuple[str, str], set[tuple[Decimal, str]]] = {}
        for sku in skus:
            part = re.split(" running in | in ", sku.description, maxsplit=1)[0]
            if sku.usage_unit in _PER_HOUR and sku.usd > 0:
                for region in sku.regions:
                    self._usd.setdefault((part, region), set()).add((sku.usd, sku.usage_unit))

    def of_machine(self, machine: Machine, region: str, capacity_type: CapacityType) -> Decimal | None:
        """Return US dollars an hour, to six decimals. None if a part has no known name, no price, or several."""
        found = [(self._per_hour(part, region), amount) for part, amount in _parts(machine, capacity_type)]
        usd = [price * amount for price, amount in found if price is not None]
        return sum(usd, Decimal(0)).quantize(Decimal("0.000001")).normalize() if found and len(usd) == len(found) else None

    def of_service(self, item: ServiceItem, region: str) -> Decimal | None:
        """Return US dollars per GiB and month of a disk. None if the item is not a disk, or has no price or several."""
        name = _names().services.get(item)
        price = None if name is None else self._one(name, region)
        return price[0].normalize() if price is not None and price[1] == "GiBy.mo" else None

    def _per_hour(self, part: str, region: str) -> Decimal | None:
        price = self._one(part, region)
        return None if price is None else price[0] * _PER_HOUR[price[1]]

    def _one(self, part: str, region: str) -> tuple[Decimal, str] | None:
        found = self._usd.get((part, region), set[tuple[Decimal, str]]())
        return next(iter(found)) if len(found) == 1 else None


def _parts(machine: Machine, capacity_type: CapacityType) -> list[tuple[str, Decimal]]:
    """Return the billed parts of a machine and the amount of each. Empty if the name of a part is unknown."""
    file, name = _names(), machine.name.removesuffix("-nolssd")
    family = name.rpartition("-")[0]
    names = next((each for each in file.families if each.family == family), None)
    gpu = "" if machine.gpu is None else file.gpus.get(machine.gpu.name)
    if names is None or gpu is None:
        return []
    match capacity_type:
        case CapacityType.ON_DEMAND:
            core, ram, attached, ssd = names.core, names.ram, gpu, file.local_ssd
        case CapacityType.SPOT:
            core, ram = f"{_SPOT} {names.core}", f"{_SPOT} {names.ram}"
            named = gpu if machine.gpu is None else file.spot_gpus.get(machine.gpu.name, gpu)
            attached, ssd = (f"{each} attached to {_SPOT} VMs" for each in (named, file.local_ssd))
        case CapacityType.FLEX_START if machine.flex_start and names.flex_start_core and names.flex_start_ram:
            core, ram, ssd = (f"{_FLEX_START} {each}" for each in (names.flex_start_core, names.flex_start_ram, file.local_ssd))
            attached = f"{gpu} attached to {_FLEX_START} VMs"
        case _:
            return []
    parts = [(core, Decimal(machine.vcpu)), (ram, Decimal(machine.memory_mib) / _MEBIBYTES)]
    parts += [(attached, Decimal(machine.gpu.count))] if machine.gpu is not None else []
    # The catalog's GB of local SSD count disks of 375 GiB.
    return parts + ([(ssd, Decimal(machine.local_ssd_gb))] if machine.local_ssd_gb else [])


def skus_of_page(page: Mapping[str, Any]) -> Iterator[Sku]:
    """Yield the SKUs of one page of the API that are priced in US dollars. Raises MalformedCatalogError."""
    try:
        for each in page.get("skus", []):
            # The newest price comes last. Of its tiers, the last is the price above free amounts.
            expression: dict[str, Any] = each["pricingInfo"][-1]["pricingExpression"] if each.get("pricingInfo") else {}
            if tiers := expression.get("tieredRates"):
                price = tiers[-1]["unitPrice"]
                if price["currencyCode"] == "USD":
                    # The API's JSON omits zeros, and writes 64-bit integers as text.
                    usd = Decimal(int(price.get("units", 0))) + Decimal(int(price.get("nanos", 0))).scaleb(-9)
                    yield Sku(each["description"], tuple(each.get("serviceRegions", ())), expression["usageUnit"], usd)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MalformedCatalogError("an SKU of another form than the catalog's reference has") from error


@cache
def _names() -> SkuFile:
    return read_records(Path(__file__).parent / "gcp_skus.yaml", SkuFile)


def gcp_gpu_skus() -> tuple[tuple[str, str], ...]:
    """Return GPUs by the machine catalog's names, with their names in Google's SKUs. A separate Spot name is a second entry."""
    file = _names()
    return (*file.gpus.items(), *file.spot_gpus.items())


_HEADER = """\
# Prices of one's own, before the shipped ones: `prices_file` of a stack and `--prices` of commands take this file.
# `flexspot prices refresh` writes it. It replaces rows that it asked for, keeps all others, and keeps no comments.
"""


@dataclass(frozen=True)
class PriceChange:
    """A row that is new (`before` is None) or has a new price: of a machine in US dollars an hour, of an item per measure.

    Rows of pools are never refreshed.
    """

    what: str
    region: str
    by: str
    before: Decimal | None
    after: Decimal


def with_fresh_rows(
    file: PriceFile | None, cloud: Vendor, rows: Iterable[Price], services: Iterable[ServicePrice], sources: dict[str, Source]
) -> PriceFile:
    """Return `file` with the fresh rows in place of its own, and with the sources that its rows name.

    A fresh row replaces one of the same machine, region and capacity type, or of the same item and region. Contract terms for pools,
    discounts and commitments are on no list and are kept. Prices with a start are kept too, and get no fresh row.
    """
    known = PriceFile(cloud=cloud, sources={}) if file is None else file
    dated = {_key(each) for each in known.prices if each.start is not None and each.pool is None}
    own = [each for each in known.prices if each.pool is not None or _key(each) in dated]
    by_key = {_key(each): each for each in (*known.prices, *rows) if each.pool is None and _key(each) not in dated}
    prices = [*(by_key[key] for key in sorted(by_key)), *own]
    by_item = {(each.item, each.region): each for each in (*known.services, *services)}
    billed = [by_item[key] for key in sorted(by_item, key=lambda key: (key[0], key[1] or ""))]
    contract = (*known.discounts, *known.commitments, *known.spend_commitments)
    used = {each.source for each in (*prices, *billed, *known.families, *contract)}
    kept = {name: source for name, source in (known.sources | sources).items() if name in used}
    return known.model_copy(update={"sources": kept, "prices": prices, "services": billed})


def changes(before: PriceFile | None, after: PriceFile) -> list[PriceChange]:
    """Return the changed rows by machine, region and capacity type, then by item and region."""
    known = {} if before is None else _rows_of(before)
    return [PriceChange(*key, known.get(key), usd) for key, usd in _rows_of(after).items() if known.get(key) != usd]


def _rows_of(file: PriceFile) -> dict[tuple[str, str, str], Decimal]:
    listed = [each for each in file.prices if each.pool is None and each.start is None]
    machines = {(each.machine, each.region, each.capacity_type.value): each.usd_per_hour for each in listed}
    return machines | {(each.item.value, each.region or "all regions", each.item.measure.value): each.usd for each in file.services}


def as_yaml(file: PriceFile) -> str:
    """Return the file as text, one row a line. Money is quoted, so that readers do not parse it as a float."""
    sources = yaml.safe_dump(
        {"sources": {name: each.model_dump(exclude_defaults=True) for name, each in file.sources.items()}}, sort_keys=False, width=120
    )
    parts = [_HEADER, f"cloud: {file.cloud}\n", sources]
    for name in ("services", "families", "prices", "discounts", "commitments", "spend_commitments"):
        if rows := [_row(each.model_dump(mode="json", exclude_none=True)) for each in getattr(file, name)]:
            parts += [f"{name}:\n", *rows]
    return "".join(parts)


def _row(fields: dict[str, str]) -> str:
    return f"  - {yaml.safe_dump(fields, default_flow_style=True, sort_keys=False, width=10_000).strip()}\n"


def _key(price: Price) -> PriceKey:
    return price.machine, price.region, price.capacity_type
