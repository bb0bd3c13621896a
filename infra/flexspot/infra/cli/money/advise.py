"""`flexspot advise job`: how to get capacity for a job, or for each job of a file, with the arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import ValidationError
from rich.markup import escape

from flexspot.capacity.catalog.capacity_type import CapacityType, facts_of
from flexspot.capacity.catalog.data_files import read_records
from flexspot.capacity.catalog.machines import machines_of
from flexspot.capacity.catalog.price_book import FACTS_OF_CLOUD
from flexspot.capacity.cost.advice import (
    Advice,
    DevelopmentUse,
    JobMix,
    advise,
    advise_mix,
    gpu_hours_per_1000_requests,
    scaled_to_zero,
    usd_per_1000_requests,
)
from flexspot.capacity.cost.estimates import JobNeeds, spot_plan
from flexspot.capacity.cost.replay import Job, Rates, compare, read_traces
from flexspot.capacity.cost.spot_arithmetic import (
    best_interval_hours,
    break_even_interruptions_per_node_hour,
    break_even_usd_per_hour,
    late_share,
    late_share_at_most,
    spot_run,
    usd_per_useful_hour,
)
from flexspot.capacity.settings.stack_file import problem_and_remedy, shown
from flexspot.capacity.values.errors import ExitCode, ExplainedError, SettingsProblem
from flexspot.capacity.values.quantities import HOURS_OF_A_YEAR, usd_of_hours
from flexspot.infra.cli.command_line import AsFormat, bad_usage, given_file, option, with_options
from flexspot.infra.cli.console import Table, err, out, print_table, show, shown_usd
from flexspot.infra.cli.money.machine_prices import (
    OnDemandUsd,
    OneMachine,
    PricesFile,
    Region,
    SpotUsd,
    cloud_of,
    finite,
    job_options,
    money,
    prices_of_machine,
    show_prices,
    usd_option,
    write_json,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.capacity.catalog.capacity_type import CapacityTypeFacts
    from flexspot.capacity.cost.costed_plan import MachinePrices
    from flexspot.capacity.cost.estimates import Estimate
    from flexspot.capacity.cost.replay import Comparison


@with_options("work", job_options)
def job(
    work: dict[str, Any],
    jobs: Annotated[
        Path | None, option("--jobs", "Instead: YAML with named `jobs` (fields: flexspot/capacity/cost/estimates.py).", metavar="FILE")
    ] = None,
    details: Annotated[bool, option("--details", "Also show what interruptions on Spot cost, and what a unit of work costs.")] = False,
    interval_minutes: Annotated[
        float | None, option("--interval-minutes", "In the details, minutes between checkpoints. Default: the best.", min=0.1)
    ] = None,
    saved_share: Annotated[
        float, option("--saved-share", "In the details, the share of interruptions whose warning leaves time to save.", min=0, max=1)
    ] = 0.0,
    gpus: Annotated[int, option("--gpus", "In the details, the number of GPUs of an epoch, an experiment or an idle hour.", min=1)] = 1,
    epoch_hours: Annotated[float | None, option("--epoch-hours", "Hours of one epoch; shows its cost.", min=0)] = None,
    experiment_hours: Annotated[float | None, option("--experiment-hours", "Hours of one experiment; shows its cost.", min=0)] = None,
    requests: Annotated[
        float | None, option("--requests-per-gpu-second", "Requests per second of one GPU, measured; shows the cost of 1,000.", min=1e-6)
    ] = None,
    busy_share: Annotated[float, option("--busy-share", "The share of paid time that serves requests.", min=0.01, max=1)] = 1.0,
    active_hours: Annotated[
        float | None,
        option(
            "--active-hours-per-day", "Hours a day in which the machines are used; shows what removing idle nodes saves.", min=0, max=24
        ),
    ] = None,
    sessions: Annotated[float, option("--sessions-per-day", "Sessions a day in those hours.", min=0)] = 1.0,
    idle_minutes: Annotated[float, option("--idle-minutes", "Minutes that a node stays after its last work.", min=0)] = 5.0,
    on_demand_usd: OnDemandUsd = None,
    spot_usd: SpotUsd = None,
    flex_usd: Annotated[Decimal | None, usd_option("--flex-start-usd", "The flex-start price of a machine per hour.")] = None,
    prices_file: PricesFile = None,
    form: AsFormat = "text",
) -> None:
    """Recommend capacity for one job, or for each job of a file, with the arithmetic.

    Spot, hybrid, flex-start, queued, reserved or on-demand, with cost, wait and reasons. For a file also the savings against on-demand.
    """
    needed = {"machine", "region", "work_hours"}
    if jobs is not None and not needed & work.keys():
        _mix(jobs, prices_file, form)
        return
    if jobs is not None or not needed <= work.keys():
        raise typer.BadParameter("--machine, --region and --hours are required, or --jobs FILE without them.")
    usd = {"on_demand_usd_per_hour": on_demand_usd, "spot_usd_per_hour": spot_usd, "flex_start_usd_per_hour": flex_usd}
    known = {name: price for name, price in usd.items() if price is not None}
    try:
        needs = JobNeeds.model_validate({**work, **known, "cloud": cloud_of(work["machine"])})
    except ValidationError as error:
        raise _explained(error) from error
    prices = _prices(needs, prices_file)
    sums = _Arithmetic(needs, prices)
    shown_parts: dict[str, dict[str, Any]] = {}
    if any((details, interval_minutes, saved_share)):
        shown_parts["on_spot"] = sums.on_spot(interval_minutes, saved_share)
    if any((details, epoch_hours, experiment_hours, requests)):
        shown_parts["units"] = sums.units(gpus, epoch_hours, experiment_hours, requests, busy_share)
    if active_hours is not None:
        shown_parts["idle"] = sums.idle(active_hours, sessions, idle_minutes)
    found = advise(needs, prices)
    if form == "json":
        write_json({**_advice_data(found), **shown_parts}, prices)
        return
    _show_advice(found)
    for name, part in shown_parts.items():
        _PARTS[name](part)
    if shown_parts and prices.spot_usd_per_hour is None:
        out.print(f"Spot is left out: its price for {needs.machine} in {needs.region} is not known; give it with --spot-usd.")
    show_prices(prices)


_UNIFORM_PROGRESS = (
    "To meet the deadline: the policy Uniform Progress (NSDI 2024). Over five public records it cost 1.03 to 1.16 times the least "
    "possible, 1.11 on average. Other records differ: `flexspot advise simulate` plays it over yours."
)
"""Figures of the table in docs/guides/costs.md."""


@dataclass(frozen=True)
class _Arithmetic:
    """A job's costs at `prices`: on Spot, per unit of work, and idle."""

    needs: JobNeeds
    prices: MachinePrices

    def on_spot(self, interval_minutes: float | None, saved_share: float) -> dict[str, Any]:
        """Return the cost of interruptions: lost work, checkpoint interval, effective price, and when Spot stops paying off."""
        hours, plan = self.needs.work_hours, spot_plan(self.needs)
        conditions = replace(plan.conditions, saved_share=saved_share)
        price, on_demand = self.prices.spot_usd_per_hour, self.prices.on_demand_usd_per_hour
        best = plan.interval_hours if self.needs.checkpoint_minutes is None else best_interval_hours(hours, conditions)
        interval = best if interval_minutes is None else interval_minutes / 60
        run = spot_run(hours, interval, conditions)
        pays = None if price is None else break_even_interruptions_per_node_hour(hours, conditions, price, on_demand)
        row: dict[str, Any] = {
            "best_interval_minutes": finite(best * 60),
            "interval_minutes": finite(interval * 60),
            "gang_share_taken": conditions.share_taken,
            "interruptions": finite(run.interruptions),
            "lost_hours": finite(run.lost_hours),
            "checkpoint_hours": finite(run.checkpoint_hours),
            "restart_hours": finite(run.restart_hours),
            "billed_hours": finite(run.billed_hours),
            "wall_hours": finite(run.wall_hours),
            "spot_usd_per_hour": price,
            "on_demand_usd_per_hour": on_demand,
            "usd_per_useful_hour": None if price is None else money(usd_per_useful_hour(price, run)),
            "break_even_spot_usd_per_hour": money(break_even_usd_per_hour(on_demand, run)),
            "break_even_interruptions_per_node_hour": None if pays is None else finite(pays),
        }
        if (deadline := self.needs.deadline_hours) is not None:
            row["late_share"] = late_share(hours, interval, conditions, deadline)
            row["late_share_at_most"] = finite(late_share_at_most(hours, interval, conditions, deadline))
        return row

    def units(
        self, gpus: int, epoch_hours: float | None, experiment_hours: float | None, requests: float | None, busy_share: float
    ) -> dict[str, Any]:
        """Return the cost of a GPU hour, a node's year, an idle hour, an epoch, an experiment and 1,000 requests, by capacity type."""
        machine = self.needs.machine
        gpu = machines_of(self.needs.cloud)[machine].gpu
        if gpu is None:
            remedy = "name a machine with GPUs; `flexspot settings check` shows a stack's."
            raise bad_usage(f"--machine: {machine} has no GPUs.", remedy)
        rows: dict[str, dict[str, str | None] | None] = {"on-demand": None, "spot": None}
        for name, price in self._bought():
            hour = price / gpu.count
            row = {
                "usd_per_gpu_hour": str(hour.quantize(Decimal("0.0001"))),
                "usd_per_node_year": money(usd_of_hours(price, HOURS_OF_A_YEAR)),
                "usd_per_idle_hour": money(hour * gpus),
            }
            if epoch_hours is not None:
                row["usd_per_epoch"] = money(usd_of_hours(hour, epoch_hours, gpus))
            if experiment_hours is not None:
                row["usd_per_experiment"] = money(usd_of_hours(hour, experiment_hours, gpus))
            if requests is not None:
                served = usd_per_1000_requests(hour, gpu_hours_per_1000_requests(requests), busy_share)
                row["usd_per_1000_requests"] = str(served.quantize(Decimal("0.000001")))
            rows[name] = row
        return rows

    def idle(self, active_hours: float, sessions: float, idle_minutes: float) -> dict[str, Any]:
        """Return a development pool's monthly savings if idle nodes are removed, by capacity type."""
        start_minutes = spot_plan(self.needs).conditions.restart_hours * 60
        use = DevelopmentUse(self.needs.nodes, active_hours, sessions, start_minutes, idle_minutes)
        found: dict[str, Any] = {"on-demand": None, "spot": None}
        for name, price in self._bought():
            each = scaled_to_zero(use, self.prices.on_demand_usd_per_hour, price)
            found["always_on_usd"] = money(each.always_on_usd)
            found[name] = {
                "hours": f"{each.hours:.1f}",
                "usd": money(each.usd),
                "saved_usd": money(each.saved_usd),
                "saved_percent": f"{each.saved_percent:.1f}",
            }
        return found

    def _bought(self) -> Iterator[tuple[str, Decimal]]:
        yield "on-demand", self.prices.on_demand_usd_per_hour
        if self.prices.spot_usd_per_hour is not None:
            yield "spot", self.prices.spot_usd_per_hour


