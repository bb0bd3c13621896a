"""What the commands of `flexspot advise` ask in common: a machine, its place, its prices, amounts of money."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from capacity.values.errors import ExitCode, ExplainedError
from infra.cli.console import Format

if TYPE_CHECKING:
    from capacity.catalog.machines import Cloud
    from capacity.cost.machine_prices import MachinePrices


class Number(StrEnum):
    """How help names numbers that are read as Decimal."""

    USD = "USD"
    PERCENT = "PERCENT"


OneMachine = Annotated[str, typer.Option("--machine", "-m", help="The machine type, as the cloud calls it: p4d.24xlarge, a2-highgpu-8g.")]
Region = Annotated[str, typer.Option("--region", "-r", help="The region whose prices count.")]
PricesFile = Annotated[Path | None, typer.Option("--prices", help="A price file of your own, before the shipped prices.")]
OnDemandUsd = Annotated[str | None, typer.Option("--on-demand-usd", metavar=Number.USD, help="On-demand price of a machine and hour.")]
SpotUsd = Annotated[str | None, typer.Option("--spot-usd", metavar=Number.USD, help="Spot price of a machine and hour.")]
AsFormat = Annotated[Format, typer.Option("--format", help="text for people, json for programs.")]

_PERCENT_AT_MOST = 100


def given(written: dict[str, Any]) -> dict[str, Any]:
    """Those options that were given."""
    return {name: value for name, value in written.items() if value is not None}


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


def refuse_what_is_not_finite(*numbers: float | None) -> None:
    """Raises BadParameter for nan and infinity, which a range without an end lets pass."""
    if any(number is not None and not math.isfinite(number) for number in numbers):
        raise typer.BadParameter("nan and inf are no durations, rates or shares; write finite numbers.")


def cloud_of(machine: str) -> Cloud:
    """The cloud whose catalog has the machine. Raises ExplainedError when none has it."""
    from capacity.catalog.machines import Cloud, machines_of  # noqa: PLC0415
    from capacity.values.errors import nearest  # noqa: PLC0415

    for cloud in Cloud:
        if machine in machines_of(cloud):
            return cloud
    known = [name for cloud in Cloud for name in machines_of(cloud)]
    raise ExplainedError(f"no catalog has a machine {machine}.", nearest(machine, known), exit_code=ExitCode.BAD_USAGE)


def prices_of_machine(  # noqa: PLR0913 -- the two prices that stand in for the book's
    cloud: Cloud,
    machine: str,
    region: str,
    prices_file: Path | None,
    *,
    on_demand_usd: Decimal | None = None,
    spot_usd: Decimal | None = None,
) -> MachinePrices:
    """The prices given, before those of a file of one's own, before the shipped ones. Raises ExplainedError without a list price."""
    from capacity.catalog.data_files import DataFileError  # noqa: PLC0415
    from capacity.catalog.price_book import prices_of  # noqa: PLC0415
    from capacity.cost.machine_prices import MachinePrices, machine_prices  # noqa: PLC0415

    book = prices_of(cloud)
    if prices_file is not None:
        try:
            book = book.overridden_by(prices_file)
        except (DataFileError, OSError, UnicodeDecodeError) as error:
            remedy = "mend it; its form is that of capacity/catalog/prices."
            raise ExplainedError(
                f"the prices of {prices_file} cannot be used.", remedy, exit_code=ExitCode.BAD_USAGE, evidence=(str(error),)
            ) from error
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
        raise ExplainedError(problem, "give it with --spot-usd.", exit_code=ExitCode.BAD_USAGE)
    return prices.spot_usd_per_hour
