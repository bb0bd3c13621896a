"""`flexspot advise simulate`: strategies played over records of when Spot machines were there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flexspot.capacity.catalog.capacity_type import CapacityType, facts_of
from flexspot.capacity.catalog.price_book import FACTS_OF_CLOUD
from flexspot.capacity.cost.replay import Job, Rates, compare, read_traces
from flexspot.capacity.values.errors import ExitCode
from flexspot.infra.cli.command_line import AsFormat, Format
from flexspot.infra.cli.console import err, out, table_console
from flexspot.infra.cli.money.machine_prices import (
    OnDemandUsd,
    OneMachine,
    PricesFile,
    Region,
    SpotUsd,
    cloud_of,
    finite,
    money,
    priced,
    show_prices,
    spot_price,
    write_json,
)
from flexspot.infra.cli.tables import Table, print_table, shown_usd

if TYPE_CHECKING:
    from flexspot.capacity.catalog.capacity_type import CapacityTypeFacts
    from flexspot.capacity.cost.replay import Comparison


_NOTICE = (
    "Seconds before an interruption at which the job saves. Default: the cloud's notice if a checkpoint fits into it; 0: it does not save."
)


def simulate(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A folder of Spot traces; files of one machine in the same folder are its zones.")
    ],
    machine: OneMachine,
    region: Region,
    hours: Annotated[float, typer.Option("--hours", min=0.1, max=8760, help="Hours of work without interruptions.")],
    deadline: Annotated[float, typer.Option("--deadline-hours", min=0.1, max=8760, help="Hours from each start to the deadline.")],
    nodes: Annotated[int, typer.Option("--nodes", min=1, help="How many nodes work together as a gang.")] = 1,
    interval_minutes: Annotated[
        float, typer.Option("--interval-minutes", min=1, max=1e6, help="Minutes of work between checkpoints.")
    ] = 30.0,
    checkpoint_minutes: Annotated[
        float, typer.Option("--checkpoint-minutes", min=0, max=1e6, help="Minutes that the work pauses for a checkpoint.")
    ] = 1.0,
    restart_minutes: Annotated[
        float, typer.Option("--restart-minutes", min=0, max=1e6, help="Minutes from a new node to work again.")
    ] = 10.0,
    notice: Annotated[
        int | None,
        typer.Option("--notice-seconds", min=0, max=3600, help=_NOTICE),
    ] = None,
    starts: Annotated[int, typer.Option("--starts", min=1, max=1000, help="How many start times to try in each trace.")] = 10,
    on_demand_usd: OnDemandUsd = None,
    spot_usd: SpotUsd = None,
    prices_file: PricesFile = None,
    form: AsFormat = Format.TEXT,
) -> None:
    """Replay strategies over records of Spot availability; exit code 1 if even on-demand misses the deadline."""
    prices = priced(machine, region, prices_file, on_demand_usd, spot_usd)
    job = Job(
        work_seconds=round(hours * 3600),
        deadline_seconds=round(deadline * 3600),
        checkpoint_interval_seconds=round(interval_minutes * 60),
        nodes=nodes,
        checkpoint_seconds=round(checkpoint_minutes * 60),
        restart_seconds=round(restart_minutes * 60),
        notice_seconds=_notice_seconds(machine, checkpoint_minutes, notice),
    )
    rates = Rates(spot_price(prices, machine, region), prices.on_demand_usd_per_hour)
    found = [compare(zones, job, rates, starts=starts) for zones in read_traces(folder)]
    if form is Format.JSON:
        write_json({"notice_seconds": job.notice_seconds, "comparisons": [_comparison_data(each) for each in found]}, prices)
    else:
        for each in found:
            print_table(table_console(), _comparison_table(each))
        out.print(f"each interruption: {_saves(machine, job.notice_seconds)}.")
        show_prices(prices)
    if not job.feasible:
        err.print("the deadline cannot be met even on demand: give more hours, more nodes with fewer hours of work, or shorter restarts.")
        raise typer.Exit(ExitCode.UNMET)


def _spot_facts(machine: str) -> CapacityTypeFacts:
    return facts_of(FACTS_OF_CLOUD[cloud_of(machine)])[CapacityType.SPOT]


def _saves(machine: str, notice_seconds: int) -> str:
    """Whether the job saves, how long before the end, and what of the pools that rests on."""
    if not notice_seconds:
        return "it does not save when it is warned"
    facts = _spot_facts(machine)
    raised = facts.notice_raised_by is not None and notice_seconds > (facts.notice_seconds or 0)
    return f"it saves when it is warned, {notice_seconds} s before" + (" (with the pools' shutdown_grace_seconds)" if raised else "")


def _notice_seconds(machine: str, checkpoint_minutes: float, given: int | None) -> int:
    """How long before an interruption the job saves, 0: it does not. What the cloud gives pods, where a checkpoint fits into it."""
    facts = _spot_facts(machine)
    needed = checkpoint_minutes * 60
    if given is None:
        known = (facts.notice_seconds or 0, facts.max_notice_seconds or 0)
        return next((each for each in known if each >= needed), 0)
    if 0 < given < needed:
        raise typer.BadParameter(f"--notice-seconds is {given}; a checkpoint takes {needed:g} s and must fit, or give 0 for no save.")
    return given


def _comparison_table(found: Comparison) -> Table:
    """The strategies of one record."""
    share = f"Spot {found.available_share * 100:.0f} % of the time"
    title = f"{found.name}: {share}; knowing the future: {shown_usd(found.bound_usd)} USD at least"
    rows: list[tuple[str, ...]] = []
    for name, each in found.results.items():
        missed, ends, interrupted = f"{each.missed} of {found.starts}", f"{each.mean_finish_hours:.1f}", f"{each.mean_interruptions:.1f}"
        rows.append((name, shown_usd(each.mean_usd), f"{each.saved_percent:z.0f}", ends, missed, interrupted))
    return Table(title, ("strategy", "USD", "saved %", "ends in h", "missed", "interrupted"), rows, 6)


def _comparison_data(found: Comparison) -> dict[str, Any]:
    return {
        "name": found.name,
        "zones": found.zones,
        "available_share": finite(found.available_share),
        "starts": found.starts,
        "bound_usd": money(found.bound_usd),
        "strategies": [
            {
                "strategy": name,
                "missed": each.missed,
                "mean_usd": money(each.mean_usd),
                "saved_percent": f"{each.saved_percent:.1f}",
                "mean_finish_hours": finite(each.mean_finish_hours),
                "mean_interruptions": finite(each.mean_interruptions),
            }
            for name, each in found.results.items()
        ],
    }
