"""`flexspot advise job`: how to get capacity for a job, or for each job of a file, with the arithmetic."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import ValidationError
from rich.markup import escape

from flexspot.capacity.catalog.data_files import read_records
from flexspot.capacity.catalog.machines import machines_of
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
from flexspot.capacity.cost.spot_arithmetic import (
    best_interval_hours,
    break_even_interruptions_per_node_hour,
    break_even_usd_per_hour,
    late_share,
    late_share_at_most,
    spot_run,
    usd_per_useful_hour,
)
from flexspot.capacity.settings.stack_file import said, shown
from flexspot.capacity.values.errors import ExplainedError
from flexspot.capacity.values.quantities import HOURS_OF_A_YEAR, usd_of_hours
from flexspot.infra.cli.command_line import AsFormat, Format, bad_usage, with_options
from flexspot.infra.cli.console import out
from flexspot.infra.cli.given_files import given_file
from flexspot.infra.cli.money.machine_prices import (
    JobOptions,
    Number,
    OnDemandUsd,
    PricesFile,
    SpotUsd,
    cloud_of,
    finite,
    money,
    prices_of_machine,
    show_prices,
    usd,
    write_json,
)
from flexspot.infra.cli.tables import show, shown_usd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.capacity.cost.advice import MixAdvice
    from flexspot.capacity.cost.costed_plan import MachinePrices
    from flexspot.capacity.cost.estimates import Estimate


@with_options("work", JobOptions)
def job(
    work: JobOptions,
    jobs: Annotated[
        Path | None,
        typer.Option("--jobs", metavar="FILE", help="Instead: YAML with `jobs`, each with a name and the fields of this job in JSON."),
    ] = None,
    details: Annotated[
        bool, typer.Option("--details", help="Also show what interruptions on Spot cost, and what a unit of work costs.")
    ] = False,
    interval_minutes: Annotated[
        float | None, typer.Option("--interval-minutes", min=0.1, help="In the details, minutes between checkpoints. Default: the best.")
    ] = None,
    saved_share: Annotated[
        float,
        typer.Option("--saved-share", min=0, max=1, help="In the details, the share of interruptions whose warning leaves time to save."),
    ] = 0.0,
    gpus: Annotated[int, typer.Option("--gpus", min=1, help="In the details, the GPUs of an epoch or experiment, or idle ones.")] = 1,
    epoch_hours: Annotated[float | None, typer.Option("--epoch-hours", min=0, help="Hours of one epoch; shows its cost.")] = None,
    experiment_hours: Annotated[
        float | None, typer.Option("--experiment-hours", min=0, help="Hours of one experiment; shows its cost.")
    ] = None,
    requests: Annotated[
        float | None,
        typer.Option("--requests-per-gpu-second", min=1e-6, help="Requests per second of one GPU, measured; shows the cost of 1,000."),
    ] = None,
    busy_share: Annotated[float, typer.Option("--busy-share", min=0.01, max=1, help="The share of paid time that serves requests.")] = 1.0,
    active_hours: Annotated[
        float | None,
        typer.Option(
            "--active-hours-per-day",
            min=0,
            max=24,
            help="Hours a day in which the machines are used; shows what removing idle nodes saves.",
        ),
    ] = None,
    sessions: Annotated[float, typer.Option("--sessions-per-day", min=0, help="Sessions a day in those hours.")] = 1.0,
    idle_minutes: Annotated[float, typer.Option("--idle-minutes", min=0, help="Minutes that a node stays after its last work.")] = 5.0,
    on_demand_usd: OnDemandUsd = None,
    spot_usd: SpotUsd = None,
    flex_usd: Annotated[
        str | None, typer.Option("--flex-start-usd", metavar=Number.USD, help="The flex-start price of a machine per hour.")
    ] = None,
    prices_file: PricesFile = None,
    form: AsFormat = Format.TEXT,
) -> None:
    """Recommend capacity for one job, or for each job of a file, with the arithmetic.

    Spot, hybrid, flex-start, queued, reserved or on-demand, with cost, wait and reasons. For a file also the savings over all on-demand.
    """
    if jobs is not None and work.machine is work.region is work.work_hours is None:
        _mix(jobs, prices_file, form)
        return
    if jobs is not None or work.machine is None or work.region is None or work.work_hours is None:
        raise typer.BadParameter("give --machine, --region and --hours, or --jobs FILE alone.")
    written = {
        **asdict(work),
        "cloud": cloud_of(work.machine),
        "on_demand_usd_per_hour": usd("--on-demand-usd", on_demand_usd),
        "spot_usd_per_hour": usd("--spot-usd", spot_usd),
        "flex_start_usd_per_hour": usd("--flex-start-usd", flex_usd),
    }
    try:
        needs = JobNeeds.model_validate({name: value for name, value in written.items() if value is not None})
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
    if form is Format.JSON:
        write_json({**_advice_data(found), **shown_parts}, prices)
        return
    _show_advice(found)
    for name, part in shown_parts.items():
        _PARTS[name](part)
    if shown_parts and prices.spot_usd_per_hour is None:
        out.print(f"no Spot price of {work.machine} in {work.region} is known: so Spot is left out; give it with --spot-usd.")
    show_prices(prices)


_UNIFORM_PROGRESS = (
    "To meet the deadline: the policy Uniform Progress (NSDI 2024). Over five public records it cost 1.03 to 1.16 times the least "
    "possible, 1.11 on average. Other records differ: `flexspot advise simulate` plays it over yours."
)
"""Figures of the table in docs/guides/costs.md."""


@dataclass(frozen=True)
class _Arithmetic:
    """What a job's machines cost in other units, at `prices`."""

    needs: JobNeeds
    prices: MachinePrices

    def on_spot(self, interval_minutes: float | None, saved_share: float) -> dict[str, Any]:
        """Return what interruptions cost: lost work, the interval of checkpoints, the effective price, and where Spot stops paying."""
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
        """Return the cost of a GPU hour, a node's year, an idle hour, an epoch, an experiment, 1,000 requests; by way of buying."""
        machine = self.needs.machine
        gpu = machines_of(self.needs.cloud)[machine].gpu
        if gpu is None:
            remedy = "name a machine with GPUs; `flexspot settings check` shows those of a stack."
            raise bad_usage(f"{machine} has no GPUs.", remedy)
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
        """Return what a development pool saves in a month when idle nodes are removed, by way of buying."""
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