def _label(name: str) -> str:
    return name.replace("_", " ").replace("usd", "USD").replace("gpu", "GPU")


_OF_SPOT_PRICE = frozenset({"spot_usd_per_hour", "usd_per_useful_hour", "break_even_interruptions_per_node_hour"})
"""Rows that are unknown without a Spot price."""


def _show_on_spot(row: dict[str, Any]) -> None:
    unknown = _OF_SPOT_PRICE if row["spot_usd_per_hour"] is None else frozenset[str]()
    none = {name: "not known: give --spot-usd" if name in unknown else "never ends" for name in row}
    show("on Spot", ("", ""), [(_label(name), none[name] if value is None else str(value)) for name, value in row.items()])
    if "late_share" in row:
        out.print(_UNIFORM_PROGRESS)


def _show_units(rows: dict[str, Any]) -> None:
    known = {name: row for name, row in rows.items() if row is not None}
    lines = [(_label(unit), *(row[unit] for row in known.values())) for unit in known["on-demand"]]
    show("units of work", ("", *known), lines)


def _show_idle(found: dict[str, Any]) -> None:
    rows = [(name, *map(_with_thousands, each.values())) for name, each in found.items() if isinstance(each, dict)]
    show("", ("scaled to zero", "hours a node", "USD a month", "saved", "saved %"), rows)
    out.print(f"always on, on demand: {_with_thousands(found['always_on_usd'])} USD a month.")


