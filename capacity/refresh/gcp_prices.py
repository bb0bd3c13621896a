"""Google's billing catalog: machines are billed by core, memory and GPU, and each part is an SKU of its own.

https://cloud.google.com/billing/v1/how-tos/catalog-api: a price is `units` dollars and `nanos` of a billionth each, by usage unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import model_validator

from capacity.capacity_type import CapacityType
from capacity.records import Record, Source, read_records, unsourced

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from capacity.machines import Machine

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