def _words(name: str) -> str:
    return name.replace("_", " ").replace("usd", "USD").replace("gpu", "GPU")


_OF_SPOT_PRICE = frozenset({"spot_usd_per_hour", "usd_per_useful_hour", "break_even_interruptions_per_node_hour"})
"""What nobody can say without a Spot price."""


def _show_on_spot(row: dict[str, Any]) -> None:
    unknown = _OF_SPOT_PRICE if row["spot_usd_per_hour"] is None else frozenset[str]()
    none = {name: "not known: give --spot-usd" if name in unknown else "never ends" for name in row}
    show("on Spot", ("", ""), [(_words(name), none[name] if value is None else str(value)) for name, value in row.items()])
    if "late_share" in row:
        out.print(_UNIFORM_PROGRESS)


def _show_units(rows: dict[str, Any]) -> None:
    known = {name: row for name, row in rows.items() if row is not None}
    lines = [(_words(unit), *(row[unit] for row in known.values())) for unit in known["on-demand"]]
    show("units of work", ("", *known), lines)


def _show_idle(found: dict[str, Any]) -> None:
    rows = [(name, *map(_with_thousands, each.values())) for name, each in found.items() if isinstance(each, dict)]
    show("", ("scaled to zero", "hours a node", "USD a month", "saved", "saved %"), rows)
    out.print(f"always on, on demand: {_with_thousands(found['always_on_usd'])} USD a month.")


def _with_thousands(figure: str) -> str:
    return f"{Decimal(figure):,}"


_PARTS = {"on_spot": _show_on_spot, "units": _show_units, "idle": _show_idle}


def _mix(file: Path, prices_file: Path | None, form: Format) -> None:
    """Show the advice for several jobs of one platform, and the savings over all on-demand."""
    jobs = given_file(
        file, lambda path: read_records(path, JobMix), "jobs have a name and the fields of flexspot/capacity/cost/estimates.py"
    )
    found: list[MachinePrices] = []

    def kept(needs: JobNeeds) -> MachinePrices:
        found.append(_prices(needs, prices_file))
        return found[-1]

    _show_mix(advise_mix(jobs, kept), form, found)


def _explained(error: ValidationError) -> ExplainedError:
    told: list[str] = []
    for each in error.errors():
        (problem, allowed), where = said(each), ".".join(map(str, each["loc"]))
        told.append(
            f"{where} (is {shown(each['input'])}): {problem}{f'; {allowed}' if allowed else ''}" if where else f"the job: {problem}"
        )
    remedy = "change the options that set them; `flexspot advise job --help` says what each means."
    return bad_usage("this job cannot be advised on.", remedy, evidence=tuple(told))


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
    """The answer first, then every way with its figures and why it is out."""
    out.print(f"[bold]{advice.method}[/]{_unless(advice)}")
    for title, lines in (("why", advice.reasons), ("with it", advice.practices), ("arithmetic", advice.arithmetic)):
        for line in lines:
            out.print(f"  {title}: {escape(line)}")
    rows: list[tuple[str, ...]] = []
    for option in advice.options:
        estimate = option.estimate
        late = "" if estimate.late_share is None else f"{estimate.late_share * 100:.0f} %"
        ends = f"{estimate.finish_hours:.1f}" if math.isfinite(estimate.finish_hours) else "never"
        out_because = ", ".join(rule.name for rule in option.excluded_by)
        rows.append((estimate.method.value, _range(estimate), f"{estimate.wait_hours:.1f}", ends, late, out_because))
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


def _show_mix(mix: MixAdvice, form: Format, prices: list[MachinePrices]) -> None:
    """A line for each job, and the sum."""
    if form is Format.JSON:
        jobs = {name: _advice_data(advice) for name, advice in mix.advice.items()}
        write_json({"method": mix.method.value, "usd": money(mix.usd), "on_demand_usd": money(mix.on_demand_usd), "jobs": jobs}, *prices)
        return
    rows = [(name, f"{advice.method}{_unless(advice)}", _range(advice.chosen), advice.reasons[-1]) for name, advice in mix.advice.items()]
    show("", ("job", "method", "USD a run", "why"), rows)
    saved = f"{mix.saved_percent:.0f} % less than {shown_usd(mix.on_demand_usd)} USD on demand"
    out.print(f"[bold]{mix.method}[/]: {shown_usd(mix.usd)} USD at most for all runs, {saved}.")
    show_prices(*prices)
