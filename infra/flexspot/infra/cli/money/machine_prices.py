"""What the commands of `flexspot advise` have in common: options of machines, prices and jobs, and the prices that they come to."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.machines import Vendor, machines_of
from flexspot.capacity.catalog.price_book import prices_of
from flexspot.capacity.cost.costed_plan import MachinePrices, machine_prices
from flexspot.capacity.cost.figures import day_of, days_of, price_data
from flexspot.capacity.values.errors import ExplainedError, nearest
from flexspot.capacity.values.quantities import cents
from flexspot.infra.cli.command_line import bad_usage
from flexspot.infra.cli.console import out
from flexspot.infra.cli.given_files import given_file
from flexspot.infra.cli.tables import as_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexspot.capacity.catalog.price_book import PriceBook
    from flexspot.capacity.cost.figures import PriceUsed


class Number(StrEnum):
    """How help names numbers that are read as Decimal."""

    USD = "USD"
    PERCENT = "PERCENT"


OneMachine = Annotated[str, typer.Option("--machine", "-m", help="The cloud's name of the machine type: p4d.24xlarge, a2-highgpu-8g.")]
Region = Annotated[str, typer.Option("--region", "-r", help="The region whose prices apply.")]
PricesFile = Annotated[Path | None, typer.Option("--prices", help="Your own price file; its prices come before the shipped ones.")]
OnDemandUsd = Annotated[str | None, typer.Option("--on-demand-usd", metavar=Number.USD, help="The on-demand price of a machine per hour.")]
SpotUsd = Annotated[str | None, typer.Option("--spot-usd", metavar=Number.USD, help="The Spot price of a machine per hour.")]

_PERCENT_AT_MOST = 100


def usd(option: str, text: str | None) -> Decimal | None:
    """An amount above 0, read exactly as written: a float would not be. Raises BadParameter for anything else."""
    number = _decimal(option, text)
    if number is not None and number <= 0:
        raise typer.BadParameter(f"{option} is {text}; a price is above 0.")
    return number


def percent(option: str, text: str | None) -> Decimal | None:
    """From 0 to below 100. Raises BadParameter for anything else."""
    number = _decimal(option, text)
    if number is not None and not 0 <= number < _PERCENT_AT_MOST:
        raise typer.BadParameter(f"{option} is {text}; from 0 to below 100 is allowed.")
    return number


def _decimal(option: str, text: str | None) -> Decimal | None:
    if text is None:
        return None
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite():
        raise typer.BadParameter(f"{option} is {text!r}; write a number such as 32.77.")
    return number


def cloud_of(machine: str) -> Vendor:
    """The cloud whose catalog has the machine. Raises ExplainedError when none has it."""
    for cloud in Vendor:
        if machine in machines_of(cloud):
            return cloud
    known = [name for cloud in Vendor for name in machines_of(cloud)]
    raise bad_usage(f"no catalog has a machine {machine}.", nearest(machine, known))


PRICE_FORM = "its form is that of flexspot/capacity/catalog/prices"


def with_own(book: PriceBook, path: Path | None) -> PriceBook:
    """The book with the prices of the file before its own. Raises ExplainedError with everything that is wrong with the file."""
    return book if path is None else given_file(path, book.overridden_by, PRICE_FORM)


def prices_of_machine(
    cloud: Vendor,
    machine: str,
    region: str,
    prices_file: Path | None,
    *,
    on_demand_usd: Decimal | None = None,
    spot_usd: Decimal | None = None,
) -> MachinePrices:
    """The prices given, before those of a file of one's own, before the shipped ones. Raises ExplainedError without a list price."""
    book = with_own(prices_of(cloud), prices_file)
    given_usd = {CapacityType.ON_DEMAND: on_demand_usd, CapacityType.SPOT: spot_usd}
    try:
        found = machine_prices(book, machine, region)
    except ExplainedError:
        if on_demand_usd is None:
            raise
        found = MachinePrices(on_demand_usd)
    return replace(
        found,
        on_demand_usd_per_hour=on_demand_usd or found.on_demand_usd_per_hour,
        spot_usd_per_hour=spot_usd or found.spot_usd_per_hour,
        used={kind: price for kind, price in found.used.items() if given_usd.get(kind) is None},
    )


def priced(machine: str, region: str, prices_file: Path | None, on_demand_usd: str | None, spot_usd: str | None) -> MachinePrices:
    """`prices_of_machine` from what the command line gives."""
    return prices_of_machine(
        cloud_of(machine),
        machine,
        region,
        prices_file,
        on_demand_usd=usd("--on-demand-usd", on_demand_usd),
        spot_usd=usd("--spot-usd", spot_usd),
    )


def spot_price(prices: MachinePrices, machine: str, region: str) -> Decimal:
    """The Spot price. Raises ExplainedError where none is known."""
    if prices.spot_usd_per_hour is None:
        problem = f"no Spot price of {machine} in {region} is known."
        raise bad_usage(problem, "give it with --spot-usd.")
    return prices.spot_usd_per_hour


