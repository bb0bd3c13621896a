"""Fresh prices: what the clouds' own lists say of machines and services, and a price file with those rows. Pure: nobody is asked here."""

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


class UsageFile(SourcedFile):
    """The data file."""

    items: tuple[UsageItem, ...]


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
    tiers = [(begin, usd) for unit, begin, usd in _on_demand_prices(product) if unit.lower() == item.unit.lower()]
    return min(tiers)[1] if tiers else None


def _on_demand_prices(product: dict[str, Any]) -> Iterator[tuple[str, Decimal, Decimal]]:
    """What a product of the price list costs, where it costs something: unit, from which amount on, and US dollars."""
    for term in product.get("terms", {}).get("OnDemand", {}).values():
        for dimension in term.get("priceDimensions", {}).values():
            usd, begin = _decimal_of(dimension.get("pricePerUnit", {}).get("USD")), _decimal_of(dimension.get("beginRange", "0"))
            if usd is not None and usd > 0 and begin is not None:
                yield str(dimension.get("unit", "")), begin, usd


def _decimal_of(text: object) -> Decimal | None:
    """The number that a list has; None for what is none."""
    try:
        number = Decimal(str(text))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


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
    prices = (price for each in products for price in _on_demand_prices(json.loads(each)))
    found = {usd.normalize() for unit, _, usd in prices if unit == "Hrs"}
    return found.pop() if len(found) == 1 else None


def spot_usd(history: Iterable[Mapping[str, Any]], region: str) -> dict[str, Decimal]:
    """US dollars an hour by machine: the median of what the region's zones cost last, of two the lower. Local zones are left out."""
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
    """As what a machine is sold, of what the clouds' lists have prices of."""
    sold = {CapacityType.ON_DEMAND: machine.on_demand, CapacityType.SPOT: True, CapacityType.FLEX_START: machine.flex_start}
    return tuple(each for each in sold if sold[each])


def listed_items(cloud: Vendor) -> tuple[ServiceItem, ...]:
    """What is billed besides machines, as far as a cloud's list can be asked for it."""
    return tuple(_names().services) if cloud is Vendor.GCP else tuple(each.item for each in usage_items())


def is_listed(cloud: Vendor, row: Price | ServicePrice) -> bool:
    """Whether a row is one that fresh prices can replace: prices of pools, reservations and what no list tells are a contract's."""
    if isinstance(row, ServicePrice):
        return row.item in listed_items(cloud)
    machine = machines_of(cloud).get(row.machine)
    return row.pool is None and machine is not None and row.capacity_type in sold_as(machine)


COMPUTE_ENGINE = "services/6F81-5844-456A"
"""The name of the service whose SKUs these are."""

_MEBIBYTES = 1024
_PER_HOUR = {"h": Decimal(1), "GiBy.h": Decimal(1), "GiBy.mo": Decimal(1) / HOURS_OF_A_MONTH}
"""Units in which parts are sold, and what an hour is of each."""


class MalformedCatalogError(ValueError):
    """A reply of another form than the API has."""


@dataclass(frozen=True)
class Sku:
    """A part, its price by its unit (of a core, a GPU, a GiB of memory or of disk) in US dollars, and where it is sold so."""

    description: str
    regions: tuple[str, ...]
    usage_unit: str
    usd: Decimal


class FamilySkus(Record):
    """What the parts of a family are called; those of flex-start are without the words that all of its parts begin with."""

    family: str
    core: str
    ram: str
    flex_start_core: str | None = None
    flex_start_ram: str | None = None
    source: str


class SkuFile(SourcedFile):
    """The data file."""

    families: list[FamilySkus]
    gpus: dict[str, str]
    spot_gpus: dict[str, str]
    local_ssd: str
    services: dict[ServiceItem, str]


_FLEX_START = "DWS Defined Duration"
_SPOT = "Spot Preemptible"


class SkuPrices:
    """Looks prices up by part, region and way of buying."""

    def __init__(self, skus: Iterable[Sku]) -> None:
        self._usd: dict[tuple[str, str], set[tuple[Decimal, str]]] = {}
        for sku in skus:
            part = re.split(" running in | in ", sku.description, maxsplit=1)[0]
            if sku.usage_unit in _PER_HOUR and sku.usd > 0:
                for region in sku.regions:
                    self._usd.setdefault((part, region), set()).add((sku.usd, sku.usage_unit))

    def of_machine(self, machine: Machine, region: str, capacity_type: CapacityType) -> Decimal | None:
        """US dollars an hour, to six decimals. None where the name of a part is not known, or one has no price, or more than one."""
        found = [(self._per_hour(part, region), amount) for part, amount in _parts(machine, capacity_type)]
        usd = [price * amount for price, amount in found if price is not None]
        return sum(usd, Decimal(0)).quantize(Decimal("0.000001")).normalize() if found and len(usd) == len(found) else None

    def of_service(self, item: ServiceItem, region: str) -> Decimal | None:
        """US dollars for a GiB and month of a disk. None where the item is none of these, or has no price, or more than one."""
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
    """The parts of which a machine is billed and how much of each; none where not all of their names are known."""
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
    # The catalog's GB of local SSD are disks of 375 GiB.
    return parts + ([(ssd, Decimal(machine.local_ssd_gb))] if machine.local_ssd_gb else [])


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


def gcp_gpu_skus() -> tuple[tuple[str, str], ...]:
    """GPUs by the machine catalog's names, and what Google's SKUs call them; a Spot name of its own stands beside the other."""
    file = _names()
    return (*file.gpus.items(), *file.spot_gpus.items())


_HEADER = """\
# Prices of one's own, before the shipped ones: `prices_file` of a stack and `--prices` of commands take this file.
# `flexspot prices refresh` writes it. It replaces rows that it asked for, keeps all others, and keeps no comments.
"""


@dataclass(frozen=True)
class PriceChange:
    """A row that is new (`before` is None) or has another price: of a machine in US dollars an hour, of an item by its measure.

    Rows of pools are nobody's to refresh.
    """

    what: str
    region: str
    by: str
    before: Decimal | None
    after: Decimal


def with_fresh_rows(
    file: PriceFile | None, cloud: Vendor, rows: Iterable[Price], services: Iterable[ServicePrice], sources: dict[str, Source]
) -> PriceFile:
    """`file` with the fresh rows in place of its own of the same machine, region and capacity type, or of the same item and region, and
    the sources that rows name.

    What a contract says of pools, discounts and commitments is on no list, and stays. So do prices with a start, and what has one gets
    no fresh row.
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
    """What differs, by machine, region and capacity type, then by item and region."""
    known = {} if before is None else _rows_of(before)
    return [PriceChange(*key, known.get(key), usd) for key, usd in _rows_of(after).items() if known.get(key) != usd]


def _rows_of(file: PriceFile) -> dict[tuple[str, str, str], Decimal]:
    listed = [each for each in file.prices if each.pool is None and each.start is None]
    machines = {(each.machine, each.region, each.capacity_type.value): each.usd_per_hour for each in listed}
    return machines | {(each.item.value, each.region or "all regions", each.item.measure.value): each.usd for each in file.services}


def as_yaml(file: PriceFile) -> str:
    """The file as text, a row a line. Money is quoted, so that no reader takes it for a float."""
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
