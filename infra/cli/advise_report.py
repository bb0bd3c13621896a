"""What the commands of `flexspot advise` ask in common, and what they print: tables for people, JSON for programs."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from capacity.values.errors import ExitCode, ExplainedError
from capacity.values.quantities import as_decimal, cents
from infra.cli.console import Format, out, show_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from capacity.catalog.machines import Cloud
    from capacity.cost.advice import Advice, MixAdvice
    from capacity.cost.costed_plan import MachinePrices
    from capacity.cost.estimates import Estimate
    from capacity.cost.figures import PriceUsed
    from capacity.cost.reservation import ReservationAdvice, ReservedLevel


class Number(StrEnum):
    """How help names numbers that are read as Decimal."""

    USD = "USD"
    PERCENT = "PERCENT"


OneMachine = Annotated[str, typer.Option("--machine", "-m", help="The cloud's name of the machine type: p4d.24xlarge, a2-highgpu-8g.")]
Region = Annotated[str, typer.Option("--region", "-r", help="The region whose prices apply.")]
PricesFile = Annotated[Path | None, typer.Option("--prices", help="Your own price file; its prices come before the shipped ones.")]
OnDemandUsd = Annotated[str | None, typer.Option("--on-demand-usd", metavar=Number.USD, help="The on-demand price of a machine per hour.")]
SpotUsd = Annotated[str | None, typer.Option("--spot-usd", metavar=Number.USD, help="The Spot price of a machine per hour.")]
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
    from capacity.catalog.capacity_type import CapacityType  # noqa: PLC0415
    from capacity.catalog.price_book import prices_of  # noqa: PLC0415
    from capacity.cost.costed_plan import MachinePrices, machine_prices  # noqa: PLC0415
    from infra.cli.given_files import given_file  # noqa: PLC0415

    book = prices_of(cloud)
    if prices_file is not None:
        book = given_file(prices_file, book.overridden_by, "its form is that of capacity/catalog/prices")
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
        raise ExplainedError(problem, "give it with --spot-usd.", exit_code=ExitCode.BAD_USAGE)
    return prices.spot_usd_per_hour


def write_json(content: dict[str, Any], *prices: MachinePrices) -> None:
    """To standard output, with where the prices are from."""
    from capacity.cost.figures import price_data  # noqa: PLC0415

    told = [price_data(each) for each in _used(prices)]
    sys.stdout.write(json.dumps({**content, "prices": told}, indent=2, allow_nan=False) + "\n")


def _used(prices: Iterable[MachinePrices]) -> list[PriceUsed]:
    """The prices of the book, each once."""
    return list(dict.fromkeys(price for each in prices for price in each.used.values()))


def show_prices(*prices: MachinePrices) -> None:
    """Where the book's prices are from, of which day they are, and whether somebody has checked them; those that are old are told."""
    from capacity.cost.figures import day_of, days_of  # noqa: PLC0415

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


def shown_usd(usd: Decimal | None) -> str:
    """For people: with thousands."""
    return "not known" if usd is None else f"{cents(usd):,}"


def show_advice(advice: Advice, form: Format, prices: MachinePrices) -> None:
    """The answer first, then every way with its figures and why it is out."""
    if form is Format.JSON:
        write_json(_advice_data(advice), prices)
        return
    out.print(f"[bold]{advice.method}[/]{_unless(advice)}")
    for title, lines in (("why", advice.reasons), ("with it", advice.practices), ("arithmetic", advice.arithmetic)):
        for line in lines:
            out.print(f"  {title}: {line}")
    table = Table()
    for heading in ("method", "USD", "starts in h", "ends in h", "late", "out because of"):
        table.add_column(heading, overflow="fold")
    for option in advice.options:
        estimate = option.estimate
        late = "" if estimate.late_share is None else f"{estimate.late_share * 100:.0f} %"
        ends = f"{estimate.finish_hours:.1f}" if math.isfinite(estimate.finish_hours) else "never"
        rules = ", ".join(rule.name for rule in option.excluded_by)
        table.add_row(estimate.method.value, _range(estimate), f"{estimate.wait_hours:.1f}", ends, late, rules)
    show_table(table)
    show_prices(prices)


def _unless(advice: Advice) -> str:
    return "".join(f", or {each.method} where a Spot node costs less than {each.usd_per_hour} USD an hour" for each in advice.undecided)


def _range(estimate: Estimate) -> str:
    if estimate.usd_least == estimate.usd_most:
        return shown_usd(estimate.usd_most)
    return f"{shown_usd(estimate.usd_least)} to {shown_usd(estimate.usd_most)}"


def _advice_data(advice: Advice) -> dict[str, Any]:
    return {
        "method": advice.method.value,
        "undecided": [{"method": each.method.value, "below_usd_per_hour": str(each.usd_per_hour)} for each in advice.undecided],
        "reasons": list(advice.reasons),
        "practices": list(advice.practices),
        "arithmetic": list(advice.arithmetic),
        "options": [
            {
                "method": option.estimate.method.value,
                "usd_least": money(option.estimate.usd_least),
                "usd_most": money(option.estimate.usd_most),
                "wait_hours": finite(option.estimate.wait_hours),
                "finish_hours": finite(option.estimate.finish_hours),
                "late_share": option.estimate.late_share,
                "excluded_by": [rule.name for rule in option.excluded_by],
            }
            for option in advice.options
        ],
    }


def show_mix(mix: MixAdvice, form: Format, prices: list[MachinePrices]) -> None:
    """A line for each job, and the sum."""
    if form is Format.JSON:
        jobs = {name: _advice_data(advice) for name, advice in mix.advice.items()}
        data = {"method": mix.method.value, "usd": money(mix.usd), "on_demand_usd": money(mix.on_demand_usd), "jobs": jobs}
        write_json(data, *prices)
        return
    table = Table("job", "method", "USD a run", "why")
    for name, advice in mix.advice.items():
        table.add_row(name, f"{advice.method}{_unless(advice)}", _range(advice.chosen), advice.reasons[-1])
    show_table(table)
    saved = f"{mix.saved_percent:.0f} % less than {shown_usd(mix.on_demand_usd)} USD on demand"
    out.print(f"[bold]{mix.method}[/]: {shown_usd(mix.usd)} USD at most for all runs, {saved}.")
    show_prices(*prices)


def show_reservation(advice: ReservationAdvice, hours: int, form: Format, prices: MachinePrices) -> None:
    """The best level between none and the peak."""
    levels = {"none": advice.none, "best": advice.best, "peak": advice.peak}
    if form is Format.JSON:
        data = {
            name: {"nodes": each.nodes, "usd": money(each.usd), "used_share": f"{as_decimal(each.used_share):.4f}"}
            for name, each in levels.items()
        }
        write_json({"hours": hours, "break_even_share": f"{as_decimal(advice.break_even_share):.4f}", **data}, prices)
        return
    table = Table("", "nodes", f"USD in {hours} h", "of it used")
    for name, each in levels.items():
        table.add_row(name, str(each.nodes), shown_usd(each.usd), _used_share(each))
    show_table(table)
    pays_from = f"{as_decimal(advice.break_even_share * 100):.1f} % of the time"
    out.print(f"reserve {advice.best.nodes} node(s): a node pays for itself when it is used {pays_from}.")
    show_prices(prices)


def _used_share(level: ReservedLevel) -> str:
    return f"{as_decimal(level.used_share * 100):.1f} %" if level.nodes else ""
