"""`flexspot advise simulate`: strategies over records of Spot availability, as a table, JSON, and a page with a plot."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 -- typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from capacity.values.errors import ExitCode, ExplainedError
from infra.cli.advise_options import (
    AsFormat,
    Number,
    OnDemandUsd,
    OneMachine,
    PricesFile,
    Region,
    SpotUsd,
    priced,
    spot_price,
    usd,
)
from infra.cli.advise_report import finite, money, shown_usd, write_json
from infra.cli.console import Format, err, show_table

if TYPE_CHECKING:
    from capacity.cost.comparison import Comparison


def simulate(  # noqa: PLR0913, PLR0917 -- each is an option of the command line
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Traces of Spot availability; those of one folder are zones.")],
    machine: OneMachine,
    region: Region,
    hours: Annotated[float, typer.Option("--hours", min=0.1, max=8760, help="Work without interruptions.")],
    deadline: Annotated[float, typer.Option("--deadline-hours", min=0.1, max=8760, help="From each start.")],
    nodes: Annotated[int, typer.Option("--nodes", min=1, help="Nodes of the gang.")] = 1,
    interval_minutes: Annotated[float, typer.Option("--interval-minutes", min=1, max=1e6, help="Work between checkpoints.")] = 30.0,
    checkpoint_minutes: Annotated[float, typer.Option("--checkpoint-minutes", min=0, max=1e6, help="The pause for one checkpoint.")] = 1.0,
    restart_minutes: Annotated[float, typer.Option("--restart-minutes", min=0, max=1e6, help="From a new node to working again.")] = 10.0,
    flex_usd: Annotated[str | None, typer.Option("--flex-start-usd", metavar=Number.USD, help="With it, flex-start is played too.")] = None,
    flex_wait: Annotated[float, typer.Option("--flex-start-wait-hours", min=0, max=8760, help="How long flex-start makes wait.")] = 12.0,
    starts: Annotated[int, typer.Option("--starts", min=1, max=1000, help="Moments of each trace at which the job starts.")] = 10,
    html: Annotated[Path | None, typer.Option("--html", help="Write table and plot to this page.")] = None,
    on_demand_usd: OnDemandUsd = None,
    spot_usd: SpotUsd = None,
    prices_file: PricesFile = None,
    form: AsFormat = Format.TEXT,
) -> None:
    """Play strategies over records of Spot availability; exit code 1 when the deadline cannot be met even on demand."""
    from capacity.cost.comparison import compare  # noqa: PLC0415
    from capacity.cost.comparison_page import comparison_page  # noqa: PLC0415
    from capacity.cost.replay import Job, Rates  # noqa: PLC0415
    from capacity.cost.traces import read_traces  # noqa: PLC0415

    prices = priced(machine, region, prices_file, on_demand_usd, spot_usd)
    job = Job(
        work_seconds=round(hours * 3600),
        deadline_seconds=round(deadline * 3600),
        checkpoint_interval_seconds=round(interval_minutes * 60),
        nodes=nodes,
        checkpoint_seconds=round(checkpoint_minutes * 60),
        restart_seconds=round(restart_minutes * 60),
    )
    rates = Rates(
        spot_price(prices, machine, region), prices.on_demand_usd_per_hour, usd("--flex-start-usd", flex_usd), round(flex_wait * 3600)
    )
    found = [compare(zones, job, rates, starts=starts) for zones in read_traces(folder)]
    if html is not None:
        _write_page(html, comparison_page(found))
    if form is Format.JSON:
        write_json({"comparisons": [_comparison_data(each) for each in found]})
    else:
        for each in found:
            show_table(comparison_table(each))
    if not job.feasible:
        err.print("the deadline cannot be met even on demand: give more hours, more nodes with fewer hours of work, or shorter restarts.")
        raise typer.Exit(ExitCode.UNMET)


def comparison_table(found: Comparison) -> Table:
    """The strategies of one record, as a table; `tests/bench_traces.py` prints the same."""
    share = f"Spot {found.available_share * 100:.0f} % of the time"
    title = f"{found.name}: {share}; knowing the future: {shown_usd(found.bound_usd)} USD at least"
    table = Table("strategy", "USD", "saved %", "ends in h", "missed", "interrupted", "at least USD", title=title, title_justify="left")
    for each in found.results:
        saved = "" if each.saved_percent is None else f"{each.saved_percent:z.0f}"
        ends = "" if each.mean_finish_hours is None else f"{each.mean_finish_hours:.1f}"
        missed = f"{each.missed} of {each.starts}"
        interrupted = f"{each.mean_interruptions:.1f}"
        table.add_row(each.strategy, shown_usd(each.mean_usd), saved, ends, missed, interrupted, shown_usd(each.mean_bound_usd))
    return table


def _comparison_data(found: Comparison) -> dict[str, Any]:
    return {
        "name": found.name,
        "zones": found.zones,
        "available_share": finite(found.available_share),
        "bound_usd": money(found.bound_usd),
        "strategies": [
            {
                "strategy": each.strategy,
                "starts": each.starts,
                "finished": each.finished,
                "missed": each.missed,
                "mean_usd": money(each.mean_usd),
                "mean_bound_usd": money(each.mean_bound_usd),
                "saved_percent": None if each.saved_percent is None else f"{each.saved_percent:.1f}",
                "mean_finish_hours": None if each.mean_finish_hours is None else finite(each.mean_finish_hours),
                "mean_interruptions": finite(each.mean_interruptions),
            }
            for each in found.results
        ],
    }


def _write_page(path: Path, page: str) -> None:
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        remedy = "name a file in a folder that is there and may be written."
        raise ExplainedError(f"{path} cannot be written: {error.strerror}.", remedy, exit_code=ExitCode.BAD_USAGE) from error
