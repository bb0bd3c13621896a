"""The prices of one machine in one region, as the arithmetic needs them: looked up in one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity.catalog.capacity_type import CapacityType
from capacity.catalog.price_book import priced_as
from capacity.values.errors import ExitCode, ExplainedError, nearest

if TYPE_CHECKING:
    from decimal import Decimal

    from capacity.catalog.price_book import PriceBook


@dataclass(frozen=True)
class MachinePrices:
    """US dollars an hour of one machine, GPUs included. None: not known, which is not the same as nothing to pay."""

    on_demand_usd_per_hour: Decimal
    spot_usd_per_hour: Decimal | None = None
    flex_start_usd_per_hour: Decimal | None = None


def machine_prices(book: PriceBook, machine: str, region: str) -> MachinePrices:
    """What the book knows of a machine.

    Raises ExplainedError when it has no on-demand price, which is what everything else is measured against.
    """
    found = {each: book.find(machine, region, priced_as(each)) for each in CapacityType}
    on_demand = found[CapacityType.ON_DEMAND]
    if on_demand is None:
        machines = sorted({name for name, place, each in book.prices if place == region and each is CapacityType.ON_DEMAND})
        regions = sorted({place for name, place, each in book.prices if name == machine and each is CapacityType.ON_DEMAND})
        known = f"{machine} has one in {', '.join(regions)}" if regions else f"in {region}, {nearest(machine, machines)}"
        raise ExplainedError(
            f"the price book has no on-demand price of {machine} in {region} ({book.cloud}).",
            f"{known}; or give the prices with --on-demand-usd and --spot-usd, or in a file with --prices.",
            exit_code=ExitCode.BAD_USAGE,
        )
    usd = {each: price.usd_per_hour if price else None for each, price in found.items()}
    # Queued capacity is flex-start with all nodes at once; the cloud has one price for both.
    flex_start = usd[CapacityType.FLEX_START] or usd[CapacityType.QUEUED]
    return MachinePrices(on_demand.usd_per_hour, usd[CapacityType.SPOT], flex_start)
