"""`flexspot settings`: whether a stack file can work, and the schema by which editors complete it."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from capacity.values.errors import ExitCode
from infra.cli.console import Format, out, show_table
from infra.cli.stacks import Stack, planned, stack_file

if TYPE_CHECKING:
    from capacity.plan.model import Plan

app = typer.Typer(help="Stack files: check them, complete them.", no_args_is_help=True)


@app.command()
def check(
    stack: Stack,
    form: Annotated[Format, typer.Option("--format", help="text for people, json for programs.")] = Format.TEXT,
) -> None:
    """Check a stack file and show what follows from it; exit code 2 when it cannot work. Nothing is deployed or asked of a cloud."""
    if form is Format.JSON:
        _check_json(stack)
        return
    plan = planned(stack).plan
    show_table(_pools(plan))
    show_table(_teams(plan))
    for warning in plan.warnings:
        out.print(f"[yellow]warning[/] {warning.rule}: {warning.path}: {warning.text}")
    ceilings = ", ".join(f"{gpus} x {name}" for name, gpus in plan.accelerators.items())
    out.print(f"stack {stack} can work: at most {ceilings}; {len(plan.warnings)} warning(s).")


@app.command()
def schema() -> None:
    """Print the JSON schema of stack files."""
    from capacity.settings.stack_schema import stack_file_schema  # noqa: PLC0415

    sys.stdout.write(json.dumps(stack_file_schema(), indent=2) + "\n")


def _check_json(stack: str) -> None:
    from capacity.plan.build import plan_of_stack_file  # noqa: PLC0415
    from capacity.plan.model import plan_data  # noqa: PLC0415
    from capacity.values.errors import SettingsError  # noqa: PLC0415

    path = stack_file(stack)
    problems: list[dict[str, Any]] = []
    plan: dict[str, Any] | None = None
    try:
        plan = plan_data(plan_of_stack_file(path).plan)
    except SettingsError as error:
        problems = [asdict(each) for each in error.problems]
    sys.stdout.write(json.dumps({"stack": stack, "problems": problems, "plan": plan}, indent=2) + "\n")
    if problems:
        raise typer.Exit(ExitCode.BAD_USAGE)


def _pools(plan: Plan) -> Table:
    table = Table("pool", "capacity", "machines", "GPUs", "nodes", "serves", title=f"{plan.cloud} {plan.region}", title_justify="left")
    for pool in plan.pools:
        gpus = f"{pool.min_nodes * pool.gpus_per_node} to {pool.max_gpus} {pool.gpu_model}"
        machines, serves = ", ".join(pool.machines), ", ".join(pool.serves)
        table.add_row(pool.name, pool.capacity_type.value, machines, gpus, str(pool.max_nodes), serves)
    return table


def _teams(plan: Plan) -> Table:
    """What each team is sure of, by flavor, and the most that it can have at once."""
    own = {queue.namespace: {quota.flavor: quota.nominal.gpus for quota in queue.quotas} for queue in plan.queues}
    table = Table("team", *(flavor.name for flavor in plan.flavors), "unqueued", "at most", title="guaranteed GPUs", title_justify="left")
    for team in plan.teams:
        shares = [str(own.get(team.namespace, {}).get(flavor.name, "")) for flavor in plan.flavors]
        table.add_row(team.name, *shares, str(team.unqueued_gpus), str(team.max_gpus))
    return table
