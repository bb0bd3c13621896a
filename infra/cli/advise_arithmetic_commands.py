"""The arithmetic behind `flexspot advise`, each part alone: Spot, units of work, idle pools, strategies over records."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path  # noqa: TC003 -- typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from capacity.values.errors import ExitCode, ExplainedError
from infra.cli.advise_report import (
    AsFormat,
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
    shown_usd,
    spot_price,
    write_json,
)
from infra.cli.console import Format, err, out, show_table

if TYPE_CHECKING:
    from capacity.catalog.capacity_type import CapacityTypeFacts
    from capacity.cost.costed_plan import MachinePrices
    from capacity.cost.strategies import Comparison


def add_to(app: typer.Typer) -> None:
    """Adds these commands to `flexspot advise`."""
    for command in (spot, units, idle):
        app.command()(command)


def spot(  # noqa: PLR0913, PLR0917 -- each is an option of the command line
    machine: OneMachine,
    region: Region,
    hours: Annotated[float, typer.Option("--hours", min=0.01, max=100_000, help="Hours of work without interruptions.")],
    interruptions: Annotated[
        float,
        typer.Option("--interruptions-per-hour", min=0, max=60, help="Interruptions of one node per hour; take it from your history."),
    ],
    nodes: Annotated[int, typer.Option("--nodes", min=1, max=100_000, help="How many nodes work together as a gang.")] = 1,
    checkpoint_minutes: Annotated[
        float, typer.Option("--checkpoint-minutes", min=0, help="Minutes that the work pauses for a checkpoint.")
    ] = 2.0,
    interval_minutes: Annotated[
        float | None, typer.Option("--interval-minutes", min=0.1, help="Minutes of work between checkpoints. Default: the best interval.")
    ] = None,
    restart_minutes: Annotated[
        float, typer.Option("--restart-minutes", min=0, help="Minutes from a new node to work again; billed.")
    ] = 10.0,
    wait_hours: Annotated[float, typer.Option("--wait-hours", min=0, help="Hours until there is capacity again; not billed.")] = 0.5,
    saved_share: Annotated[
        float, typer.Option("--saved-share", min=0, max=1, help="The share of interruptions whose warning leaves time to save.")
    ] = 0.0,
    share_taken: Annotated[
        float | None,
        typer.Option(
            "--gang-share-taken",
            min=0,
            max=1,
            help="The share of a gang's nodes that one interruption takes. Default: 0.5; 0: one node at a time.",
        ),
    ] = None,
    deadline: Annotated[
        float | None,
        typer.Option("--deadline-hours", min=0.01, max=100_000, help="Hours until the deadline; shows the chance of missing it."),
    ] = None,
    on_demand_usd: OnDemandUsd = None,
    spot_usd: SpotUsd = None,
    prices_file: PricesFile = None,
    form: AsFormat = Format.TEXT,
) -> None:
    """Show what interruptions cost a run on Spot: lost work, best checkpoint interval, effective price, break-even."""
    from capacity.cost.estimates import shipped_rules  # noqa: PLC0415
    from capacity.cost.spot_arithmetic import (  # noqa: PLC0415
        SpotConditions,
        best_interval_hours,
        break_even_interruptions_per_node_hour,
        break_even_usd_per_hour,
        late_share,
        late_share_at_most,
        spot_run,
        usd_per_useful_hour,
    )

    prices = priced(machine, region, prices_file, on_demand_usd, spot_usd)
    price = prices.spot_usd_per_hour
    taken = float(shipped_rules().assumptions.gang_share_taken.value) if share_taken is None else share_taken
    conditions = SpotConditions(interruptions, nodes, checkpoint_minutes / 60, restart_minutes / 60, wait_hours, saved_share, taken)
    best = best_interval_hours(hours, conditions)
    interval = best if interval_minutes is None else interval_minutes / 60
    run = spot_run(hours, interval, conditions)
    on_demand = prices.on_demand_usd_per_hour
    row: dict[str, Any] = {
        "best_interval_minutes": finite(best * 60),
        "interval_minutes": finite(interval * 60),
        "gang_share_taken": taken,
        "interruptions": finite(run.interruptions),
        "lost_hours": finite(run.lost_hours),
        "checkpoint_hours": finite(run.checkpoint_hours),
        "restart_hours": finite(run.restart_hours),
        "billed_hours": finite(run.billed_hours),
        "wall_hours": finite(run.wall_hours),
        "spot_usd_per_hour": None if price is None else str(price),
        "on_demand_usd_per_hour": str(on_demand),
        "usd_per_useful_hour": None if price is None else money(usd_per_useful_hour(price, run)),
        "break_even_spot_usd_per_hour": money(break_even_usd_per_hour(on_demand, run)),
        "break_even_interruptions_per_node_hour": None
        if price is None
        else finite(break_even_interruptions_per_node_hour(hours, conditions, price, on_demand)),
    }
    unknown = _OF_SPOT_PRICE if price is None else frozenset[str]()
    if deadline is not None:
        row["late_share"] = late_share(hours, interval, conditions, deadline)
        row["late_share_at_most"] = finite(late_share_at_most(hours, interval, conditions, deadline))
    _show(row, form, unknown, prices)
    if deadline is not None and form is Format.TEXT:
        out.print(_UNIFORM_PROGRESS)


_UNIFORM_PROGRESS = (
    "To meet the deadline: the policy Uniform Progress (NSDI 2024). Over five public records it cost 1.03 to 1.16 times the least "
    "possible, 1.11 on average. Other records differ: `flexspot advise simulate` plays it over yours."
)
"""Figures of the table in docs/guides/costs.md."""

_OF_SPOT_PRICE = frozenset({"spot_usd_per_hour", "usd_per_useful_hour", "break_even_interruptions_per_node_hour"})
"""What nobody can say without a Spot price."""


def units(  # noqa: PLR0913, PLR0917 -- each is an option of the command line
    machine: OneMachine,
    region: Region,
    gpus: Annotated[int, typer.Option("--gpus", min=1, help="GPUs that an epoch or experiment uses, or that are idle.")] = 1,
    epoch_hours: Annotated[float | None, typer.Option("--epoch-hours", min=0, help="Hours of one epoch.")] = None,
    experiment_hours: Annotated[float | None, typer.Option("--experiment-hours", min=0, help="Hours of one experiment.")] = None,
    requests: Annotated[
        float | None, typer.Option("--requests-per-gpu-second", min=1e-6, help="Requests per second of one GPU, measured.")
    ] = None,
    busy_share: Annotated[float, typer.Option("--busy-share", min=0.01, max=1, help="The share of paid time that serves requests.")] = 1.0,
    on_demand_usd: OnDemandUsd = None,
    spot_usd: SpotUsd = None,
    prices_file: PricesFile = None,
    form: AsFormat = Format.TEXT,
) -> None:
    """Show the cost of a unit of work: GPU hour, year, epoch, experiment, 1,000 requests, idle hour; on demand and on Spot."""
    from capacity.catalog.machines import machines_of  # noqa: PLC0415
    from capacity.cost import unit_costs as unit  # noqa: PLC0415
    from capacity.values.quantities import HOURS_OF_A_YEAR, usd_of_hours  # noqa: PLC0415

    prices = priced(machine, region, prices_file, on_demand_usd, spot_usd)
    gpu = machines_of(cloud_of(machine))[machine].gpu
    if gpu is None:
        remedy = "name a machine with GPUs; `flexspot settings check` shows those of a stack."
        raise ExplainedError(f"{machine} has no GPUs.", remedy, exit_code=ExitCode.BAD_USAGE)
    rows: dict[str, dict[str, str | None] | None] = {}
    for name, price in (("on-demand", prices.on_demand_usd_per_hour), ("spot", prices.spot_usd_per_hour)):
        if price is None:
            rows[name] = None
            continue
        hour = price / gpu.count
        per_1000 = None if requests is None else unit.usd_per_1000_requests(hour, unit.gpu_hours_per_1000_requests(requests), busy_share)
        rows[name] = {
            "usd_per_gpu_hour": str(hour.quantize(Decimal("0.0001"))),
            "usd_per_node_year": money(usd_of_hours(price, HOURS_OF_A_YEAR)),
            "usd_per_idle_hour": money(hour * gpus),
            "usd_per_epoch": None if epoch_hours is None else money(usd_of_hours(hour, epoch_hours, gpus)),
            "usd_per_experiment": None if experiment_hours is None else money(usd_of_hours(hour, experiment_hours, gpus)),
            "usd_per_1000_requests": None if per_1000 is None else str(per_1000.quantize(Decimal("0.000001"))),
        }
    if form is Format.JSON:
        write_json(rows, prices)
        return
    known = {name: row for name, row in rows.items() if row is not None}
    table = Table("", *known)
    for what in (
        "usd_per_gpu_hour",
        "usd_per_node_year",
        "usd_per_idle_hour",
        "usd_per_epoch",
        "usd_per_experiment",
        "usd_per_1000_requests",
    ):
        if any(row[what] for row in known.values()):
            table.add_row(_words(what), *(row[what] or "" for row in known.values()))
    show_table(table)
    _say_if_unknown(prices, machine, region)
    show_prices(prices)


def idle(  # noqa: PLR0913, PLR0917 -- each is an option of the command line
    machine: OneMachine,
    region: Region,
    active_hours: Annotated[float, typer.Option("--active-hours-per-day", min=0, max=24, help="Hours a day in which the pool is used.")],
    nodes: Annotated[int, typer.Option("--nodes", min=1, help="How many nodes the pool has.")] = 1,
    sessions: Annotated[float, typer.Option("--sessions-per-day", min=0, help="Sessions a day.")] = 1.0,
    start_minutes: Annotated[float, typer.Option("--start-minutes", min=0, help="Minutes from asking for a node until it works.")] = 10.0,
    idle_minutes: Annotated[float, typer.Option("--idle-minutes", min=0, help="Minutes that a node stays after its last work.")] = 5.0,
    on_demand_usd: OnDemandUsd = None,
    spot_usd: SpotUsd = None,
    prices_file: PricesFile = None,
    form: AsFormat = Format.TEXT,
) -> None:
    """Show what a development pool saves in a month by removing idle nodes, on demand and on Spot."""
    from capacity.cost.unit_costs import DevelopmentUse, scaled_to_zero  # noqa: PLC0415

    prices = priced(machine, region, prices_file, on_demand_usd, spot_usd)
    use = DevelopmentUse(nodes, active_hours, sessions, start_minutes, idle_minutes)
    list_price = prices.on_demand_usd_per_hour
    found = {"on-demand": scaled_to_zero(use, list_price)}
    if prices.spot_usd_per_hour is not None:
        found["spot"] = scaled_to_zero(use, list_price, prices.spot_usd_per_hour)
    always_on = found["on-demand"].always_on_usd
    if form is Format.JSON:
        rows = {
            name: {"usd": money(each.usd), "saved_usd": money(each.saved_usd), "saved_percent": f"{each.saved_percent:.1f}"}
            for name, each in found.items()
        }
        write_json({"always_on_usd": money(always_on), "spot": None, **rows}, prices)
        return
    table = Table("scaled to zero", "hours a node", "USD a month", "saved", "saved %")
    for name, each in found.items():
        table.add_row(name, f"{each.hours:.1f}", shown_usd(each.usd), shown_usd(each.saved_usd), f"{each.saved_percent:.1f}")
    show_table(table)
    out.print(f"always on, on demand: {shown_usd(always_on)} USD a month.")
    _say_if_unknown(prices, machine, region)
    show_prices(prices)


def _say_if_unknown(prices: MachinePrices, machine: str, region: str) -> None:
    if prices.spot_usd_per_hour is None:
        out.print(f"no Spot price of {machine} in {region} is known: so Spot is left out; give it with --spot-usd.")


def _show(row: dict[str, Any], form: Format, unknown: frozenset[str], prices: MachinePrices) -> None:
    if form is Format.JSON:
        write_json(row, prices)
        return
    table = Table("", "")
    for name, value in row.items():
        none = "not known: give --spot-usd" if name in unknown else "never ends"
        table.add_row(_words(name), none if value is None else str(value))
    show_table(table)
    show_prices(prices)


def _words(name: str) -> str:
    return name.replace("_", " ").replace("usd", "USD").replace("gpu", "GPU")


_NOTICE = (
    "Seconds before an interruption at which the job saves. Default: the cloud's notice if a checkpoint fits into it; 0: it does not save."
)


def simulate(  # noqa: PLR0913, PLR0917 -- each is an option of the command line
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
    from capacity.cost.replay import Job, Rates, read_traces  # noqa: PLC0415
    from capacity.cost.strategies import compare  # noqa: PLC0415

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
            show_table(comparison_table(each))
        out.print(f"each interruption: {_saves(machine, job.notice_seconds)}.")
        show_prices(prices)
    if not job.feasible:
        err.print("the deadline cannot be met even on demand: give more hours, more nodes with fewer hours of work, or shorter restarts.")
        raise typer.Exit(ExitCode.UNMET)


def _spot_facts(machine: str) -> CapacityTypeFacts:
    from capacity.catalog.capacity_type import CapacityType, facts_of  # noqa: PLC0415
    from capacity.catalog.price_book import FACTS_OF_CLOUD  # noqa: PLC0415

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


def comparison_table(found: Comparison) -> Table:
    """The strategies of one record, as a table; `tests/bench_traces.py` prints the same."""
    share = f"Spot {found.available_share * 100:.0f} % of the time"
    title = f"{found.name}: {share}; knowing the future: {shown_usd(found.bound_usd)} USD at least"
    table = Table("strategy", "USD", "saved %", "ends in h", "missed", "interrupted", title=title, title_justify="left")
    for name, each in found.results.items():
        missed, ends, interrupted = f"{each.missed} of {found.starts}", f"{each.mean_finish_hours:.1f}", f"{each.mean_interruptions:.1f}"
        table.add_row(name, shown_usd(each.mean_usd), f"{each.saved_percent:z.0f}", ends, missed, interrupted)
    return table


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
