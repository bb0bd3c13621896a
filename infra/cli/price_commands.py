"""`flexspot prices`: what the price book knows, how old it is, and what it does not know."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from capacity.catalog.capacity_type import CapacityType
from capacity.catalog.price_book import LIST_PRICE_DAYS, SPOT_PRICE_DAYS
from capacity.values.errors import ExitCode
from infra.cli import price_refresh
from infra.cli.command_line import command_group
from infra.cli.console import Format, out, show_table
from infra.cli.stacks import planned
from infra.project import project_here

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.plan.build import StackPlan

app = command_group("The prices that everything is calculated with.")
app.command()(price_refresh.refresh)


@app.callback()
def prices() -> None:
    """The prices that everything is calculated with."""


@app.command()
def check(
    stacks: Annotated[
        list[str] | None, typer.Option("--stack", "-s", help="Check the pools of this stack. Repeatable. Default: all stacks.")
    ] = None,
    max_age_days: Annotated[
        int | None,
        typer.Option(
            "--max-age-days", min=1, help="The age in days from which a price is a finding. Default: 30 for Spot, 180 for list prices."
        ),
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="text for people, json for programs.")] = Format.TEXT,
) -> None:
    """Show the price of every pool's machines, with its source and date; exit code 1 when one is missing or too old."""
    rows = [row for stack in stacks or project_here().stack_names() for row in _rows(stack, planned(stack))]
    missing = [row for row in rows if row["usd_per_hour"] is None]
    for row in rows:
        spot = row["capacity_type"] == CapacityType.SPOT
        row["too_old"] = row["age_days"] is not None and row["age_days"] > (max_age_days or (SPOT_PRICE_DAYS if spot else LIST_PRICE_DAYS))
    old = [row for row in rows if row["too_old"]]
    if form is Format.JSON:
        sys.stdout.write(json.dumps({"prices": rows, "missing": len(missing), "too_old": len(old)}, indent=2) + "\n")
    else:
        show_table(_table(rows))
        unverified = sum(row["verified"] is False for row in rows)
        out.print(f"{len(rows)} prices: {len(missing)} not known, {len(old)} too old, {unverified} not verified (?).")
        if missing:
            out.print("what is not known is left out of every sum and said there; give it in a file that prices_file names.")
    if missing or old:
        raise typer.Exit(ExitCode.UNMET)


def _rows(stack: str, planned_stack: StackPlan) -> Iterator[dict[str, Any]]:
    """A row for each machine of each pool. Money is text, so that no program rounds it."""
    today = datetime.now(UTC).date()
    plan, book = planned_stack.plan, planned_stack.prices
    for pool in plan.pools:
        for machine in pool.machines:
            price = book.paid(machine, plan.region, pool.capacity_type, pool.name)
            source = book.source_of(price) if price else None
            per_gpu = (price.usd_per_hour / pool.gpus_per_node).quantize(Decimal("0.0001")) if price else None
            yield {
                "stack": stack,
                "pool": pool.name,
                "machine": machine,
                "region": plan.region,
                "capacity_type": pool.capacity_type.value,
                "usd_per_hour": str(price.usd_per_hour) if price else None,
                "usd_per_gpu_hour": str(per_gpu) if per_gpu is not None else None,
                "source": price.source if price else None,
                "as_of": source.as_of.isoformat() if source else None,
                "age_days": (today - source.as_of).days if source else None,
                "verified": source.verified if source else None,
                "undated": source.undated if source else None,
            }


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table()
    for heading in ("stack", "pool", "machine", "capacity", "USD/h", "USD/GPU h", "as of", "source"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        known = row["usd_per_hour"] is not None
        day = f"read {row['as_of']}" if row["undated"] else (row["as_of"] or "")
        age = f"[red]{day}[/]" if row["too_old"] else day
        # A question mark for what nobody has checked against the cloud's own list.
        mark = "" if row["verified"] or not known else " ?"
        table.add_row(
            row["stack"],
            row["pool"],
            row["machine"],
            row["capacity_type"],
            row["usd_per_hour"] or "[red]not known[/]",
            row["usd_per_gpu_hour"] or "",
            age,
            f"{row['source'] or ''}{mark}",
        )
    return table