def _with_thousands(figure: str) -> str:
    return f"{Decimal(figure):,}"


_PARTS = {"on_spot": _show_on_spot, "units": _show_units, "idle": _show_idle}


def _mix(file: Path, prices_file: Path | None, form: str) -> None:
    """Print the advice for several jobs of one platform, and the savings over all on-demand."""
    jobs = given_file(
        file, lambda path: read_records(path, JobMix), "a job has a name and the fields of flexspot/capacity/cost/estimates.py"
    )
    prices: list[MachinePrices] = []

    def kept(needs: JobNeeds) -> MachinePrices:
        prices.append(_prices(needs, prices_file))
        return prices[-1]

    mix = advise_mix(jobs, kept)
    if form == "json":
        data = {name: _advice_data(advice) for name, advice in mix.advice.items()}
        write_json({"method": mix.method, "usd": money(mix.usd), "on_demand_usd": money(mix.on_demand_usd), "jobs": data}, *prices)
        return
    rows = [(name, f"{advice.method}{_unless(advice)}", _range(advice.chosen), advice.reasons[-1]) for name, advice in mix.advice.items()]
    show("", ("job", "method", "USD a run", "why"), rows)
    saved = f"{mix.saved_percent:.0f} % less than {shown_usd(mix.on_demand_usd)} USD on demand"
    out.print(f"[bold]{mix.method}[/]: {shown_usd(mix.usd)} USD at most for all runs, {saved}.")
    show_prices(*prices)


