"""On-demand prices of machines that pools here are not made of: what programs of anybody's declare, from the clouds' own lists."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import model_validator

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.data_files import Record, read_records
from flexspot.capacity.catalog.machines import Vendor, machines_of
from flexspot.capacity.catalog.price_book import Price

if TYPE_CHECKING:
    from flexspot.capacity.catalog.price_book import PriceBook

_PRICES = Path(__file__).parent / "prices"
_NONE = "-"


class MachineList(Record):
    """A column of prices for each region; `source` is one of the shipped price book of the cloud."""

    cloud: Vendor
    source: str
    regions: tuple[str, ...]
    machines: dict[str, str]

    @model_validator(mode="after")
    def _each_machine_has_a_column_for_each_region(self) -> MachineList:
        for name, row in self.machines.items():
            columns = row.split()
            if len(columns) != len(self.regions) or not all(each == _NONE or Decimal(each) > 0 for each in columns):
                raise ValueError(f"{name} must have {len(self.regions)} prices above 0, or {_NONE}")
        return self


@cache
def machine_list(cloud: Vendor) -> MachineList:
    """The shipped list of `cloud`."""
    return read_records(_PRICES / f"machines-{cloud}.yaml", MachineList)


def listed_price(book: PriceBook, machine: str, region: str, capacity_type: CapacityType) -> Price | None:
    """What a machine is billed at: the book's price, else for on-demand and reserved nodes the list's. None: nothing is known."""
    if (known := book.paid(machine, region, capacity_type)) is not None:
        return known
    if capacity_type not in {CapacityType.ON_DEMAND, CapacityType.RESERVED}:
        return None
    found = machine_list(book.cloud)
    row = found.machines.get(machine)
    if row is None or region not in found.regions or (column := row.split()[found.regions.index(region)]) == _NONE:
        return None
    return Price(machine=machine, region=region, capacity_type=CapacityType.ON_DEMAND, usd_per_hour=Decimal(column), source=found.source)


_SIZES = {"nano": 2, "micro": 2, "small": 2, "medium": 2, "large": 2, "xlarge": 4}
_MODERN = re.compile(r"(?:t3a?|t4g|[cmr][5-9][a-z-]*)\.([a-z0-9]+)")


def vcpu_of(cloud: Vendor, machine: str) -> int | None:
    """How many vCPU a machine has: as the catalog says, or as its size does of EC2's t3, t4g and c, m and r families from the fifth on.

    None: not known.
    """
    if (known := machines_of(cloud).get(machine)) is not None:
        return known.vcpu
    if cloud is Vendor.GCP:
        found = re.fullmatch(r"(?:c2|c2d|c3|c3d|c4|c4a|e2|n1|n2|n2d|n4|t2a|t2d)-[a-z]+-(\d+)(?:-lssd)?", machine)
        return int(found[1]) if found else None
    found = _MODERN.fullmatch(machine)
    if found is None:
        return None
    size = found[1]
    if (several := re.fullmatch(r"(\d+)xlarge", size)) is not None:
        return 4 * int(several[1])
    if size == "medium" and not machine.startswith("t"):
        return 1
    return _SIZES.get(size)
