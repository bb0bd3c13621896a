"""`flexspot run`: from a script or a command to a queued job, and on until its end; `flexspot jobs`: those that there are."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from capacity.values.errors import ExitCode, ExplainedError
from infra.cli.command_line import command_group
from infra.cli.console import Format, out, show_table
from infra.cli.workload_options import (
    Capacity,
    Cpu,
    Env,
    FastNetwork,
    Gpu,
    GpuMemory,
    Gpus,
    Image,
    LauncherOption,
    Memory,
    Name,
    Pods,
    PullSecret,
    Secret,
    Settings,
    Team,
    WorkloadClass,
    fields_of,
    rendered,
)

if TYPE_CHECKING:
    from infra.jobs.access import TeamCluster
    from infra.jobs.state import JobState

Kubeconfig = Annotated[
    Path | None,
    typer.Option("--kubeconfig", help="The kubeconfig file. Default: the one that kubectl would use.", exists=True, dir_okay=False),
]
Context = Annotated[str | None, typer.Option("--context", help="The context in it. Default: its current one.")]
TeamName = Annotated[
    str | None, typer.Option("--team", "-t", help="The team, and with it the namespace. Default: the context's namespace.")
]
Job = Annotated[str, typer.Argument(metavar="NAME", help="The job's name, as `flexspot jobs list` shows it.")]


class JobKind(StrEnum):
    """The kinds of workload that are jobs; the others are services and what they need."""

    CHECKPOINTED = "checkpointed-job"
    QUEUED = "queued-job"
    FLEX_START = "flex-start-job"


def run(  # noqa: PLR0913, PLR0917 -- each is an option of the command line
    command: Annotated[
        list[str],
        typer.Argument(metavar="SCRIPT [ARGUMENTS]... | -- COMMAND...", help="A local .py or .sh file, or a command of the image."),
    ],
    team: Team = None,
    workload_class: WorkloadClass = None,
    name: Name = None,
    image: Image = None,
    gpus: Gpus = None,
    gpu: Gpu = None,
    gpu_memory: GpuMemory = None,
    fast_network: FastNetwork = None,
    pods: Pods = None,
    cpu: Cpu = None,
    memory: Memory = None,
    env: Env = None,
    secret: Secret = None,
    pull_secret: PullSecret = None,
    capacity: Capacity = None,
    launcher: LauncherOption = None,
    settings: Settings = None,
    kind: Annotated[
        JobKind | None, typer.Option("--kind", help="The kind of job. Default: follows from the class and its checkpoints.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow/--no-follow", help="Follow the job's state and output. Ctrl-C stops following; the job goes on.")
    ] = True,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Submit a job to your team's queue and follow it; exit code 1 if it fails. Options go before the script or command.

    A local script is sent along and runs in the image, which must have what it imports. No stack file is needed.
    """
    given = fields_of(locals())
    from infra.jobs import submission  # noqa: PLC0415
    from infra.jobs.access import connect, platform_of  # noqa: PLC0415

    script = submission.script_of(command)
    cluster = connect(kubeconfig, context, team)
    plan = platform_of(cluster)
    classes = [route.workload_class for route in plan.routes if route.queued]
    usual = {
        "team": plan.teams[0].name,
        "name": submission.name_for(command),
        **({"workload_class": "training"} if "training" in classes else {}),
    }
    fields: dict[str, Any] = {**usual, **given}
    chosen = kind or submission.kind_for(plan, fields)
    if script is not None:
        fields = submission.with_script(chosen, fields, script, command[1:])
    objects = rendered(plan, chosen, fields)
    for ended in submission.submit(cluster, objects, script):
        out.print(f"{ended} of an earlier run is gone; its checkpoints are there.", highlight=False, markup=False)
    work = str(fields["name"])
    out.print(f"{work} is submitted to the queue of team {plan.teams[0].name}.", highlight=False, markup=False)
    if follow:
        _follow(cluster, work)


app = command_group("Your team's jobs: list, follow, stop.")


@app.callback()
def jobs() -> None:
    """Your team's jobs: list, follow, stop."""


@app.command("list")
def list_jobs(
    team: TeamName = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    form: Annotated[Format, typer.Option("--format", help="text is a table, json a list.")] = Format.TEXT,
) -> None:
    """List the team's jobs with their state and the reason."""
    from dataclasses import asdict  # noqa: PLC0415

    _, found = _jobs(kubeconfig, context, team, None)
    if form is Format.JSON:
        sys.stdout.write(json.dumps([asdict(each) for each in found], indent=2) + "\n")
        return
    table = Table("job", "class", "GPUs", "pods", "is", "why", title="jobs", title_justify="left")
    for each in found:
        table.add_row(each.name, each.workload_class, str(each.gpus), f"{each.pods} of {each.of}", str(each.state), each.why)
    show_table(table)


@app.command("logs")
def follow_job(name: Job, team: TeamName = None, kubeconfig: Kubeconfig = None, context: Context = None) -> None:
    """Follow a job to its end: its state, and the output of its first pod. Ctrl-C leaves the job alone; exit code 1 if it fails."""
    cluster, _ = _jobs(kubeconfig, context, team, name)
    _follow(cluster, name)


@app.command("stop")
def stop_job(name: Job, team: TeamName = None, kubeconfig: Kubeconfig = None, context: Context = None) -> None:
    """Stop a job and delete it with its pods and logs. Its checkpoints stay: a new run with the same name resumes."""
    from infra.jobs.submission import stop  # noqa: PLC0415

    cluster, found = _jobs(kubeconfig, context, team, name)
    stop(cluster, found)
    out.print(f"{name} is stopped.", highlight=False, markup=False)


def _jobs(kubeconfig: Path | None, context: str | None, team: str | None, name: str | None) -> tuple[TeamCluster, list[JobState]]:
    """The team's jobs, or those of one name, of which there is at least one."""
    from infra.jobs.access import connect  # noqa: PLC0415
    from infra.jobs.submission import states_of  # noqa: PLC0415

    cluster = connect(kubeconfig, context, team)
    found = states_of(cluster, name)
    if name is not None and not found:
        remedy = "see `flexspot jobs list`; --team names another team."
        raise ExplainedError(f"there is no job {name} in namespace {cluster.namespace}.", remedy, exit_code=ExitCode.BAD_USAGE)
    return cluster, found


def _follow(cluster: TeamCluster, work: str) -> None:
    from infra.jobs.state import ENDED, State  # noqa: PLC0415
    from infra.jobs.submission import follow  # noqa: PLC0415

    def say(words: str) -> None:
        out.print(words, style="bold", highlight=False, markup=False)

    def write(line: str) -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    ended: State | None = None
    try:
        ended = follow(cluster, work, say, write)
    finally:
        if ended not in ENDED:
            say(f"{work} goes on; `flexspot jobs logs {work}` follows it again, `flexspot jobs stop {work}` ends it.")
    if ended is State.FAILED:
        raise typer.Exit(ExitCode.UNMET)