def _explained(error: ValidationError) -> ExplainedError:
    problems = [
        SettingsProblem(
            ".".join(map(str, each["loc"])) or "the job", shown(each["input"]) if each["loc"] else "", *problem_and_remedy(each)
        )
        for each in error.errors()
    ]
    remedy = "fix the options of the lines above; `flexspot advise job --help` describes each."
    return bad_usage("the options do not describe a valid job.", remedy, evidence=tuple(map(str, problems)))


def _prices(needs: JobNeeds, prices_file: Path | None) -> MachinePrices:
    return prices_of_machine(
        needs.cloud,
        needs.machine,
        needs.region,
        prices_file,
        on_demand_usd=needs.on_demand_usd_per_hour,
        spot_usd=needs.spot_usd_per_hour,
    )


def _show_advice(advice: Advice) -> None:
    """Print the recommended method first, then all methods with their figures and the reasons for exclusion."""
    out.print(f"[bold]{advice.method}[/]{_unless(advice)}")
    for title, lines in (("why", advice.reasons), ("with it", advice.practices), ("arithmetic", advice.arithmetic)):
        for line in lines:
            out.print(f"  {title}: {escape(line)}")
    rows: list[tuple[str, ...]] = []
    for each in advice.options:
        estimate = each.estimate
        late = "" if estimate.late_share is None else f"{estimate.late_share * 100:.0f} %"
        ends = f"{estimate.finish_hours:.1f}" if math.isfinite(estimate.finish_hours) else "never"
        out_because = ", ".join(rule.name for rule in each.excluded_by)
        rows.append((estimate.method, _range(estimate), f"{estimate.wait_hours:.1f}", ends, late, out_because))
    show("", ("method", "USD", "starts in h", "ends in h", "late", "out because of"), rows)


def _unless(advice: Advice) -> str:
    return "".join(f", or {each.method} where a Spot node costs less than {each.usd_per_hour} USD an hour" for each in advice.undecided)


def _range(estimate: Estimate) -> str:
    if estimate.usd_least == estimate.usd_most:
        return shown_usd(estimate.usd_most)
    return f"{shown_usd(estimate.usd_least)} to {shown_usd(estimate.usd_most)}"


def _advice_data(advice: Advice) -> dict[str, Any]:
    return {
        "method": advice.method.value,
        "undecided": [{"method": each.method.value, "below_usd_per_hour": each.usd_per_hour} for each in advice.undecided],
        "reasons": advice.reasons,
        "practices": advice.practices,
        "arithmetic": advice.arithmetic,
        "options": [
            {
                "method": each.estimate.method.value,
                "usd_least": money(each.estimate.usd_least),
                "usd_most": money(each.estimate.usd_most),
                "wait_hours": finite(each.estimate.wait_hours),
                "finish_hours": finite(each.estimate.finish_hours),
                "late_share": each.estimate.late_share,
                "excluded_by": [rule.name for rule in each.excluded_by],
            }
            for each in advice.options
        ],
    }


_NOTICE = (
    "Seconds before an interruption at which the job saves. Default: the cloud's notice if a checkpoint fits into it; 0: it does not save."
)