def write_json(content: dict[str, Any], *prices: MachinePrices) -> None:
    """To standard output, with where the prices are from."""
    told = [price_data(each) for each in _used(prices)]
    sys.stdout.write(as_json({**content, "prices": told}))


def _used(prices: Iterable[MachinePrices]) -> list[PriceUsed]:
    """The prices of the book, each once."""
    return list(dict.fromkeys(price for each in prices for price in each.used.values()))


def show_prices(*prices: MachinePrices) -> None:
    """Where the book's prices are from, of which day they are, and whether somebody has checked them; those that are old are told."""
    used, today = _used(prices), datetime.now(UTC).date()
    for price in used:
        age = (today - price.as_of).days
        old = f", {age} days old" if age > days_of(price) else ""
        told = f"{price.what} {price.usd} USD an hour{'' if price.verified else ' (?)'}, {day_of(price)}{old}: {price.source}"
        out.print(f"[dim]{escape(told)}[/]")
    if any(not each.verified for each in used):
        out.print("[dim](?) not checked against the cloud's own list. Give your own prices with --prices.[/]")


def money(usd: Decimal | None) -> str | None:
    """An amount in cents, as text; None where it is not known."""
    return None if usd is None else str(cents(usd))


def finite(number: float) -> float | None:
    """JSON has no word for what never ends."""
    return round(number, 4) if math.isfinite(number) else None


@dataclass(frozen=True)
class JobOptions:
    """The options that describe a job: fields of JobNeeds as they stand."""

    machine: Annotated[
        str | None, typer.Option("--machine", "-m", help="The cloud's name of the machine type: p4d.24xlarge, a2-highgpu-8g.")
    ] = None
    region: Annotated[str | None, typer.Option("--region", "-r", help="The region whose prices apply.")] = None
    work_hours: Annotated[
        float | None, typer.Option("--hours", help="Hours that the work takes on --nodes machines without interruptions.")
    ] = None
    nodes: Annotated[int, typer.Option("--nodes", help="How many machines work at the same time.")] = 1
    interruptible: Annotated[
        bool, typer.Option("--interruptible/--not-interruptible", help="Whether the work may be stopped at any time.")
    ] = True
    checkpoint_minutes: Annotated[
        float | None, typer.Option("--checkpoint-minutes", help="Minutes that the work pauses for a checkpoint, if it makes any.")
    ] = None
    piece_hours: Annotated[
        float | None, typer.Option("--piece-hours", help="Hours of the longest piece that can be repeated on its own: a trial, a batch.")
    ] = None
    user_facing: Annotated[bool, typer.Option("--user-facing", help="Users wait for its answers, as of a model server.")] = False
    interactive: Annotated[bool, typer.Option("--interactive", help="Somebody works in it now and then, as in a notebook.")] = False
    start_within_hours: Annotated[float | None, typer.Option("--start-within-hours", help="Hours from now within which it must start.")] = (
        None
    )
    deadline_hours: Annotated[float | None, typer.Option("--deadline-hours", help="Hours from now within which it must end.")] = None
    steady: Annotated[bool, typer.Option("--steady", help="It runs around the clock for a year.")] = False
    shared: Annotated[bool, typer.Option("--shared", help="Several teams compete for the capacity.")] = False
    guaranteed: Annotated[bool, typer.Option("--guaranteed", help="The team needs a guaranteed share.")] = False
    data_region: Annotated[str | None, typer.Option("--data-region", help="The region of its data, if another.")] = None
    data_gib: Annotated[int, typer.Option("--data-gib", help="GiB of data that each start reads.")] = 0
    interruptions_per_node_hour: Annotated[
        float | None,
        typer.Option(
            "--interruptions-per-hour", help="Interruptions of one node per hour. Default: 0.25, the course's figure; measure yours."
        ),
    ] = None
    gang_share_taken: Annotated[
        float | None,
        typer.Option(
            "--gang-share-taken",
            help="The share of a gang's nodes that one interruption takes. Default: 0.5, from records; 0: one node at a time.",
        ),
    ] = None
    gang_interruptions_per_hour: Annotated[
        float | None,
        typer.Option(
            "--gang-interruptions-per-hour", help="Measured interruptions per hour of the whole gang; overrides the two options above."
        ),
    ] = None
    restart_minutes: Annotated[float | None, typer.Option("--restart-minutes", help="Minutes from a new node to work. Default: 10.")] = None
    spot_wait_hours: Annotated[
        float | None, typer.Option("--spot-wait-hours", help="Hours until Spot capacity comes. Default: 0.5, an assumption.")
    ] = None
    flex_start_wait_hours: Annotated[
        float | None, typer.Option("--flex-start-wait-hours", help="Hours until DWS gives capacity. Default: 12, an assumption.")
    ] = None
