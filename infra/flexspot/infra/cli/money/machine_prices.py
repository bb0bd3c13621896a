"""Shared parts of the `flexspot advise` commands: options for machines, prices and jobs, and the prices that result from them."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.machines import Vendor, machines_of
from flexspot.capacity.catalog.price_book import prices_of
from flexspot.capacity.cost.costed_plan import MachinePrices, machine_prices
from flexspot.capacity.cost.estimates import JobNeeds
from flexspot.capacity.cost.figures import day_of, days_of, price_data
from flexspot.capacity.values.errors import ExplainedError, nearest
from flexspot.capacity.values.quantities import cents
from flexspot.infra.cli.command_line import PRICE_FORM, bad_usage, given_file, option, options_of
from flexspot.infra.cli.console import as_json, out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from flexspot.capacity.catalog.price_book import PriceBook
    from flexspot.capacity.cost.figures import PriceUsed


ALL_PERCENT = 100


def _number(fits: Callable[[Decimal], bool], allowed: str) -> Callable[[str], Decimal]:
    """Return a parser of an option's exact number; a float would round it.

    The parser raises BadParameter for a number that does not fit.
    """

    def parsed(text: str) -> Decimal:
        try:
            found = Decimal(text)
        except InvalidOperation:
            found = Decimal("NaN")
        if not (found.is_finite() and fits(found)):
            raise typer.BadParameter(f"{text!r} is not {allowed}.")
        return found

    return parsed


def number_option(name: str, unit: str, fits: Callable[[Decimal], bool], allowed: str, words: str) -> Any:
    """Return an option for a number that must fit."""
    return option(name, words, metavar=unit, parser=_number(fits, allowed))


def usd_option(name: str, words: str) -> Any:
    """Return the option for a machine's price."""
    return number_option(name, "USD", lambda usd: usd > 0, "a price above 0, such as 32.77", words)


_MACHINE, _REGION = "The cloud's name of the machine type: p4d.24xlarge, a2-highgpu-8g.", "The region whose prices apply."
OneMachine = Annotated[str, option("--machine -m", _MACHINE)]
Region = Annotated[str, option("--region -r", _REGION)]
PricesFile = Annotated[Path | None, option("--prices", "Your own price file; its prices override the shipped ones.")]
OnDemandUsd = Annotated[Decimal | None, usd_option("--on-demand-usd", "The on-demand price of a machine per hour.")]
SpotUsd = Annotated[Decimal | None, usd_option("--spot-usd", "The Spot price of a machine per hour.")]


def cloud_of(machine: str) -> Vendor:
    """Return the cloud whose catalog has the machine. Raises ExplainedError for an unknown machine."""
    for cloud in Vendor:
        if machine in machines_of(cloud):
            return cloud
    known = [name for cloud in Vendor for name in machines_of(cloud)]
    raise bad_usage(f"--machine: no catalog has {machine}.", f"choose another machine; {nearest(machine, known)}.")


def with_own(book: PriceBook, path: Path | None) -> PriceBook:
    """Return the book, overridden by the file's prices. Raises ExplainedError with all problems of the file."""
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
    """Return a machine's prices: the given ones first, then those of the file, then the shipped ones.

    Raises ExplainedError if there is no list price.
    """
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


def write_json(content: dict[str, Any], *prices: MachinePrices) -> None:
    """Print JSON to standard output, with the sources of the prices."""
    sources = [price_data(each) for each in _used(prices)]
    sys.stdout.write(as_json({**content, "prices": sources}))


def _used(prices: Iterable[MachinePrices]) -> list[PriceUsed]:
    """Return the prices of the book, without duplicates."""
    return list(dict.fromkeys(price for each in prices for price in each.used.values()))


def show_prices(*prices: MachinePrices) -> None:
    """Print the source and day of the book's prices, their age if they are old, and whether they were checked."""
    used, today = _used(prices), datetime.now(UTC).date()
    for price in used:
        age = (today - price.as_of).days
        old = f", {age} days old" if age > days_of(price) else ""
        line = f"{price.what} {price.usd} USD an hour{'' if price.verified else ' (?)'}, {day_of(price)}{old}: {price.source}"
        out.print(f"[dim]{escape(line)}[/]")
    if any(not each.verified for each in used):
        out.print("[dim](?) not checked against the cloud's own list. Give your own prices with --prices.[/]")


def money(usd: Decimal | None) -> str | None:
    """Return an amount in cents, as text; None if it is unknown."""
    return None if usd is None else str(cents(usd))


def finite(number: float) -> float | None:
    """Return the number, or None for infinity, which JSON cannot express."""
    return round(number, 4) if math.isfinite(number) else None


job_options = options_of(
    JobNeeds,
    {
        "machine": ("--machine -m", _MACHINE),
        "region": ("--region -r", _REGION),
        "work_hours": ("--hours", "Hours that the work takes on --nodes machines without interruptions."),
        "nodes": ("--nodes", "The number of machines that work at the same time."),
        "interruptible": ("--interruptible/--not-interruptible", "Whether the work may be stopped at any time."),
        "checkpoint_minutes": ("--checkpoint-minutes", "Minutes that the work pauses for a checkpoint, if it writes any."),
        "piece_hours": ("--piece-hours", "Hours of the longest piece that can be repeated on its own: a trial, a batch."),
        "user_facing": ("--user-facing", "Users wait for its answers, as of a model server."),
        "interactive": ("--interactive", "A person works in it now and then, as in a notebook."),
        "start_within_hours": ("--start-within-hours", "Hours from now within which it must start."),
        "deadline_hours": ("--deadline-hours", "Hours from now within which it must end."),
        "steady": ("--steady", "It runs around the clock for a year."),
        "shared": ("--shared", "Several teams compete for the capacity."),
        "guaranteed": ("--guaranteed", "The team needs a guaranteed share."),
        "data_region": ("--data-region", "The region of its data, if it is another one."),
        "data_gib": ("--data-gib", "GiB of data that each start reads."),
        "interruptions_per_node_hour": (
            "--interruptions-per-hour",
            "Interruptions of one node per hour. Default: 0.25, the course's figure; measure yours.",
        ),
        "gang_share_taken": (
            "--gang-share-taken",
            "The share of a gang's nodes that one interruption takes. Default: 0.5, from records; 0: one node at a time.",
        ),
        "gang_interruptions_per_hour": (
            "--gang-interruptions-per-hour",
            "Measured interruptions per hour of the whole gang; overrides the two options above.",
        ),
        "restart_minutes": ("--restart-minutes", "Minutes from a new node to work. Default: 10."),
        "spot_wait_hours": ("--spot-wait-hours", "Hours until Spot capacity is available. Default: 0.5, an assumption."),
        "flex_start_wait_hours": ("--flex-start-wait-hours", "Hours until DWS provides capacity. Default: 12, an assumption."),
    },
)
"""Options that describe a job."""