def simulate(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A folder of Spot traces; files of one machine in the same folder are its zones.")
    ],
    machine: OneMachine,
    region: Region,
    hours: Annotated[float, option("--hours", "Hours of work without interruptions.", min=0.1, max=8760)],
    deadline: Annotated[float, option("--deadline-hours", "Hours from each start to the deadline.", min=0.1, max=8760)],
    nodes: Annotated[int, option("--nodes", "The number of nodes that work together as a gang.", min=1)] = 1,
    interval_minutes: Annotated[float, option("--interval-minutes", "Minutes of work between checkpoints.", min=1, max=1e6)] = 30.0,
    checkpoint_minutes: Annotated[
        float, option("--checkpoint-minutes", "Minutes that the work pauses for a checkpoint.", min=0, max=1e6)
    ] = 1.0,
    restart_minutes: Annotated[float, option("--restart-minutes", "Minutes from a new node to work again.", min=0, max=1e6)] = 10.0,
    notice: Annotated[int | None, option("--notice-seconds", _NOTICE, min=0, max=3600)] = None,
    starts: Annotated[int, option("--starts", "The number of start times to try in each trace.", min=1, max=1000)] = 10,
    on_demand_usd: OnDemandUsd = None,
    spot_usd: SpotUsd = None,
    prices_file: PricesFile = None,
    form: AsFormat = "text",
) -> None:
    """Replay strategies over records of Spot availability; exit code 1 if even on-demand misses the deadline."""
    prices = prices_of_machine(cloud_of(machine), machine, region, prices_file, on_demand_usd=on_demand_usd, spot_usd=spot_usd)
    if prices.spot_usd_per_hour is None:
        raise bad_usage(f"--spot-usd is required: no Spot price of {machine} in {region} is known.", "add it, in USD per hour.")
    job = Job(
        work_seconds=round(hours * 3600),
        deadline_seconds=round(deadline * 3600),
        checkpoint_interval_seconds=round(interval_minutes * 60),
        nodes=nodes,
        checkpoint_seconds=round(checkpoint_minutes * 60),
        restart_seconds=round(restart_minutes * 60),
        notice_seconds=_notice_seconds(machine, checkpoint_minutes, notice),
    )
    rates = Rates(prices.spot_usd_per_hour, prices.on_demand_usd_per_hour)
    found = [compare(zones, job, rates, starts=starts) for zones in read_traces(folder)]
    if form == "json":
        write_json({"notice_seconds": job.notice_seconds, "comparisons": [_comparison_data(each) for each in found]}, prices)
    else:
        for each in found:
            print_table(_comparison_table(each))
        out.print(f"each interruption: {_saves(machine, job.notice_seconds)}.")
        show_prices(prices)
    if not job.feasible:
        err.print("the deadline cannot be met even on demand: allow more hours, more nodes with fewer hours of work, or shorter restarts.")
        raise typer.Exit(ExitCode.UNMET)


def _spot_facts(machine: str) -> CapacityTypeFacts:
    return facts_of(FACTS_OF_CLOUD[cloud_of(machine)])[CapacityType.SPOT]


def _saves(machine: str, notice_seconds: int) -> str:
    """Return whether the job saves and how long before the end. Mentions the pool setting if the notice depends on it."""
    if not notice_seconds:
        return "it does not save when it is warned"
    facts = _spot_facts(machine)
    raised = facts.notice_raised_by is not None and notice_seconds > (facts.notice_seconds or 0)
    return f"it saves when it is warned, {notice_seconds} s before" + (" (with the pools' shutdown_grace_seconds)" if raised else "")


def _notice_seconds(machine: str, checkpoint_minutes: float, given: int | None) -> int:
    """Return how many seconds before an interruption the job saves, or 0 if it does not.

    Default: the cloud's notice to pods, if a checkpoint fits.
    """
    facts = _spot_facts(machine)
    needed = checkpoint_minutes * 60
    if given is None:
        known = (facts.notice_seconds or 0, facts.max_notice_seconds or 0)
        return next((each for each in known if each >= needed), 0)
    if 0 < given < needed:
        raise typer.BadParameter(f"--notice-seconds: {given} s is too short for a checkpoint of {needed:g} s. Give more, or 0 for no save.")
    return given


def _comparison_table(found: Comparison) -> Table:
    """Return the table of one record's strategies."""
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
