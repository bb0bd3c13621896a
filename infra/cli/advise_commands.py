"""`flexspot advise`: how to get capacity for a job, for a mixture of jobs, for a steady use, with the arithmetic."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 -- typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any

import typer

from capacity.values.errors import ExitCode, ExplainedError
from infra.cli import advise_arithmetic_commands, advise_reserve_commands
from infra.cli import advise_arithmetic_commands as advise_simulate_command
from infra.cli.advise_report import AsFormat, Number, OnDemandUsd, OneMachine, PricesFile, Region, SpotUsd, given, usd
from infra.cli.command_line import command_group
from infra.cli.console import Format

if TYPE_CHECKING:
    from pydantic import ValidationError

    from capacity.cost.costed_plan import MachinePrices
    from capacity.cost.estimates import JobNeeds

app = command_group("Choose the capacity for a job and see its cost before you spend money.")


@app.callback()
def advise() -> None:
    """Money before it is spent."""


@app.command()
def job(  # noqa: PLR0913, PLR0917 -- each is an option of the command line
    machine: OneMachine,
    region: Region,
    hours: Annotated[float, typer.Option("--hours", help="Hours that the work takes on --nodes machines without interruptions.")],
    nodes: Annotated[int, typer.Option("--nodes", help="How many machines work at the same time.")] = 1,
    interruptible: Annotated[
        bool, typer.Option("--interruptible/--not-interruptible", help="Whether the work may be stopped at any time.")
    ] = True,
    checkpoint_minutes: Annotated[
        float | None, typer.Option("--checkpoint-minutes", help="Minutes that the work pauses for a checkpoint, if it makes any.")
    ] = None,
    piece_hours: Annotated[
        float | None, typer.Option("--piece-hours", help="Hours of the longest piece that can be repeated on its own: a trial, a batch.")
    ] = None,
    user_facing: Annotated[bool, typer.Option("--user-facing", help="Users wait for its answers, as of a model server.")] = False,
    interactive: Annotated[bool, typer.Option("--interactive", help="Somebody works in it now and then, as in a notebook.")] = False,
    start_within: Annotated[float | None, typer.Option("--start-within-hours", help="Hours from now within which it must start.")] = None,
    deadline: Annotated[float | None, typer.Option("--deadline-hours", help="Hours from now within which it must end.")] = None,
    steady: Annotated[bool, typer.Option("--steady", help="It runs around the clock for a year.")] = False,
    shared: Annotated[bool, typer.Option("--shared", help="Several teams compete for the capacity.")] = False,
    guaranteed: Annotated[bool, typer.Option("--guaranteed", help="The team needs a guaranteed share.")] = False,
    data_region: Annotated[str | None, typer.Option("--data-region", help="The region of its data, if another.")] = None,
    data_gib: Annotated[int, typer.Option("--data-gib", help="GiB of data that each start reads.")] = 0,
    interruptions: Annotated[
        float | None,
        typer.Option(
            "--interruptions-per-hour", help="Interruptions of one node per hour. Default: 0.25, the course's figure; measure yours."
        ),
    ] = None,
    share_taken: Annotated[
        float | None,
        typer.Option(
            "--gang-share-taken",
            help="The share of a gang's nodes that one interruption takes. Default: 0.5, from records; 0: one node at a time.",
        ),
    ] = None,
    gang_interruptions: Annotated[
        float | None,
        typer.Option(
            "--gang-interruptions-per-hour", help="Measured interruptions per hour of the whole gang; overrides the two options above."
        ),
    ] = None,
    restart_minutes: Annotated[
        float | None, typer.Option("--restart-minutes", help="Minutes from a new node to work. Default: 10.")
    ] = None,
    spot_wait: Annotated[
        float | None, typer.Option("--spot-wait-hours", help="Hours until Spot capacity comes. Default: 0.5, an assumption.")
    ] = None,
    flex_wait: Annotated[
        float | None, typer.Option("--flex-start-wait-hours", help="Hours until DWS gives capacity. Default: 12, an assumption.")
    ] = None,
    on_demand_usd: OnDemandUsd = None,
    spot_usd: SpotUsd = None,
    flex_usd: Annotated[
        str | None, typer.Option("--flex-start-usd", metavar=Number.USD, help="The flex-start price of a machine per hour.")
    ] = None,
    prices_file: PricesFile = None,
    form: AsFormat = Format.TEXT,
) -> None:
    """Recommend capacity for one job: Spot, hybrid, flex-start, queued, reserved or on-demand; with cost, wait and reasons."""
    from infra.cli.advise_report import cloud_of, show_advice  # noqa: PLC0415

    written = {
        "cloud": cloud_of(machine),
        "region": region,
        "machine": machine,
        "work_hours": hours,
        "nodes": nodes,
        "interruptible": interruptible,
        "checkpoint_minutes": checkpoint_minutes,
        "piece_hours": piece_hours,
        "user_facing": user_facing,
        "interactive": interactive,
        "start_within_hours": start_within,
        "deadline_hours": deadline,
        "steady": steady,
        "shared": shared,
        "guaranteed": guaranteed,
        "data_region": data_region,
        "data_gib": data_gib,
        "interruptions_per_node_hour": interruptions,
        "gang_share_taken": share_taken,
        "gang_interruptions_per_hour": gang_interruptions,
        "restart_minutes": restart_minutes,
        "spot_wait_hours": spot_wait,
        "flex_start_wait_hours": flex_wait,
        "on_demand_usd_per_hour": usd("--on-demand-usd", on_demand_usd),
        "spot_usd_per_hour": usd("--spot-usd", spot_usd),
        "flex_start_usd_per_hour": usd("--flex-start-usd", flex_usd),
    }
    needs = _needs(given(written))
    from capacity.cost.advice import advise as advice_for  # noqa: PLC0415

    prices = _prices(needs, prices_file)
    show_advice(advice_for(needs, prices), form, prices)


@app.command()
def mix(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="YAML: jobs, each with a name and the fields of `advise job`.")],
    prices_file: PricesFile = None,
    form: AsFormat = Format.TEXT,
) -> None:
    """Recommend capacity for several jobs of one platform, and show the savings over all on-demand."""
    from capacity.catalog.data_files import DataFileError, read_records  # noqa: PLC0415
    from capacity.cost.advice import JobMix, advise_mix  # noqa: PLC0415
    from infra.cli.advise_report import show_mix  # noqa: PLC0415

    try:
        jobs = read_records(file, JobMix)
    except OSError as error:
        problem = f"{file} cannot be read: {error.strerror}."
        raise ExplainedError(problem, "name a YAML file.", exit_code=ExitCode.BAD_USAGE) from error
    except (DataFileError, UnicodeDecodeError) as error:
        remedy = "fix each line above; fields are those of capacity/cost/estimates.py, and a name."
        raise ExplainedError(f"{file} cannot be used.", remedy, exit_code=ExitCode.BAD_USAGE, evidence=(str(error),)) from error
    found: list[MachinePrices] = []

    def kept(needs: JobNeeds) -> MachinePrices:
        found.append(_prices(needs, prices_file))
        return found[-1]

    show_mix(advise_mix(jobs, kept), form, found)


def _needs(written: dict[str, Any]) -> JobNeeds:
    from pydantic import ValidationError  # noqa: PLC0415

    from capacity.cost.estimates import JobNeeds  # noqa: PLC0415

    try:
        return JobNeeds.model_validate(written)
    except ValidationError as error:
        raise _explained(error) from error


def _explained(error: ValidationError) -> ExplainedError:
    from capacity.settings.stack_file import said, shown  # noqa: PLC0415

    told: list[str] = []
    for each in error.errors():
        (problem, allowed), where = said(each), ".".join(map(str, each["loc"]))
        told.append(
            f"{where} (is {shown(each['input'])}): {problem}{f'; {allowed}' if allowed else ''}" if where else f"the job: {problem}"
        )
    remedy = "change the options that set them; `flexspot advise job --help` says what each means."
    return ExplainedError("this job cannot be advised on.", remedy, exit_code=ExitCode.BAD_USAGE, evidence=tuple(told))


def _prices(needs: JobNeeds, prices_file: Path | None) -> MachinePrices:
    from infra.cli.advise_report import prices_of_machine  # noqa: PLC0415

    return prices_of_machine(
        needs.cloud,
        needs.machine,
        needs.region,
        prices_file,
        on_demand_usd=needs.on_demand_usd_per_hour,
        spot_usd=needs.spot_usd_per_hour,
    )


app.command()(advise_reserve_commands.reserve)
advise_arithmetic_commands.add_to(app)
app.command()(advise_simulate_command.simulate)
